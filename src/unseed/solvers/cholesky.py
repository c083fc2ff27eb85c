"""Cholesky factors in the memory of the matrix they are made of."""

from __future__ import annotations

import torch
from scipy.linalg import lapack
from torch import Tensor

_ROUTINES = {torch.float64: lapack.dpotrf, torch.float32: lapack.spotrf}
_ROWS_AT_A_TIME = 512


def lower_cholesky(matrix: Tensor) -> Tensor | None:
    """Lower factor of a symmetric matrix; None where it is not positive definite.

    On a CPU the factor takes the place of the lower triangle, and the upper one stays as it is (`restore` copies it back): no
    second matrix is needed. On a GPU the matrix is left alone.
    """
    if matrix.device.type == "cpu" and matrix.is_contiguous():
        # LAPACK reads columns where we write rows: our lower triangle is its upper one.
        _, info = _ROUTINES[matrix.dtype](matrix.numpy().T, lower=0, overwrite_a=1, clean=0)
        factor = matrix
    else:
        factor, status = torch.linalg.cholesky_ex(matrix)
        info = int(status)
    return factor if info == 0 and bool(torch.isfinite(factor.diagonal()).all()) else None


def restore(matrix: Tensor) -> None:
    """Copy the upper triangle of a square matrix onto its lower one, a few rows at a time."""
    for start in range(0, len(matrix), _ROWS_AT_A_TIME):
        rows = slice(start, start + _ROWS_AT_A_TIME)
        matrix[rows, :start] = matrix[:start, rows].T
        corner = matrix[rows, rows]
        corner.copy_(torch.triu(corner) + torch.triu(corner, 1).T)


def solve_with_factor(factor: Tensor, columns: Tensor) -> Tensor:
    """(L Lᵀ)⁻¹ times each column; what is above the diagonal of the factor is not read. Shape (n, c)."""
    white = torch.linalg.solve_triangular(factor, columns, upper=False)
    solved: Tensor = torch.linalg.solve_triangular(factor.mT, white, upper=True)
    return solved
