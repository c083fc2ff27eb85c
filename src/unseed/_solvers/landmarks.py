"""Features of a kernel by landmarks: a space of M functions in which rows are summed up, and what it leaves out at a point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from scipy.linalg import lapack
from torch import Tensor

from unseed._solvers.cholesky import packed, unpacked
from unseed._state import Record, State
from unseed.errors import SingularKernelError
from unseed.kernels import PopulationKernel, Profile
from unseed.networks import MLP

_EXHAUSTED = 1e-10
"""Share of the largest variance below which a further landmark would add rounding errors only."""


def pivoted_cholesky(matrix: Tensor, count: int, exhausted: float) -> tuple[Tensor, Tensor]:
    """At most so many rows, each the one that those before say least about, and the factor of their matrix, in that order.

    It ends where what is left is below a share ``exhausted`` of the largest entry of the diagonal. Shapes (r,) and (r, r).
    """
    enough = exhausted * float(matrix.diagonal().max())
    if not np.isfinite(enough) or enough <= 0:
        raise SingularKernelError(f"no row of {len(matrix)} can be a landmark: the kernel there is zero or not finite")
    if matrix.device.type == "cpu":
        packed, pivots, rank, _ = lapack.dpstrf(matrix.numpy(), lower=1, tol=enough)
        r = min(count, int(rank))
        return torch.from_numpy(pivots[:r] - 1).long(), torch.from_numpy(np.tril(packed[:r, :r]))
    unknown, factor = matrix.diagonal().clone(), matrix.new_zeros(len(matrix), count)
    chosen: list[int] = []
    for column in range(min(count, len(matrix))):
        row = int(unknown.argmax())
        if float(unknown[row]) <= enough:
            break
        factor[:, column] = (matrix[:, row] - factor[:, :column] @ factor[row, :column]) / unknown[row].sqrt()
        unknown = (unknown - factor[:, column].square()).clamp_min(0.0)
        unknown[row] = 0.0
        chosen.append(row)
    rows = torch.tensor(chosen, device=matrix.device)
    return rows, factor[rows, : len(chosen)].tril()


@dataclass(frozen=True)
class Space:
    """φ(x) = L⁻¹k(Z, x) of landmarks Z with L Lᵀ = k(Z, Z), the landmark that says most about the others first.

    The first m features are those of the first m landmarks alone, for any m.

    Attributes
    ----------
    network : MLP
    landmarks : Tensor of shape (p, d)
    root : Tensor of shape (p, p)
        L, lower triangular.
    """

    network: MLP
    landmarks: Tensor
    root: Tensor

    @classmethod
    def among(cls, network: MLP, candidates: Tensor, count: int) -> Space:
        """At most so many landmarks among candidates (m, d): by pivoted Cholesky, until the others add nothing."""
        kernel = PopulationKernel(network)
        pivots, root = pivoted_cholesky(kernel.ntk_gram(kernel.profile(candidates)), count, _EXHAUSTED)
        return cls(network, candidates[pivots], root)

    def __len__(self) -> int:
        return len(self.landmarks)

    @cached_property
    def kernel(self) -> PopulationKernel:
        """Of the network, as wide as can be."""
        return PopulationKernel(self.network)

    @cached_property
    def profile(self) -> Profile:
        """Of the landmarks."""
        return self.kernel.profile(self.landmarks)

    def __call__(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Features (n, p) of points, and their prior variance k(x, x) (n,)."""
        points = self.kernel.profile(X)
        cross = self.kernel.ntk_cross(points, self.profile)
        return torch.linalg.solve_triangular(self.root.T, cross, upper=True, left=False), points.diagonal.ntk

    def expansion(self, X: Tensor, coefficients: Tensor) -> Tensor:
        """Features of points times coefficients (p, c), without the features. Shape (n, c)."""
        dual = torch.linalg.solve_triangular(self.root.T, coefficients, upper=True)
        return self.kernel.ntk_product(self.kernel.profile(X), self.profile, dual)


@dataclass(frozen=True)
class Spaces:
    """Several spaces side by side, each with an amplitude: Σ ρ_j k_j is the kernel that their features stand for.

    Attributes
    ----------
    spaces : sequence of Space
    amplitudes : Tensor of shape (n_spaces,)
        ρ: prior variance of what a space says, over the variance of the noise.
    """

    spaces: Sequence[Space]
    amplitudes: Tensor

    @property
    def sizes(self) -> list[int]:
        """Features of each space."""
        return [len(space) for space in self.spaces]

    @property
    def scales(self) -> Tensor:
        """√ρ of every feature. Shape (p,)."""
        return self.amplitudes.sqrt().repeat_interleave(torch.tensor(self.sizes, device=self.amplitudes.device))

    @property
    def leading(self) -> Tensor:
        """Of every feature, whether it belongs to the better half of its space's landmarks. Shape (p,), bool."""
        return torch.cat([torch.arange(size) < (size + 1) // 2 for size in self.sizes]).to(self.amplitudes.device)

    def half(self) -> Spaces:
        """The spaces of the better half of the landmarks."""
        kept = [(space, (len(space) + 1) // 2) for space in self.spaces]
        return Spaces([Space(space.network, space.landmarks[:m], space.root[:m, :m]) for space, m in kept], self.amplitudes)

    def bare(self, X: Tensor) -> Tensor:
        """Features without amplitudes. Shape (n, p)."""
        return torch.cat([space(X)[0] for space in self.spaces], dim=1)

    def __call__(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Features times √ρ (n, p), and the prior variance Σ ρ k(x, x) (n,)."""
        found = [space(X) for space in self.spaces]
        features = torch.cat([features for features, _ in found], dim=1)
        prior = torch.stack([prior for _, prior in found], dim=1) @ self.amplitudes
        return features * self.scales, prior

    def state(self) -> State:
        """Networks and landmarks, amplitudes, and triangles in half."""
        kept: State = {"networks": [space.network for space in self.spaces], "amplitudes": self.amplitudes}
        for place, space in enumerate(self.spaces):
            kept |= {f"landmarks_{place}": space.landmarks, f"root_{place}": packed(space.root)}
        return kept

    @classmethod
    def restore(cls, record: Record, n_features: int, device: torch.device) -> Spaces:
        """From `state`."""
        spaces = []
        for place, network in enumerate(record.fact("networks", list)):
            if not isinstance(network, MLP):
                raise record.fault("a network of infinite width must be an MLP")
            network.first_layer_factors(n_features)
            landmarks = record.tensor(f"landmarks_{place}", device, None, n_features)
            entries = record.tensor(f"root_{place}", device, len(landmarks) * (len(landmarks) + 1) // 2)
            spaces.append(Space(network, landmarks, unpacked(entries, len(landmarks))))
        if not spaces or not all(bool((space.root.diagonal() > 0).all()) for space in spaces):
            raise record.fault("a factor of the landmarks is singular")
        return cls(spaces, record.tensor("amplitudes", device, len(spaces)))

    def gram(self, X: Tensor) -> Tensor:
        """Prior covariance Σ ρ k(x, x') of points. Shape (n, n)."""
        grams = [space.kernel.ntk_gram(space.kernel.profile(X)) for space in self.spaces]
        return torch.stack([rho * gram for rho, gram in zip(self.amplitudes, grams, strict=True)]).sum(0)

    def paired(self, X: Tensor, other: Tensor) -> Tensor:
        """Prior covariance of points taken pair by pair. Shape (n,)."""
        pairs = [space.kernel.ntk_paired(space.kernel.profile(X), space.kernel.profile(other)) for space in self.spaces]
        return torch.stack(pairs, dim=1) @ self.amplitudes
