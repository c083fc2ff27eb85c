"""Weighted kernel ridge regression: factorise once, solve for as many label columns as there are."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from unseed._solvers.cholesky import lower_cholesky, restore, solve_with_factor
from unseed.errors import ConditioningWarning, SingularKernelError

OVERFLOW = "the kernel matrix overflows float64: the inputs are too large; use standardize=True or scale the features"

WORST_CONDITION = 1e12
"""Above it a solve has fewer than four correct digits, and a warning says so."""

EXACT_TRACE_ROWS = 2048
"""Up to here the trace behind a noise variance is exact; beyond, random columns estimate it, mostly to 1 %."""

_NUMBERS_AT_A_TIME = 1 << 22
_TRACE_PROBES = 64
_AMPLITUDE_ROWS = 500

JITTERS = (1e-12, 1e-11, 1e-10)
"""Tried in this order, times the mean diagonal of the kernel, when a Cholesky factorisation fails."""


@dataclass(frozen=True)
class WeightedRidge:
    """Cholesky factor of A = K + λ n W⁻¹, W the diagonal of the counts and n their sum.

    A count of c is exactly a row that is there c times; rows with count 0 must have been left out.
    """

    factor: Tensor  # (n, n); the lower triangle, what is above it is not part of it
    ridge: Tensor  # (n,) what was added to the diagonal of K

    @classmethod
    def factorise(
        cls, kernel: Tensor, counts: Tensor, regularization: float, n_observations: float | None = None
    ) -> WeightedRidge:
        """Factorise, in the memory of ``kernel`` on a CPU.

        Parameters
        ----------
        kernel : Tensor of shape (n, n)
        counts : Tensor of shape (n,)
        regularization : float
            λ.
        n_observations : float or None
            n, where it is not the sum of the counts: a kernel over several outputs has a row for each of them.

        Raises
        ------
        SingularKernelError
            When no jitter of `JITTERS` makes the matrix positive definite.
        """
        ridge = regularization * (counts.sum() if n_observations is None else n_observations) / counts
        diagonal = kernel.diagonal()
        bare = diagonal.clone()
        scale = float(bare.mean())
        for jitter in (0.0, *JITTERS):
            diagonal.copy_(bare + ridge + jitter * scale)
            factor = lower_cholesky(kernel)
            if factor is not None:
                if jitter:
                    _warn_of_jitter(jitter * scale, regularization)
                solved = cls(factor, ridge + jitter * scale)
                if not jitter and solved.condition > WORST_CONDITION:
                    _warn_of_condition(solved.condition, regularization)
                return solved
            restore(kernel)
        raise SingularKernelError(_explain(kernel, regularization, scale))

    @classmethod
    def factorise_stack(cls, kernels: list[Tensor], counts: list[Tensor], regularization: float) -> list[WeightedRidge]:
        """The same for systems of one size, in one call; where one of them fails, each alone."""
        stack, together = torch.stack(kernels), torch.stack(counts)
        ridge = regularization * together.sum(1, keepdim=True) / together
        stack.diagonal(dim1=1, dim2=2).add_(ridge)
        factors, info = torch.linalg.cholesky_ex(stack)
        found = [cls(factor, own) for factor, own in zip(factors, ridge, strict=True)]
        if bool((info != 0).any()) or any(not factor.condition <= WORST_CONDITION for factor in found):
            return [cls.factorise(kernel, count, regularization) for kernel, count in zip(kernels, counts, strict=True)]
        return found

    @property
    def condition(self) -> float:
        """Estimate of the condition number, from below: the squared ratio of the factor's diagonal entries."""
        pivots = self.factor.diagonal()
        return float((pivots.max() / pivots.min()) ** 2)

    def solve(self, columns: Tensor) -> Tensor:
        """A⁻¹ times each column. Shape (n, c)."""
        return solve_with_factor(self.factor, columns)

    def residual(self, labels: Tensor) -> Tensor:
        """Labels minus fit, from K A⁻¹ = I − ridge A⁻¹: no second product with the kernel. Shape (n, c)."""
        return self.ridge[:, None] * self.solve(labels)

    def whiten(self, columns: Tensor) -> Tensor:
        """L⁻¹ times each column, so that products of two results are cᵀA⁻¹c'. Shape (n, c)."""
        white: Tensor = torch.linalg.solve_triangular(self.factor, columns, upper=False)
        return white

    def inverse_diagonal(self, rows: Tensor) -> Tensor:
        """(A⁻¹)_ii for some of the rows. Shape (len(rows),)."""
        n = len(self.factor)
        parts = []
        for chunk in torch.split(rows, max(1, _NUMBERS_AT_A_TIME // n)):
            units = self.factor.new_zeros(n, len(chunk))
            units[chunk, torch.arange(len(chunk), device=rows.device)] = 1.0
            parts.append(self.whiten(units).square().sum(0))
        return torch.cat(parts)

    def amplitude(self, labels: Tensor) -> Tensor:
        """Factor on the kernel that makes the labels most probable, zᵀA⁻¹z/n, column by column. Shape (c,).

        Where the ridge is far too small for the noise (a λ chosen on other rows, or by hand), this is too large by orders of
        magnitude; leave-one-out errors then say so, and their mean square over what is expected of them is taken instead.
        """
        n = len(labels)
        likeliest = self.whiten(labels).square().mean(0)
        rows = torch.arange(0, n, max(1, n // _AMPLITUDE_ROWS), device=labels.device)
        left_out = (self.solve(labels)[rows].square() / self.inverse_diagonal(rows)[:, None]).mean(0)
        return torch.where(left_out < likeliest / 2, left_out, likeliest)

    def noise_moments(self, labels: Tensor, probes: int | None = None) -> tuple[Tensor, float]:
        """Sum of squares and trace whose ratio estimates the noise variance, for counts of one.

        With H the smoother, ‖(I − H) y‖² has expectation σ² tr (I − H)ᵀ(I − H) plus a squared bias. Here I − H is a
        multiple λn of A⁻¹; without the λ both sides stay finite however small it is, and the n keeps batches of
        different sizes comparable.

        Parameters
        ----------
        labels : Tensor of shape (n, c)
        probes : int or None
            Random columns for the trace, tr A⁻² = E‖A⁻¹ z‖²; the exact one costs twice the factorisation. None is exact up to
            `EXACT_TRACE_ROWS` rows and 64 beyond.
        """
        n = len(labels)
        if probes is None:
            probes = 0 if n <= EXACT_TRACE_ROWS else _TRACE_PROBES
        if not probes:
            inverse = torch.cholesky_inverse(self.factor)
            return (n * (inverse @ labels)).square().sum(0), float(n**2 * inverse.square().sum())
        signs = random_signs(n, probes, labels)
        return (n * self.solve(labels)).square().sum(0), float(n**2 * self.solve(signs).square().sum() / probes)


def random_signs(n: int, columns: int, like: Tensor) -> Tensor:
    """Columns of ±1, always the same. Shape (n, columns)."""
    generator = torch.Generator().manual_seed(n)
    return torch.randint(0, 2, (n, columns), generator=generator).mul_(2).sub_(1).to(like)


def _warn_of_jitter(jitter: float, regularization: float) -> None:
    warnings.warn(
        f"the kernel matrix is singular to float64 at regularization={regularization:g}; {jitter:.1e} was added to its "
        "diagonal. Raise regularization (try 1e-10) or remove duplicate rows to avoid this",
        ConditioningWarning,
        stacklevel=3,
    )


def _warn_of_condition(condition: float, regularization: float) -> None:
    warnings.warn(
        f"the kernel matrix has a condition number of about {condition:.0e} at regularization={regularization:g}: expect "
        f"{-math.log10(condition * 1e-16):.0f} correct digits or fewer. Raise regularization (try 1e-10) or merge "
        "duplicate rows",
        ConditioningWarning,
        stacklevel=3,
    )


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
