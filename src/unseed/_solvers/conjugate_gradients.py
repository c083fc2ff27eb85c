"""Conjugate gradients for several columns at once, so that every pass over the matrix serves all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Product = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class IterativeSolution:
    """Solution of A x = b and how good it is.

    Attributes
    ----------
    solution : Tensor of shape (n, c)
    relative_residual : float
        ‖b − A x‖ / ‖b‖ of the worst column, from a product of its own and not from the recursion.
    iterations : int
    converged : bool
    """

    solution: Tensor
    relative_residual: float
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
    """Solve A x = b for a positive definite A that is known by its products only.

    Parameters
    ----------
    product : function of a Tensor of shape (n, c)
        A times each column.
    columns : Tensor of shape (n, c)
        b.
    precondition : function of a Tensor of shape (n, c)
        An approximate inverse of A, positive definite, times each column.
    tolerance : float
        Of ‖b − A x‖ / ‖b‖, column by column.
    max_iterations : int
    report : function
        Called after every iteration.
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
