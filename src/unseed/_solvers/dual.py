"""The ridge of a kernel: one n-by-n factor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from unseed._solvers.cholesky import solve_with_factor
from unseed._solvers.ridge import WORST_CONDITION, WeightedRidge, factorise, pivot_ratio, random_signs

_NUMBERS_AT_A_TIME = 1 << 22


@dataclass(frozen=True)
class DualRidge(WeightedRidge):
    """Cholesky factor of A = K + λ n W⁻¹, from the kernel of the rows. Points are rows of their kernel with the rows."""

    factor: Tensor  # (n, n); the lower triangle, what is above it is not part of it
    ridge: Tensor  # (n,)
    jitter: float = 0.0

    @classmethod
    def factorise(
        cls, kernel: Tensor, weights: Tensor, regularization: float, n_observations: float | None = None
    ) -> DualRidge:
        """Factorise, in the memory of ``kernel`` on a CPU.

        Parameters
        ----------
        kernel : Tensor of shape (n, n)
        weights : Tensor of shape (n,)
        regularization : float
            λ.
        n_observations : float or None
            n, where it is not the sum of the weights: a kernel over several outputs has a row for each of them.

        Raises
        ------
        SingularKernelError
            When no jitter of `JITTERS` makes the matrix positive definite.
        """
        ridge = regularization * (weights.sum() if n_observations is None else n_observations) / weights
        diagonal = kernel.diagonal()
        scale = float(diagonal.mean())
        diagonal.add_(ridge)
        factor, jitter = factorise(kernel, scale, regularization)
        return cls(factor, ridge + jitter, jitter)

    @classmethod
    def factorise_stack(cls, kernels: list[Tensor], weights: list[Tensor], regularization: float) -> list[DualRidge]:
        """The same for systems of one size, in one call; where one of them fails, each alone."""
        stack, together = torch.stack(kernels), torch.stack(weights)
        ridge = regularization * together.sum(1, keepdim=True) / together
        stack.diagonal(dim1=1, dim2=2).add_(ridge)
        factors, info = torch.linalg.cholesky_ex(stack)
        found = [cls(factor, own) for factor, own in zip(factors, ridge, strict=True)]
        if bool((info != 0).any()) or any(not factor.condition <= WORST_CONDITION for factor in found):
            return [cls.factorise(kernel, own, regularization) for kernel, own in zip(kernels, weights, strict=True)]
        return found

    @property
    def condition(self) -> float:
        """Of A."""
        return pivot_ratio(self.factor.diagonal())

    def solve(self, columns: Tensor) -> Tensor:
        """A⁻¹ times each column. Shape (n, c)."""
        return solve_with_factor(self.factor, columns)

    def whiten(self, columns: Tensor) -> Tensor:
        """L⁻¹ times each column, so that products of two results are cᵀA⁻¹c'. Shape (n, c)."""
        white: Tensor = torch.linalg.solve_triangular(self.factor, columns, upper=False)
        return white

    def energy(self, labels: Tensor) -> Tensor:
        """zᵀA⁻¹z. Shape (c,)."""
        return self.whiten(labels).square().sum(0)

    def inverse_diagonal(self, rows: Tensor) -> Tensor:
        """(A⁻¹)_ii for some of the rows. Shape (len(rows),)."""
        n = len(self.factor)
        parts = []
        for chunk in torch.split(rows, max(1, _NUMBERS_AT_A_TIME // n)):
            units = self.factor.new_zeros(n, len(chunk))
            units[chunk, torch.arange(len(chunk), device=rows.device)] = 1.0
            parts.append(self.whiten(units).square().sum(0))
        return torch.cat(parts)

    def inverse_moments(self, labels: Tensor, probes: int) -> tuple[Tensor, float]:
        """A⁻¹ times the labels, and tr A⁻²: exactly from the inverse, which costs twice the factorisation, or by probes."""
        if not probes:
            inverse = torch.cholesky_inverse(self.factor)
            return inverse @ labels, float(inverse.square().sum())
        signs = random_signs(len(labels), probes, labels)
        return self.solve(labels), float(self.solve(signs).square().sum() / probes)

    def predict(self, points: Tensor, dual: Tensor) -> Tensor:
        """The kernel of points and rows, times dual weights. Shape (n_points, c)."""
        return points @ dual

    def effect(self, points: Tensor) -> Tensor:
        """A⁻¹K(X, x). Shape (n, n_points)."""
        return self.solve(points.T)

    def posterior(self, points: Tensor, prior: Callable[[], Tensor]) -> Tensor:
        """K(x, x') − k(x)ᵀA⁻¹k(x'). Shape (n_points, n_points)."""
        known = self.whiten(points.T)
        return prior() - known.T @ known
