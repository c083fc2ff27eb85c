"""`compress`: a smaller model beside the one that is there, with what that has changed."""

from __future__ import annotations

from typing import Any

import numpy as np

from unseed._checks import check_whole_number
from unseed._persistence import Compression
from unseed._results import Estimate
from unseed.errors import InvalidInputError

DTYPES = "float64", "float32"


def check_dtype(dtype: object) -> str:
    """Return the dtype that rows can have."""
    if dtype not in DTYPES or not isinstance(dtype, str):
        raise InvalidInputError(f"dtype={dtype!r} is not known; use 'float32' or 'float64'")
    return dtype


def check_anchors(anchors: Any, n_rows: int) -> int | None:
    """Return the number of rows to keep, or None for all."""
    if anchors is None:
        return None
    check_whole_number("anchors", anchors, at_least=1)
    if anchors >= n_rows:
        raise InvalidInputError(f"anchors={anchors} must be less than the {n_rows} rows that the model has")
    return int(anchors)


def measured(before: Estimate, after: Estimate, dtype: str, rows: tuple[int, int], sizes: tuple[int, int]) -> Compression:
    """How far predictions and standard errors have moved.

    Parameters
    ----------
    before, after : Estimate
        At the same points.
    dtype : str
    rows : tuple of int
        Rows before and after.
    sizes : tuple of int
        Bytes before and after.
    """
    changes = after.centre - before.centre, after.standard_error - before.standard_error
    figures = [
        tuple(map(float, summary))
        for change in changes
        for summary in (np.abs(change).max(axis=0), np.sqrt(np.mean(change**2, axis=0)))
    ]
    return Compression(dtype, *rows, *sizes, len(before.centre), *figures)
