"""One rule for each kind of column: how its cells become numbers, found in training, remembered as plain data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from unseed._results import FloatArray
from unseed.errors import InvalidInputError
from unseed_app.tables.cells import (
    ISO,
    TRUTH,
    Cells,
    date_form,
    date_text,
    days_since_1970,
    looks_like_date,
    looks_like_number,
    why_not_a_number,
)
from unseed_app.tables.table import Table, counted, listed

MOST_LEVELS = 50
"""Different texts that a column of categories may have; nor more than a third of the rows."""

_CELLS_LOOKED_AT = 10_000


class Rule(ABC):
    """What becomes of a column; missing cells become ``fill``, which the training rows gave."""

    kind: ClassVar[str]
    name: str
    fill: float | str

    @classmethod
    @abstractmethod
    def fit(cls, name: str, cells: Cells, table: Table) -> Self:
        """Remember what the training rows say."""

    @abstractmethod
    def _meaning(self, cells: Cells) -> FloatArray:
        """Numbers, NaN where a cell is missing or has no meaning."""

    @abstractmethod
    def _fault(self, text: str) -> str:
        """What is wrong with a cell that has no meaning."""

    @abstractmethod
    def describe(self) -> str:
        """In a few words."""

    @property
    def outputs(self) -> list[str]:
        """Names of the features; the column's own for a single one."""
        return [self.name]

    def read(self, cells: Cells, table: Table) -> FloatArray:
        """What the cells mean, NaN where they are missing; one that has no meaning is refused with its place."""
        values = self._meaning(cells)
        bad = np.flatnonzero(np.isnan(values) & ~cells.missing)
        if len(bad):
            raise InvalidInputError(f"{table.place(int(bad[0]), self.name)}: {self._fault(cells.as_text().values[bad[0]])}")
        return values

    def encode(self, values: FloatArray) -> FloatArray:
        """Features of what was read. Shape (n_rows, n_outputs)."""
        return np.where(np.isnan(values), self.fill, values)[:, None]


@dataclass(frozen=True)
class NumberRule(Rule):
    """A number as it is; missing ones are the median of the training rows."""

    kind = "number"
    name: str
    fill: float

    @classmethod
    def fit(cls, name: str, cells: Cells, table: Table) -> NumberRule:
        """Remember the median."""
        return cls(name, float(np.nanmedian(cls(name, 0.0).read(cells, table))))

    def _meaning(self, cells: Cells) -> FloatArray:
        return cells.as_numbers()

    def _fault(self, text: str) -> str:
        return why_not_a_number(text)

    def describe(self) -> str:
        """In a few words."""
        return "number"


@dataclass(frozen=True)
class BooleanRule(Rule):
    """1 for true, 0 for false; missing ones are what most training rows have."""

    kind = "boolean"
    name: str
    fill: float

    @classmethod
    def fit(cls, name: str, cells: Cells, table: Table) -> BooleanRule:
        """Remember the majority."""
        return cls(name, float(np.nanmean(cls(name, 0.0).read(cells, table)) > 0.5))

    def _meaning(self, cells: Cells) -> FloatArray:
        words = TRUTH | {"1": 1.0, "0": 0.0}
        return cells.values if cells.kind == "boolean" else cells.translated(lambda text: words.get(text.lower(), np.nan))

    def _fault(self, text: str) -> str:
        return f"{text!r} is not true or false"

    def describe(self) -> str:
        """In a few words."""
        return "true or false → 1 or 0"


@dataclass(frozen=True)
class DateRule(Rule):
    """Days since the first training date; missing ones are the median of the training rows."""

    kind = "date"
    name: str
    form: str
    first: float
    fill: float

    @classmethod
    def fit(cls, name: str, cells: Cells, table: Table) -> DateRule:
        """Remember the form, the first date and the median."""
        form = date_form(cells.present) if cells.kind == "text" else ISO
        if form is None:
            row = int(np.flatnonzero(~cells.missing)[0])
            raise InvalidInputError(
                f"{table.place(row, name)}: {cells.values[row]!r} can be day/month or month/day; write dates as YYYY-MM-DD"
            )
        found = cls(name, form, 0.0, 0.0).read(cells, table)
        return cls(name, form, float(np.nanmin(found)), float(np.nanmedian(found)))

    @property
    def outputs(self) -> list[str]:
        """Days, and since when, said in the name."""
        return [f"{self.name} (days since {date_text(self.first)})"]

    def _meaning(self, cells: Cells) -> FloatArray:
        return cells.values if cells.kind == "date" else cells.translated(lambda text: days_since_1970(text, self.form))

    def _fault(self, text: str) -> str:
        return f"{text!r} is not a date of the form {self.form}"

    def encode(self, values: FloatArray) -> FloatArray:
        """Days since the first training date. Shape (n_rows, 1)."""
        return super().encode(values) - self.first

    def describe(self) -> str:
        """In a few words."""
        return f"date → days since {date_text(self.first)}, the first in training"


