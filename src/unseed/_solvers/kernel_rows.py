"""Products with the kernel of all rows, tile by tile, and with its inverse as landmarks know it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from unseed._machine import available_bytes
from unseed._solvers.cholesky import solve_with_factor
from unseed._solvers.landmarks import Spaces
from unseed.kernels import Profile

_STRIP, _LEADING = 512, 256
_SHARE_OF_MEMORY = 0.5


@dataclass(frozen=True)
class HeldRows:
    """K̂ and Φ in memory: of K̂ a few leading features, and what these leave out of its lower triangle in float32.

    The first features have what is large, so that rounding of the rest stays below the noise, which is one.

    Attributes
    ----------
    features : Tensor of shape (n, p)
        Φ.
    leading : Tensor of shape (n, m)
        Columns of Φ.
    strips : sequence of Tensor of shape (height, stop), float32
        Of the rows before ``stop``.
    """

    features: Tensor
    leading: Tensor
    strips: Sequence[Tensor]

    @classmethod
    def of(cls, rows: KernelRows) -> HeldRows | None:
        """None where they would take too much of the memory that is left."""
        n, sizes = len(rows.X), rows.spaces.sizes
        if 4 * n * (n + _STRIP) / 2 + 16 * n * sum(sizes) > _SHARE_OF_MEMORY * available_bytes(rows.X.device):
            return None
        features = torch.cat([rows.spaces(rows.X[start : start + _STRIP])[0] for start in range(0, n, _STRIP)])
        leading = torch.cat([part[:, :_LEADING] for part in features.split(sizes, dim=1)], dim=1)  # type: ignore[no-untyped-call]
        strips = []
        for start in range(0, n, _STRIP):
            own, before = slice(start, start + _STRIP), slice(min(start + _STRIP, n))
            strips.append(rows.between(own, before).addmm_(leading[own], leading[before].T, alpha=-1).float())
        return cls(features, leading, strips)

    def product(self, columns: Tensor) -> Tensor:
        """K̂ times columns. Shape (n, c)."""
        total, small = self.leading @ (self.leading.T @ columns), columns.float()
        start = 0
        for strip in self.strips:
            stop = strip.shape[1]
            total[start:stop] += strip @ small[:stop]
            total[:start] += strip[:, :start].T @ small[start:stop]
            start = stop
        return total

    def smooth(self, factor: Tensor, columns: Tensor) -> Tensor:
        """(ΦΦᵀ + I)⁻¹ times columns, by the factor of I + ΦᵀΦ. Shape (n, c)."""
        return columns - self.features @ solve_with_factor(factor, self.features.T @ columns)


@dataclass(frozen=True)
class KernelRows:
    """Rows as the kernels of several spaces see them: K̂ = Σ ρ_j K_j, and Φ, neither of which is held."""

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

    def between(self, some: slice, others: slice) -> Tensor:
        """K̂ of some rows and others."""
        total = self.X.new_zeros(())
        for rho, space, profile in zip(self.spaces.amplitudes, self.spaces.spaces, self.profiles, strict=True):
            total = space.kernel.ntk_cross(profile[some], profile[others]).mul_(rho).add_(total)
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
