"""Cholesky factors in the memory of the matrix they are made of."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

import torch
from scipy.linalg import cython_lapack
from torch import Tensor

from unseed._threads import threads_for

JITTERS = (1e-12, 1e-11, 1e-10)
"""Tried in this order, times the scale of the diagonal, when a Cholesky factorisation fails."""

_ROWS_AT_A_TIME = {"cpu": 64, "cuda": 1024}  # what the inner cache of a core holds; what a GPU is busy with


def lower_cholesky(matrix: Tensor) -> Tensor | None:
    """Lower factor of a symmetric matrix; None where it is not positive definite.

    On a CPU the factor takes the place of the lower triangle, and the upper one stays as it is (`restore` copies it back): no
    second matrix is needed. On a GPU, and where SciPy does not say where LAPACK is, the matrix is left alone.
    """
    routine = _routine(matrix.dtype) if matrix.device.type == "cpu" and matrix.is_contiguous() else None
    if routine is None:
        factor, status = torch.linalg.cholesky_ex(matrix)
        return factor if not int(status) and _is_finite(factor) else None
    size, failed = ctypes.c_int(len(matrix)), ctypes.c_int()
    with threads_for(len(matrix)):
        # LAPACK reads columns where we write rows: our lower triangle is its upper one.
        routine(b"U", size, matrix.data_ptr(), size, failed)
    return matrix if not failed.value and _is_finite(matrix) else None


def jittered_cholesky(
    matrix: Tensor, scale: float | Tensor, jitters: tuple[float, ...] = (0.0, *JITTERS)
) -> tuple[Tensor, float] | None:
    """Lower factor with the first of the jitters, times ``scale``, that makes one possible; and that jitter.

    None where even the last one does not help; the matrix is then whole again, but for the jitter.
    """
    diagonal = matrix.diagonal()
    bare = diagonal.clone()
    for jitter in jitters:
        diagonal.copy_(bare + jitter * scale)
        factor = lower_cholesky(matrix)
        if factor is not None:
            return factor, jitter
        restore(matrix)
    return None


@cache
def _routine(dtype: torch.dtype) -> Callable[..., None] | None:
    """LAPACK's factorisation as SciPy has it, called so that other threads of Python run meanwhile; None if it hides it.

    `scipy.linalg.lapack` would stop them; torch's own needs a second matrix, and half as long again on one thread.
    """
    capsule = getattr(cython_lapack, "__pyx_capi__", {}).get("dpotrf" if dtype == torch.float64 else "spotrf")
    if capsule is None:
        return None
    name, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    whole = ctypes.POINTER(ctypes.c_int)
    signature = ctypes.CFUNCTYPE(None, ctypes.c_char_p, whole, ctypes.c_void_p, whole, whole)
    return signature(pointer(capsule, name(capsule)))


def _is_finite(factor: Tensor) -> bool:
    return bool(torch.isfinite(factor.diagonal()).all())


def restore(matrix: Tensor) -> None:
    """Copy the upper triangle of a square matrix onto its lower one, a few rows at a time."""
    size = _ROWS_AT_A_TIME[matrix.device.type]
    for start in range(0, len(matrix), size):
        rows = slice(start, start + size)
        matrix[rows, :start] = matrix[:start, rows].T
        corner = matrix[rows, rows]
        corner.copy_(torch.triu(corner) + torch.triu(corner, 1).T)


def solve_with_factor(factor: Tensor, columns: Tensor) -> Tensor:
    """(L Lᵀ)⁻¹ times each column; what is above the diagonal of the factor is not read. Shape (n, c)."""
    white = torch.linalg.solve_triangular(factor, columns, upper=False)
    solved: Tensor = torch.linalg.solve_triangular(factor.mT, white, upper=True)
    return solved


def packed(factor: Tensor) -> Tensor:
    """The entries of a lower triangle, row by row: half of what the matrix takes. Shape (p (p + 1) / 2,)."""
    rows, columns = torch.tril_indices(*factor.shape, device=factor.device)
    return factor[rows, columns]


def unpacked(entries: Tensor, size: int) -> Tensor:
    """The lower triangle again. Shape (size, size)."""
    factor = entries.new_zeros(size, size)
    rows, columns = torch.tril_indices(size, size, device=entries.device)
    factor[rows, columns] = entries
    return factor