@dataclass(frozen=True)
class CategoryRule(Rule):
    """One column of 0 and 1 for each text; missing ones are the most frequent text of the training rows."""

    kind = "category"
    name: str
    levels: tuple[str, ...]
    fill: str

    def __post_init__(self) -> None:
        if self.fill not in self.levels:
            raise ValueError(f"{self.fill!r} is not one of the levels of {self.name!r}")

    @classmethod
    def fit(cls, name: str, cells: Cells, table: Table) -> CategoryRule:
        """Remember the texts."""
        levels, counts = np.unique(np.array(cells.as_text().present), return_counts=True)
        most = max(2, min(MOST_LEVELS, len(cells.values) // 3))
        if len(levels) > most:
            raise InvalidInputError(
                f"{table.source}, column {name!r}: text with {counted(len(levels), 'different value')} in "
                f"{counted(len(cells.values), 'row')}, such as {listed(levels.tolist(), 2)}; as a category it may have {most} "
                f"(at most {MOST_LEVELS}, and a third of the rows): leave it out with --drop, or group its values"
            )
        return cls(name, tuple(levels.tolist()), str(levels[np.argmax(counts)]))

    @property
    def outputs(self) -> list[str]:
        """One for each text."""
        return [f"{self.name} = {level}" for level in self.levels]

    def _meaning(self, cells: Cells) -> FloatArray:
        places = {level: float(i) for i, level in enumerate(self.levels)}
        return cells.translated(lambda text: places.get(text, np.nan))

    def _fault(self, text: str) -> str:
        return f"the category {text[:60]!r} was not in the training rows; known are {listed(self.levels)}"

    def encode(self, values: FloatArray) -> FloatArray:
        """Shape (n_rows, n_levels)."""
        places = np.where(np.isnan(values), self.levels.index(self.fill), values)
        return np.asarray(places[:, None] == np.arange(len(self.levels)), dtype=np.float64)

    def describe(self) -> str:
        """In a few words."""
        return f"category ({counted(len(self.levels), 'level')})"


_KINDS: dict[str, type[Rule]] = {rule.kind: rule for rule in (NumberRule, BooleanRule, DateRule, CategoryRule)}


def find_rule(name: str, cells: Cells, table: Table) -> Rule:
    """The rule for a column, by what most of its cells are."""
    present, kind = cells.present, str(cells.kind)
    if not present:
        raise InvalidInputError(f"{table.source}, column {name!r}: every cell is missing; leave it out with --drop")
    if kind == "text":
        first = present[:_CELLS_LOOKED_AT]  # all of them are read afterwards, by the rule found
        if all(text.lower() in TRUTH for text in set(present)):
            kind = "boolean"
        elif 2 * sum(map(looks_like_date, first)) > len(first):
            kind = "date"
        else:
            kind = "number" if 2 * sum(map(looks_like_number, first)) > len(first) else "category"
    return _KINDS[kind].fit(name, cells, table)


def rule_to_data(rule: Rule) -> dict[str, Any]:
    """Plain data for JSON."""
    return {"kind": rule.kind, **asdict(rule)}  # type: ignore[call-overload]


def rule_from_data(data: dict[str, Any]) -> Rule:
    """The rule that plain data stand for; KeyError, TypeError or ValueError where they stand for none."""
    fields = dict(data)
    kind = _KINDS[fields.pop("kind")]
    if kind is CategoryRule:
        return CategoryRule(**fields | {"levels": tuple(map(str, fields["levels"]))})
    return kind(**fields | {name: float(fields[name]) for name in ("first", "fill") if name in fields})
