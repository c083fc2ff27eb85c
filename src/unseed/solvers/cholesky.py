"""Cholesky factors in the memory of the matrix they are made of."""

from __future__ import annotations

import torch
from scipy.linalg import lapack
from torch import Tensor

from unseed.machine import finish, on_all_cores, one_thread

_ROUTINES = {torch.float64: lapack.dpotrf, torch.float32: lapack.spotrf}
_ROWS_AT_A_TIME = 512

TILED_ROWS, TILE = 512, 256
"""From so many rows on, a factorisation goes in tiles of so many rows: for several cores, and so that other threads can run."""

LIBRARY_ROWS = 4096
"""From so many rows on, the library divides every operation among the cores: the fastest way where they are free."""


def lower_cholesky(matrix: Tensor) -> Tensor | None:
    """Lower factor of a symmetric matrix; None where it is not positive definite.

    On a CPU the factor takes the place of the lower triangle, and the upper one stays as it is (`restore` copies it back): no
    second matrix is needed. On a GPU the matrix is left alone.
    """
    if matrix.device.type != "cpu" or not matrix.is_contiguous():
        factor, status = torch.linalg.cholesky_ex(matrix)
        return factor if not int(status) and _is_finite(factor) else None
    threads = torch.get_num_threads()
    if threads > 1 and len(matrix) >= LIBRARY_ROWS:
        return matrix if _in_place(matrix) and _is_finite(matrix) else None
    with one_thread():
        done = _by_tiles(matrix, threads) if len(matrix) >= TILED_ROWS else _in_place(matrix)
    return matrix if done and _is_finite(matrix) else None


def _in_place(matrix: Tensor) -> bool:
    # LAPACK reads columns where we write rows: our lower triangle is its upper one.
    _, info = _ROUTINES[matrix.dtype](matrix.numpy().T, lower=0, overwrite_a=1, clean=0)
    return int(info) == 0


def _by_tiles(matrix: Tensor, threads: int) -> bool:
    """The factorisation in tiles, whole tiles for each core.

    A tenth slower than a library that divides every operation among the cores, and many times faster where one of them is
    taken away by other work: nobody waits in the middle of an operation. The library's own function, as SciPy calls it, also
    lets no other thread of Python run meanwhile; it does the corners only.
    """
    n = len(matrix)
    tiles = [slice(start, min(start + TILE, n)) for start in range(0, n, TILE)]
    for k, here in enumerate(tiles):
        corner = matrix[here, here].contiguous()
        if not _in_place(corner):
            return False
        matrix[here, here] = corner
        below = tiles[k + 1 :]

        def divide(rows: slice, here: slice = here, corner: Tensor = corner) -> None:
            panel = matrix[rows, here]
            panel.copy_(torch.linalg.solve_triangular(corner.mT, panel, upper=True, left=False))

        def take_off(rows: slice, here: slice = here) -> None:
            panel = matrix[rows, here]
            matrix[rows, here.stop : rows.start].addmm_(panel, matrix[here.stop : rows.start, here].T, alpha=-1.0)
            diagonal = matrix[rows, rows]
            less = torch.addmm(diagonal, panel, panel.T, alpha=-1.0)
            diagonal.copy_(torch.tril(less) + torch.triu(diagonal, 1))  # the upper triangle stays

        for step in (divide, take_off):
            finish(on_all_cores(step, reversed(below), matrix.device, threads))
    return True


def _is_finite(factor: Tensor) -> bool:
    return bool(torch.isfinite(factor.diagonal()).all())


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
