"""Solves by iteration: conjugate gradients, and what they make of a factor in float32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from unseed._solvers.cholesky import lower_cholesky, solve_with_factor
from unseed._solvers.ridge import DualRidge

Product = Callable[[Tensor], Tensor]

_SAFE_RESIDUAL = 1e-11  # relative, that proves a float32 factor to do; a float64 factor leaves about 1e-13
_WORTHWHILE_ITERATIONS = 12  # more would cost what the smaller factor has saved


@dataclass(frozen=True)
class IterativeSolution:
    """Solution of A x = b and how good it is."""

    solution: Tensor  # (n, c)
    relative_residual: float  # ‖b − A x‖ / ‖b‖ of the worst column, from a product of its own and not from the recursion
    iterations: int
    converged: bool


def conjugate_gradients(
    product: Product,
    columns: Tensor,
    precondition: Product,
    *,
    tolerance: float,
    max_iterations: int,
    report: Callable[[], None] = lambda: None,
) -> IterativeSolution:
    """Solve A x = b for several columns (n, c) at once, so that every pass over A serves all of them.

    ``product`` and ``precondition`` multiply columns by A and by an approximate inverse of it, both positive definite. The
    tolerance is that of ‖b − A x‖ / ‖b‖, column by column; ``report`` is called after every iteration.
    """
    norms = torch.linalg.vector_norm(columns, dim=0)
    scale = torch.where(norms > 0, norms, 1.0)
    solution, residual = torch.zeros_like(columns), columns.clone()
    direction = step = precondition(residual)
    energy = (residual * step).sum(0)
    iterations = 0
    while iterations < max_iterations and float((torch.linalg.vector_norm(residual, dim=0) / scale).max()) > tolerance:
        image = product(direction)
        length = _ratio(energy, (direction * image).sum(0))  # of a column that is solved exactly: 0
        solution += length * direction
        residual = residual - length * image
        step = precondition(residual)
        previous, energy = energy, (residual * step).sum(0)
        direction = step + _ratio(energy, previous) * direction
        iterations += 1
        report()
    left = float((torch.linalg.vector_norm(columns - product(solution), dim=0) / scale).max())
    return IterativeSolution(solution, left, iterations, left <= 2 * tolerance)


def _ratio(numerator: Tensor, denominator: Tensor) -> Tensor:
    return torch.where(denominator > 0, numerator / torch.where(denominator > 0, denominator, 1.0), 0.0)


def solve_ridge(kernel: Tensor, weights: Tensor, regularization: float, columns: Tensor, *, is_mixed: bool) -> Tensor:
    """(K + λ n W⁻¹)⁻¹ times each column where no factor is kept; the kernel is overwritten.

    With ``is_mixed`` by a float32 factor where that is safe, and by a float64 one elsewhere.
    """
    if is_mixed:
        bare = kernel.diagonal().clone()
        kernel.diagonal().add_(regularization * weights.sum() / weights)
        refined = solve_mixed(kernel, columns)
        if refined is not None:
            return refined
        kernel.diagonal().copy_(bare)
    return DualRidge.factorise(kernel, weights, regularization).solve(columns)


def solve_mixed(matrix: Tensor, columns: Tensor) -> Tensor | None:
    """Solve A x = b in float64 with a factor of A in float32: half the time and memory of a float64 factor.

    The matrix is left as it is. None where it is too near to singular for float32: use a float64 factor then.
    """
    factor = lower_cholesky(matrix.to(torch.float32))
    if factor is None:
        return None

    def precondition(residual: Tensor) -> Tensor:
        scale = residual.abs().amax(0).clamp_min(torch.finfo(residual.dtype).tiny)  # small residuals stay within float32
        return solve_with_factor(factor, (residual / scale).to(torch.float32)).to(residual.dtype) * scale

    found = conjugate_gradients(
        lambda v: matrix @ v, columns, precondition, tolerance=_SAFE_RESIDUAL, max_iterations=_WORTHWHILE_ITERATIONS
    )
    return found.solution if found.converged else None
