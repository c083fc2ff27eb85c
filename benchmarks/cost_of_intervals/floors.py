"""Work that cannot be avoided, by torch and NumPy alone: nothing of ours runs here, so a slower kernel shows against it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from unseed._results import FloatArray

Job = Callable[[], Any]


def arccos(*shape: int) -> tuple[Job, ...]:
    """Elementwise arccos into memory that is there, by torch and by NumPy: every entry of a kernel has one, at least."""
    cosines = np.random.default_rng(0).uniform(-0.99, 0.99, shape)
    into = np.empty(shape)
    tensor, result = torch.from_numpy(cosines), torch.from_numpy(into)
    return lambda: torch.acos(tensor, out=result), lambda: np.arccos(cosines, out=into)


def products(X: FloatArray) -> tuple[Job, ...]:
    """X Xᵀ, of every set of a stack, into memory that is there, by torch and by NumPy."""
    into, transposed = np.empty((*X.shape[:-1], X.shape[-2])), X.swapaxes(-1, -2)
    left, right, result = (torch.from_numpy(values) for values in (X, transposed, into))
    return lambda: torch.matmul(left, right, out=result), lambda: np.matmul(X, transposed, out=into)


def cholesky(X: FloatArray) -> Job:
    """Factorisation of X Xᵀ + n 1, of every set of a stack: how long it takes hardly depends on the numbers."""
    matrix = torch.from_numpy(X @ X.swapaxes(-1, -2) + X.shape[-2] * np.eye(X.shape[-2]))
    return lambda: torch.linalg.cholesky(matrix)


def entries(X: FloatArray) -> Job:
    """Both that a Gram matrix is made of, by torch."""
    elementwise, product = arccos(len(X), len(X))[0], products(X)[0]
    return lambda: (elementwise(), product())
