"""Rows that leave-one-out errors are looked at of, and what these say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unseed._results import FloatArray
from unseed._state import Record, State


@dataclass(frozen=True)
class CheckedRows:
    """Training rows whose leave-one-out errors are looked at, in the user's units."""

    indices: npt.NDArray[np.int64]  # (m,)
    X: FloatArray  # (m, ...)
    y: FloatArray  # (m, n_outputs)

    def state(self) -> State:
        """Everything."""
        return {"indices": self.indices, "X": self.X, "y": self.y}

    @classmethod
    def restore(cls, record: Record, n_rows: int, row_shape: tuple[int, ...], n_outputs: int) -> CheckedRows:
        """From `state`: some of so many rows."""
        indices = record.array("indices", None, dtype="int64")
        if len(indices) == 0 or indices.min() < 0 or indices.max() >= n_rows:
            raise record.fault(f"rows to check are not among the {n_rows} rows")
        X = record.array("X", len(indices), *row_shape)
        return cls(indices.astype(np.int64), X, record.array("y", len(indices), n_outputs))


class LeftOutErrors(NamedTuple):
    """Leave-one-out errors of the checked rows and the posterior variance of the predictions, in the user's units."""

    errors: FloatArray  # (m, n_outputs)
    variance: FloatArray  # (m, n_outputs)
