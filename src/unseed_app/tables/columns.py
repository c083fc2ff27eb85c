"""One rule for each kind of column: how its cells become numbers, remembered as plain data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unseed._results import FloatArray
from unseed.errors import InvalidInputError
from unseed_app.tables import dates
from unseed_app.tables.cells import (
    LARGEST_NUMBER,
    TRUTH,
    Cells,
    is_decimal_comma,
    number,
    number_with_comma,
    why_not_a_number,
)
from unseed_app.tables.table import counted, listed

MOST_LEVELS = 50
"""Different texts that a column of categories may have; nor more than a third of the rows."""

Place = Callable[[int], str]
"""Where a row of the column is, in words."""


@dataclass(frozen=True)
class NumberRule:
    """A number as it is; missing ones are the median of the training rows."""

    kind: ClassVar[str] = "number"
    name: str
    fill: float

    @classmethod
    def fit(cls, name: str, cells: Cells) -> NumberRule:
        """Remember the median."""
        return cls(name, float(np.median(cells.present)))

    @property
    def outputs(self) -> list[str]:
        """The column's own name."""
        return [self.name]

    def read(self, cells: Cells, place: Place) -> Cells:
        """Finite numbers."""
        found = _numbers(cells)
        bad = found.first_bad(~(np.abs(found.values) <= LARGEST_NUMBER))
        if bad is not None:
            raise InvalidInputError(f"{place(bad)}: {why_not_a_number(str(cells.values[bad]))}")
        return found

    def encode(self, cells: Cells, *, fill: bool) -> FloatArray:
        """Shape (n_rows, 1)."""
        return np.where(cells.missing & fill, self.fill, cells.values)[:, None]

    def describe(self) -> str:
        """In a few words."""
        return "number"


@dataclass(frozen=True)
class BooleanRule:
    """1 for true, 0 for false; missing ones are what most training rows have."""

    kind: ClassVar[str] = "boolean"
    name: str
    fill: float

    @classmethod
    def fit(cls, name: str, cells: Cells) -> BooleanRule:
        """Remember the majority."""
        return cls(name, float(cells.present.mean() > 0.5))

    @property
    def outputs(self) -> list[str]:
        """The column's own name."""
        return [self.name]

    def read(self, cells: Cells, place: Place) -> Cells:
        """0 and 1, which may also stand there as such."""
        words = TRUTH | {"1": 1.0, "0": 0.0}
        found = cells
        if cells.kind != "boolean":
            texts = cells.as_text()
            found = texts.translated("boolean", lambda text: words.get(text.lower(), np.nan))
        bad = found.first_bad(np.isnan(found.values))
        if bad is not None:
            raise InvalidInputError(f"{place(bad)}: {str(cells.values[bad])!r} is not true or false")
        return found

    def encode(self, cells: Cells, *, fill: bool) -> FloatArray:
        """Shape (n_rows, 1)."""
        return np.where(cells.missing & fill, self.fill, cells.values)[:, None]

    def describe(self) -> str:
        """In a few words."""
        return "true or false → 1 or 0"


@dataclass(frozen=True)
class DateRule:
    """Days since the first training date; missing ones are the median of the training rows."""

    kind: ClassVar[str] = "date"
    name: str
    form: str
    first: float
    fill: float

    @classmethod
    def fit(cls, name: str, cells: Cells, place: Place) -> DateRule:
        """Remember the form, the first date and the median."""
        form: str | None = dates.ISO
        if cells.kind == "text":
            form = dates.form_of(cells.present.tolist())
            if form is None:
                row = int(np.flatnonzero(~cells.missing)[0])
                raise InvalidInputError(
                    f"{place(row)}: {cells.values[row]!r} can be day/month or month/day; write dates as YYYY-MM-DD"
                )
        found = cls(name, form or dates.ISO, 0.0, 0.0).read(cells, place)
        return cls(name, form or dates.ISO, float(found.present.min()), float(np.median(found.present)))

    @property
    def outputs(self) -> list[str]:
        """Days, and since when, said in the name."""
        return [f"{self.name} (days since {dates.as_text(self.first)})"]

    def read(self, cells: Cells, place: Place) -> Cells:
        """Days since 1970."""
        if cells.kind == "date":
            return cells
        texts = cells.as_text()
        found = texts.translated("date", dates.reader(self.form))
        bad = found.first_bad(np.isnan(found.values))
        if bad is not None:
            raise InvalidInputError(f"{place(bad)}: {str(texts.values[bad])!r} is not a date of the form {self.form}")
        return found

    def encode(self, cells: Cells, *, fill: bool) -> FloatArray:
        """Shape (n_rows, 1)."""
        return (np.where(cells.missing & fill, self.fill, cells.values) - self.first)[:, None]

    def describe(self) -> str:
        """In a few words."""
        return f"date → days since {dates.as_text(self.first)}, the first in training"


@dataclass(frozen=True)
class CategoryRule:
    """One column of 0 and 1 for each text; missing ones are the most frequent text of the training rows."""

    kind: ClassVar[str] = "category"
    name: str
    levels: tuple[str, ...]
    fill: str

    @classmethod
    def fit(cls, name: str, cells: Cells, source: str) -> CategoryRule:
        """Remember the texts."""
        levels, counts = np.unique(cells.as_text().present.astype(str), return_counts=True)
        most = max(2, min(MOST_LEVELS, len(cells.values) // 3))
        if len(levels) > most:
            raise InvalidInputError(
                f"{source}, column {name!r}: text with {counted(len(levels), 'different value')} in "
                f"{counted(len(cells.values), 'row')}, such as {listed(levels.tolist(), 2)}; as a category it may have {most} "
                f"(at most {MOST_LEVELS}, and a third of the rows): leave it out with --drop, or group its values"
            )
        return cls(name, tuple(levels.tolist()), str(levels[np.argmax(counts)]))

    @property
    def outputs(self) -> list[str]:
        """One for each text."""
        return [f"{self.name} = {level}" for level in self.levels]

    def read(self, cells: Cells, place: Place) -> Cells:
        """Texts that training rows had."""
        texts = cells.as_text()
        bad = texts.first_bad(~np.isin(texts.values.astype(str), self.levels))
        if bad is not None:
            raise InvalidInputError(
                f"{place(bad)}: the category {str(texts.values[bad])[:60]!r} was not in the training rows; "
                f"known are {listed(self.levels)}"
            )
        return texts

    def encode(self, cells: Cells, *, fill: bool) -> FloatArray:
        """Shape (n_rows, n_levels)."""
        values = np.where(cells.missing & fill, self.fill, cells.values).astype(str)
        return np.asarray(values[:, None] == np.array(self.levels)[None, :], dtype=np.float64)

    def describe(self) -> str:
        """In a few words."""
        return f"category ({counted(len(self.levels), 'level')})"


def has_decimal_commas(cells: Cells) -> bool:
    """Whether commas are decimal points: some can be nothing else, no cell has a point, and all are numbers then."""
    if cells.kind != "text" or not any(map(is_decimal_comma, cells.present)):
        return False
    return all("." not in text and not np.isnan(number_with_comma(text)) for text in cells.present)


def _numbers(cells: Cells) -> Cells:
    if cells.kind != "text":
        return Cells("number", cells.values, cells.missing)
    return cells.translated("number", number_with_comma if has_decimal_commas(cells) else number)
