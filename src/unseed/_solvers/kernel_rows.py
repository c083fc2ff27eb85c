"""Products with the kernel of all rows, tile by tile, and with its inverse as landmarks know it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from unseed._solvers.cholesky import solve_with_factor
from unseed._solvers.landmarks import Spaces
from unseed.kernels import Profile


@dataclass(frozen=True)
class KernelRows:
    """Rows as the kernels of several spaces see them: K̂ = Σ ρ_j K_j, and Φ, neither of which is ever held."""

    spaces: Spaces
    X: Tensor

    @cached_property
    def profiles(self) -> list[Profile]:
        """Of the rows, space by space."""
        return [space.kernel.profile(self.X) for space in self.spaces.spaces]

    def product(self, columns: Tensor) -> Tensor:
        """K̂ times columns. Shape (n, c)."""
        total = torch.zeros_like(columns)
        for rho, space, profile in zip(self.spaces.amplitudes.tolist(), self.spaces.spaces, self.profiles, strict=True):
            total.add_(space.kernel.ntk_gram_product(profile, columns), alpha=rho)
        return total

    def cross(self, X: Tensor) -> Tensor:
        """K̂(X, x) of a few points. Shape (n, n_points)."""
        pairs = zip(self.spaces.spaces, self.profiles, strict=True)
        crosses = [space.kernel.ntk_cross(profile, space.kernel.profile(X)) for space, profile in pairs]
        return torch.stack(crosses, dim=2) @ self.spaces.amplitudes

    def expansion(self, X: Tensor, dual: Tensor) -> Tensor:
        """K̂(x, X) times dual weights (n, c): one pass over all rows. Shape (n_points, c)."""
        total = X.new_zeros(len(X), dual.shape[1])
        for rho, space, profile in zip(self.spaces.amplitudes.tolist(), self.spaces.spaces, self.profiles, strict=True):
            total.add_(space.kernel.ntk_product(space.kernel.profile(X), profile, dual), alpha=rho)
        return total

    def smooth(self, factor: Tensor, columns: Tensor) -> Tensor:
        """(ΦΦᵀ + I)⁻¹ times columns, by the factor of I + ΦᵀΦ. Shape (n, c)."""
        scales, spaces = self.spaces.scales[:, None], self.spaces.spaces
        known = [
            torch.linalg.solve_triangular(space.root, space.kernel.ntk_product(space.profile, profile, columns), upper=False)
            for space, profile in zip(spaces, self.profiles, strict=True)
        ]
        coefficients = scales * solve_with_factor(factor, scales * torch.cat(known))
        result = columns.clone()
        for space, profile, own in zip(spaces, self.profiles, coefficients.split(self.spaces.sizes), strict=True):  # type: ignore[no-untyped-call]
            dual = torch.linalg.solve_triangular(space.root.T, own, upper=True)
            result -= space.kernel.ntk_product(profile, space.profile, dual)
        return result
