"""Weighted ridge regression: what both of its forms answer, and what follows from their answers."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from unseed._solvers.cholesky import JITTERS, jittered_cholesky
from unseed.errors import ConditioningWarning, SingularKernelError

OVERFLOW = "the kernel matrix overflows float64: the inputs are too large; use standardize=True or scale the features"

WORST_CONDITION = 1e12
"""Above it a solve has fewer than four correct digits, and a warning says so."""

EXACT_TRACE_ROWS = 2048
"""Up to here the trace behind a noise variance is exact; beyond, random columns estimate it, mostly to 1 %."""

_TRACE_PROBES = 64
_AMPLITUDE_ROWS = 500


class WeightedRidge(Protocol):
    """A = K + λ n W⁻¹, W the diagonal of the weights and n their sum, factorised once for any labels.

    A weight of c is exactly a row that is there c times; rows with weight 0 must have been left out. `DualRidge` is made of
    the kernel K of the rows, `PrimalRidge` of features φ with K = ΦΦᵀ. New points are rows of what the ridge is made of: their
    kernel with the rows, or their features.

    Attributes
    ----------
    ridge : Tensor of shape (n,)
        What was added to the diagonal of K, jitter included.
    jitter : float
        What was added beyond λ, for the matrix to have a factor; 0 for most.
    """

    ridge: Tensor
    jitter: float

    @property
    def condition(self) -> float:
        """Estimate, from below, of the condition number of A: the squared ratio of its pivots."""
        ...

    def solve(self, columns: Tensor) -> Tensor:
        """A⁻¹ times each column: of labels, their dual weights. Shape (n, c)."""
        ...

    def energy(self, labels: Tensor) -> Tensor:
        """zᵀA⁻¹z, column by column. Shape (c,)."""
        ...

    def inverse_diagonal(self, rows: Tensor) -> Tensor:
        """(A⁻¹)_ii for some of the rows. Shape (len(rows),)."""
        ...

    def inverse_moments(self, labels: Tensor, probes: int) -> tuple[Tensor, float]:
        """A⁻¹ times the labels, and tr A⁻², estimated from so many random columns if that is cheaper; 0 for exactly."""
        ...

    def predict(self, points: Tensor, dual: Tensor) -> Tensor:
        """Fit with these dual weights (n, c). Shape (n_points, c)."""
        ...

    def effect(self, points: Tensor) -> Tensor:
        """c(x) = A⁻¹K(X, x): how far each label moves each prediction. Shape (n, n_points)."""
        ...

    def posterior(self, points: Tensor, prior: Callable[[], Tensor]) -> Tensor:
        """K(x, x') − k(x)ᵀA⁻¹k(x'); ``prior`` makes the first term where it is needed. Shape (n_points, n_points)."""
        ...

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

    def noise_moments(self, labels: Tensor, probes: int | None = None) -> tuple[Tensor, float]:
        """Sum of squares and trace whose ratio estimates the noise variance, for weights of one.

        With H the smoother, ‖(I − H) y‖² has expectation σ² tr (I − H)ᵀ(I − H) plus a squared bias. Here I − H is a
        multiple λn of A⁻¹; without the λ both sides stay finite however small it is, and the n keeps batches of
        different sizes comparable.

        Parameters
        ----------
        labels : Tensor of shape (n, c)
        probes : int or None
            Random columns for the trace, tr A⁻² = E‖A⁻¹ z‖², where an exact one costs twice the factorisation. None is exact
            up to `EXACT_TRACE_ROWS` rows and 64 beyond.
        """
        n = len(labels)
        if probes is None:
            probes = 0 if n <= EXACT_TRACE_ROWS else _TRACE_PROBES
        solved, trace = self.inverse_moments(labels, probes)
        return (n * solved).square().sum(0), n**2 * trace


def factorise(matrix: Tensor, scale: float, regularization: float) -> tuple[Tensor, float]:
    """Lower factor of a matrix that already has its ridge, and what had to be added to its diagonal beyond that.

    Raises
    ------
    SingularKernelError
        When no jitter of `JITTERS`, times ``scale``, makes the matrix positive definite.
    """
    found = jittered_cholesky(matrix, scale)
    if found is None:
        raise SingularKernelError(_explain(matrix, regularization, scale))
    factor, jitter = found
    if jitter:
        _warn(
            f"the kernel matrix is singular to float64 at regularization={regularization:g}; {jitter * scale:.1e} was added to "
            "its diagonal. Raise regularization (try 1e-10) or remove duplicate rows to avoid this"
        )
    elif (condition := pivot_ratio(factor.diagonal())) > WORST_CONDITION:
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
