"""Weighted ridge regression: what both of its forms answer and what follows from that, and the form made of a kernel."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from unseed._solvers.cholesky import JITTERS, jittered_cholesky, solve_with_factor
from unseed.errors import ConditioningWarning, SingularKernelError

OVERFLOW = "the kernel matrix overflows float64: the inputs are too large; use standardize=True or scale the features"

_WORST_CONDITION = 1e12  # above it a solve has fewer than four correct digits, and a warning says so
_EXACT_TRACE_ROWS = 2048  # beyond, random columns estimate the trace behind a noise variance, mostly to 1 %
_TRACE_PROBES = 64
_AMPLITUDE_ROWS = 500
_NUMBERS_AT_A_TIME = 1 << 22


class WeightedRidge(Protocol):
    """A = K + λ n W⁻¹, W the diagonal of the weights and n their sum, factorised once for any labels.

    A weight of c is exactly a row that is there c times; rows with weight 0 must have been left out. `DualRidge` is made of
    the kernel K of the rows, `PrimalRidge` of features φ with K = ΦΦᵀ. New points are rows of what the ridge is made of: their
    kernel with the rows, or their features.

    Attributes
    ----------
    ridge : Tensor of shape (n,)
        What was added to the diagonal of K, jitter included.
    """

    ridge: Tensor

    @property
    def condition(self) -> float:
        """Estimate, from below, of the condition number of A: the squared ratio of its pivots."""

    def solve(self, columns: Tensor) -> Tensor:
        """A⁻¹ times each column: of labels, their dual weights. Shape (n, c)."""

    def energy(self, labels: Tensor) -> Tensor:
        """zᵀA⁻¹z, column by column. Shape (c,)."""

    def inverse_diagonal(self, rows: Tensor) -> Tensor:
        """(A⁻¹)_ii for some of the rows. Shape (len(rows),)."""

    def squared_inverse_trace(self, probes: int) -> float:
        """The trace of A⁻², estimated from so many random columns where that is cheaper; 0 for exactly."""

    def effect(self, points: Tensor) -> Tensor:
        """c(x) = A⁻¹K(X, x): how far each label moves each prediction. Shape (n, n_points)."""

    def posterior(self, points: Tensor, prior: Callable[[], Tensor]) -> Tensor:
        """K(x, x') − k(x)ᵀA⁻¹k(x'); ``prior`` makes the first term where it is needed. Shape (n_points, n_points)."""

    def residual(self, labels: Tensor) -> Tensor:
        """Labels minus fit, from K A⁻¹ = I − ridge A⁻¹: no second product with the kernel. Shape (n, c)."""
        return self.ridge[:, None] * self.solve(labels)

    def leave_one_out(self, labels: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Errors of the fits without each row, and their posterior variances for an amplitude of one.

        Shapes (len(rows), c) and (len(rows), 1).
        """
        curvature = self.inverse_diagonal(rows)[:, None]
        return self.solve(labels)[rows] / curvature, (1 / curvature - self.ridge[rows][:, None]).clamp_min(0.0)

    def amplitude(self, labels: Tensor) -> Tensor:
        """Factor on the kernel that makes the labels most probable, zᵀA⁻¹z/n, column by column. Shape (c,).

        Where the ridge is far too small for the noise (a λ chosen on other rows, or by hand), this is too large by orders of
        magnitude; leave-one-out errors then say so, and their mean square over what is expected of them is taken instead.
        """
        n = len(labels)
        likeliest = self.energy(labels) / n
        rows = torch.arange(0, n, max(1, n // _AMPLITUDE_ROWS), device=labels.device)
        left_out = (self.solve(labels)[rows].square() / self.inverse_diagonal(rows)[:, None]).mean(0)
        return torch.where(left_out < likeliest / 2, left_out, likeliest)

    def noise_residual(self, labels: Tensor, probes: int | None = None) -> tuple[Tensor, float]:
        """Residuals and a trace: the sum of squares over the trace estimates the noise variance, for weights of one.

        With H the smoother, ‖(I − H) y‖² has expectation σ² tr (I − H)ᵀ(I − H) plus a squared bias. Here I − H is a
        multiple λn of A⁻¹; without the λ both sides stay finite however small it is, and the n keeps batches of
        different sizes comparable. Random columns give the trace, tr A⁻² = E‖A⁻¹ z‖², where an exact one costs twice the
        factorisation: so many ``probes``, 0 for exactly, None for exactly up to 2,048 rows and 64 beyond.
        """
        n = len(labels)
        if probes is None:
            probes = 0 if n <= _EXACT_TRACE_ROWS else _TRACE_PROBES
        return n * self.solve(labels), n**2 * self.squared_inverse_trace(probes)


@dataclass(frozen=True)
class DualRidge(WeightedRidge):
    """Cholesky factor of A = K + λ n W⁻¹, from the kernel of the rows. Points are rows of their kernel with the rows."""

    factor: Tensor  # (n, n); the lower triangle, what is above it is not part of it
    ridge: Tensor  # (n,)

    @classmethod
    def factorise(
        cls, kernel: Tensor, weights: Tensor, regularization: float, n_observations: float | None = None
    ) -> DualRidge:
        """Factorise, in the memory of the kernel (n, n) on a CPU; the weights are (n,), λ is the regularization.

        ``n_observations`` is n, where it is not the sum of the weights: a kernel over several outputs has a row for each.
        """
        ridge = regularization * (weights.sum() if n_observations is None else n_observations) / weights
        factor, jitter = factorise(kernel, ridge, regularization)
        return cls(factor, ridge + jitter)

    @classmethod
    def factorise_stack(cls, kernels: list[Tensor], weights: list[Tensor], regularization: float) -> list[DualRidge]:
        """The same for systems of one size, in one call; where one of them fails, each alone."""
        stack, together = torch.stack(kernels), torch.stack(weights)
        ridge = regularization * together.sum(1, keepdim=True) / together
        stack.diagonal(dim1=1, dim2=2).add_(ridge)
        factors, info = torch.linalg.cholesky_ex(stack)
        found = [cls(factor, own) for factor, own in zip(factors, ridge, strict=True)]
        if bool((info != 0).any()) or any(not factor.condition <= _WORST_CONDITION for factor in found):
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
            parts.append(self.energy(units))
        return torch.cat(parts)

    def squared_inverse_trace(self, probes: int) -> float:
        """The trace of A⁻²: from the inverse, which costs twice the factorisation, or estimated."""
        if not probes:
            return float(torch.cholesky_inverse(self.factor).square().sum())
        return float(self.solve(random_signs(len(self.factor), probes, self.factor)).square().sum() / probes)

    def effect(self, points: Tensor) -> Tensor:
        """A⁻¹K(X, x). Shape (n, n_points)."""
        return self.solve(points.T)

    def posterior(self, points: Tensor, prior: Callable[[], Tensor]) -> Tensor:
        """K(x, x') − k(x)ᵀA⁻¹k(x'). Shape (n_points, n_points)."""
        known = self.whiten(points.T)
        return prior() - known.T @ known


def factorise(matrix: Tensor, ridge: Tensor | float, regularization: float) -> tuple[Tensor, float]:
    """Lower factor of a matrix with a ridge on its diagonal, and what had to be added there beyond that.

    An error says what to do where no jitter of `JITTERS`, times the mean of the diagonal, makes it positive definite.
    """
    diagonal = matrix.diagonal()
    scale = float(diagonal.mean())
    diagonal.add_(ridge)
    found = jittered_cholesky(matrix, scale)
    if found is None:
        raise SingularKernelError(_explain(matrix, regularization, scale))
    factor, jitter = found
    if jitter:
        _warn(
            f"the kernel matrix is singular to float64 at regularization={regularization:g}; {jitter * scale:.1e} was added to "
            "its diagonal. Raise regularization (try 1e-10) or remove duplicate rows to avoid this"
        )
    elif (condition := pivot_ratio(factor.diagonal())) > _WORST_CONDITION:
        _warn(
            f"the kernel matrix has a condition number of about {condition:.0e} at regularization={regularization:g}: expect "
            f"{-math.log10(condition * 1e-16):.0f} correct digits or fewer. Raise regularization (try 1e-10) or merge "
            "duplicate rows"
        )
    return factor, jitter * scale


def pivot_ratio(pivots: Tensor) -> float:
    """Estimate of a condition number, from below: the squared ratio of the diagonal entries of a Cholesky factor."""
    return float((pivots.max() / pivots.min()) ** 2)


def random_signs(n: int, columns: int, like: Tensor) -> Tensor:
    """Columns of ±1, always the same. Shape (n, columns)."""
    generator = torch.Generator().manual_seed(n)
    return torch.randint(0, 2, (n, columns), generator=generator).mul_(2).sub_(1).to(like)


def _warn(text: str) -> None:
    warnings.warn(text, ConditioningWarning, stacklevel=4)


def _explain(matrix: Tensor, regularization: float, scale: float) -> str:
    if not bool(torch.isfinite(matrix).all()):
        return OVERFLOW
    largest = float(torch.linalg.matrix_norm(matrix, ord=torch.inf))
    smallest = max(regularization * len(matrix), torch.finfo(matrix.dtype).eps * scale, torch.finfo(matrix.dtype).tiny)
    return (
        f"the kernel matrix is singular to float64 at regularization={regularization:g} (condition number about "
        f"{largest / smallest:.0e}), even with {JITTERS[-1] * scale:.1e} added to its diagonal; raise regularization "
        "(try 1e-6)"
    )
