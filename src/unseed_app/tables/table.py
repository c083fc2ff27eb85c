"""A table as it was read: what its cells say, where they stand in the file, and words for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from unseed._machine import available_bytes, gigabytes
from unseed._results import FloatArray
from unseed.errors import InvalidInputError

MISSING = frozenset({"", "na", "n/a", "nan", "null", "<na>", "#n/a", "?"})
"""Texts that stand for a missing value, in capitals or not."""

_LONGEST = 1e22  # of the numbers that are written digit by digit


@dataclass(frozen=True)
class Table:
    """Columns as they stand in a file: text from CSV, typed from Parquet, one or the other from Excel."""

    frame: pd.DataFrame
    source: str  # the file, as the user named it
    notes: tuple[str, ...] = ()  # what was read in another way than it stands there
    lines: npt.NDArray[np.int64] | None = None  # where each row begins in the file, counted from 1
    line_word: str = "line"  # or "sheet row" of a workbook

    @classmethod
    def of(cls, frame: pd.DataFrame, names: Sequence[str], source: str, notes: Sequence[str] = (), **places: Any) -> Table:
        """A table whose columns have these names, without spaces around them; ``places`` are ``lines`` and ``line_word``."""
        stripped, first = [name.strip() for name in names], dict[str, int]()
        for i, name in enumerate(stripped):
            if not name:
                raise InvalidInputError(f"{source}, header: column {i + 1} has no name")
            if first.setdefault(name, i) != i:
                raise InvalidInputError(
                    f"{source}, header: the name {name!r} is there twice, for columns {first[name] + 1} and {i + 1}; "
                    "give every column its own"
                )
        if n_changed := sum(map(str.__ne__, stripped, names)):
            notes = [*notes, f"spaces around {counted(n_changed, 'column name')} were taken away"]
        return cls(frame.set_axis(pd.Index(stripped, dtype=object), axis=1), source, tuple(notes), **places)

    @property
    def names(self) -> list[str]:
        """Names of the columns, in the order of the file."""
        return list(self.frame.columns)

    def __len__(self) -> int:
        return len(self.frame)

    def cells(self, name: str) -> Cells:
        """What the cells of a column say."""
        column, kind = self.frame[name], "number"
        if pd.api.types.is_bool_dtype(column.dtype):
            kind = "boolean"
        elif pd.api.types.is_datetime64_any_dtype(column.dtype) or "date" in str(column.dtype):
            times = pd.to_datetime(column.astype(object), utc=True).dt.tz_localize(None)
            kind, column = "date", (times - pd.Timestamp(0)) / pd.Timedelta(days=1)
        elif not pd.api.types.is_numeric_dtype(column.dtype):
            texts = ["" if gone else str(text).strip() for text, gone in zip(column.tolist(), column.isna(), strict=True)]
            missing = np.array([text.lower() in MISSING for text in texts], dtype=bool)
            return Cells(self, name, "text", np.array(texts, dtype=object), missing)
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return Cells(self, name, kind, values, np.isnan(values))

    def place(self, row: int, column: str | None = None) -> str:
        """Where a cell is, in words; rows count from 1."""
        line = "" if self.lines is None else f" ({self.line_word} {self.lines[row]})"
        return f"{self.source}, row {row + 1}{line}" + ("" if column is None else f", column {column!r}")


@dataclass(frozen=True)
class Cells:
    """One column, as far as it can be told without knowing what it is for."""

    table: Table
    name: str
    kind: str  # "number", "boolean", "date" or "text", which may still turn out to be one of the others
    values: npt.NDArray[Any]  # float64 (truth values are 0 and 1, times days since 1970), or str without spaces around it
    missing: npt.NDArray[np.bool_]

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
        return replace(self, kind="text", values=np.array(texts, dtype=object))

    def translated(self, meaning: Callable[[str], float]) -> FloatArray:
        """What the cells mean as text, every different one asked once; NaN where one means nothing, and where it is missing."""
        cells = self.as_text()
        known = {text: meaning(text) for text in set(cells.present)}
        return np.array([known.get(text, np.nan) for text in cells.values.tolist()], dtype=np.float64)

    def first_place(self, where: npt.NDArray[np.bool_]) -> str:
        """Where the first cell is of which something holds, in words."""
        return self.table.place(int(np.argmax(where)), self.name)


def counted(n: int, word: str) -> str:
    """A number with its noun."""
    return f"{n:,} {word}" + ("" if n == 1 else "s")


def listed(names: Sequence[str], at_most: int = 5) -> str:
    """Names in quotes, the first few of many; control characters come out as escapes."""
    shown = ", ".join(repr(name if len(name) <= 60 else name[:60] + "…") for name in names[:at_most])
    return shown + (f" and {len(names) - at_most:,} more" if len(names) > at_most else "")


def check_fits(source: str, n_bytes: int, needed_per_byte: int = 1) -> None:
    """Refuse a file that unpacks to more than the memory that is left: what it says of its size is not allocated untested."""
    if n_bytes < 0 or n_bytes * needed_per_byte > available_bytes(torch.device("cpu")):
        raise InvalidInputError(
            f"{source} unpacks to {gigabytes(n_bytes)} by its own account, more than this machine has memory for; "
            "give it in parts"
        )
