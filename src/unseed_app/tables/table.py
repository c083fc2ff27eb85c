"""A table as it was read, and where its rows stand in the file."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unseed._progress import Progress
from unseed.errors import InvalidInputError
from unseed_app.tables.cells import looks_like_number

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Options:
    """How a file is to be read: the delimiter of a text, the sheet of a workbook (None finds them), and who watches."""

    delimiter: str | None
    sheet: str | None
    progress: Progress


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
    >>> import pandas as pd
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
        """A table whose columns have these names, as they stand in the file; ``places`` are ``lines`` and ``line_word``."""
        import pandas as pd

        checked, changes = _checked_names(names, source)
        frame.columns = pd.Index(checked, dtype=object)
        return cls(frame, source, (*notes, *changes), **places)

    @property
    def names(self) -> list[str]:
        """Names of the columns, in the order of the file."""
        return list(self.frame.columns)

    def __len__(self) -> int:
        return len(self.frame)

    def place(self, row: int, column: str | None = None) -> str:
        """Where a cell is, in words; rows count from 1."""
        line = "" if self.lines is None else f" ({self.line_word} {self.lines[row]})"
        return f"{self.source}, row {row + 1}{line}" + ("" if column is None else f", column {column!r}")


def named_columns(option: str, text: str, table: Table) -> list[str]:
    """Columns that an option names, with commas between them; a name that has commas itself is taken as it is.

    Examples
    --------
    >>> import pandas as pd
    >>> table = Table(pd.DataFrame({"a": [1], "b": [2], "a,b": [3]}), "three.csv")
    >>> named_columns("target", "b, a", table), named_columns("target", "a,b", table)
    (['b', 'a'], ['a,b'])
    """
    if text in table.names:
        return [text]
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in table.names:
            there = f"it has {listed(table.names)}"
            if close := _closest(name, table.names):
                there = f"did you mean {listed([close])}?"
            elif all(map(looks_like_number, table.names)):
                there += "; is the first line of the file a header?"
            raise InvalidInputError(f"{option} {name!r} is not a column of {table.source}; {there}")
    if twice := [name for name, n in Counter(names).items() if n > 1]:
        raise InvalidInputError(f"{option} names {twice[0]!r} twice")
    return names


def _closest(name: str, names: Sequence[str]) -> str:
    """A name that was probably meant, however it is capitalised; nothing where there is none."""
    plain = {other.casefold(): other for other in names}
    close = difflib.get_close_matches(name.casefold(), plain, n=1, cutoff=0.8)
    return plain[close[0]] if close else ""


def _checked_names(names: Sequence[str], source: str) -> tuple[list[str], list[str]]:
    """Names without spaces around them, all there and all different; and notes about what was changed."""
    stripped = [name.strip() for name in names]
    first: dict[str, int] = {}
    for i, name in enumerate(stripped):
        if not name:
            raise InvalidInputError(f"{source}, header: column {i + 1} has no name")
        if name in first:
            raise InvalidInputError(
                f"{source}, header: the name {name!r} is there twice, for columns {first[name] + 1} and {i + 1}; "
                "give every column its own"
            )
        first[name] = i
    n_changed = sum(name != given for name, given in zip(stripped, names, strict=True))
    return stripped, [f"spaces around {counted(n_changed, 'column name')} were taken away"] if n_changed else []


def counted(n: int, word: str) -> str:
    """A number with its noun.

    Examples
    --------
    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{n:,} {word}" + ("" if n == 1 else "s")


def listed(names: Sequence[str], at_most: int = 5) -> str:
    """Names in quotes, the first few of many; control characters come out as escapes.

    Examples
    --------
    >>> listed(["a", "b", "c"], at_most=2)
    "'a', 'b' and 1 more"
    """
    shown = ", ".join(repr(name if len(name) <= 60 else name[:60] + "…") for name in names[:at_most])
    return shown + (f" and {len(names) - at_most:,} more" if len(names) > at_most else "")
