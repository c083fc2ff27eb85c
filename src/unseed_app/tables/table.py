"""A table as it was read, where its rows stand in the file, and words for what is in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from unseed._machine import available_bytes, gigabytes
from unseed.errors import InvalidInputError
from unseed_app.tables.cells import Cells


@dataclass(frozen=True)
class Table:
    """Columns as they stand in a file: text from CSV, typed from Parquet, one or the other from Excel.

    Attributes
    ----------
    frame : pandas.DataFrame
    source : str
        The file, as the user named it.
    notes : tuple of str
        What was read in another way than it stands there.
    lines : array of shape (n_rows,) or None
        Where each row begins in the file, counted from 1.
    line_word : str
        What such a line is called: ``"line"`` of a text, ``"sheet row"`` of a workbook.

    Examples
    --------
    >>> table = Table(pd.DataFrame({"age": ["3", "x"]}), "ages.csv", lines=np.array([2, 3]))
    >>> table.place(1, "age")
    "ages.csv, row 2 (line 3), column 'age'"
    """

    frame: pd.DataFrame
    source: str
    notes: tuple[str, ...] = ()
    lines: npt.NDArray[np.int64] | None = None
    line_word: str = "line"

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
        return Cells.of(self.frame[name])

    def place(self, row: int, column: str | None = None) -> str:
        """Where a cell is, in words; rows count from 1."""
        line = "" if self.lines is None else f" ({self.line_word} {self.lines[row]})"
        return f"{self.source}, row {row + 1}{line}" + ("" if column is None else f", column {column!r}")


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
