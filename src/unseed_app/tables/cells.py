"""What the cells of a column say: numbers, truth values, dates or text, and which are missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from unseed._results import FloatArray

MISSING = frozenset({"", "na", "n/a", "nan", "null", "<na>", "#n/a", "?"})
"""Texts that stand for a missing value, in capitals or not."""

_LONGEST = 1e22  # of the numbers that are written digit by digit


@dataclass(frozen=True)
class Cells:
    """One column, as far as it can be told without knowing what it is for.

    Attributes
    ----------
    kind : {"number", "boolean", "date", "text"}
        Of the values; text may still turn out to be numbers.
    values : array of shape (n_rows,)
        float64 (truth values are 0 and 1, times days since 1970), or objects of str without spaces around them.
    missing : array of bool, shape (n_rows,)

    Examples
    --------
    >>> Cells.of(pd.Series(["1", " 2.5", "NA"])).missing.tolist()
    [False, False, True]
    """

    kind: Literal["number", "boolean", "date", "text"]
    values: npt.NDArray[Any]
    missing: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, column: pd.Series) -> Cells:
        """Look at a column of a frame."""
        kind: Literal["number", "boolean", "date"] = "number"
        if pd.api.types.is_bool_dtype(column.dtype):
            kind = "boolean"
        elif pd.api.types.is_datetime64_any_dtype(column.dtype) or "date" in str(column.dtype):
            times = pd.to_datetime(column.astype(object), utc=True).dt.tz_localize(None)
            kind, column = "date", (times - pd.Timestamp(0)) / pd.Timedelta(days=1)
        elif not pd.api.types.is_numeric_dtype(column.dtype):
            texts = ["" if gone else str(text).strip() for text, gone in zip(column.tolist(), column.isna(), strict=True)]
            return cls("text", np.array(texts, dtype=object), np.array([text.lower() in MISSING for text in texts], dtype=bool))
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return cls(kind, values, np.isnan(values))

    @property
    def present(self) -> list[Any]:
        """Values that are not missing."""
        return list(self.values[~self.missing].tolist())

    def as_text(self) -> Cells:
        """The same as text: whole numbers without a point."""
        if self.kind == "text":
            return self
        known = {
            value: f"{value:.0f}" if value % 1 == 0 and abs(value) < _LONGEST else repr(value) for value in set(self.present)
        }
        texts = [known.get(value, "") for value in self.values.tolist()]
        return Cells("text", np.array(texts, dtype=object), self.missing)

    def translated(self, meaning: Callable[[str], float]) -> FloatArray:
        """What the cells mean as text, every different one asked once; NaN where one means nothing, and where it is missing."""
        cells = self.as_text()
        known = {text: meaning(text) for text in set(cells.present)}
        return np.array([known.get(text, np.nan) for text in cells.values.tolist()], dtype=np.float64)
