"""One rule for each kind of column: how its cells become numbers, found in training, remembered as plain data."""

from __future__ import annotations

import datetime
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from unseed._results import FloatArray
from unseed.errors import InvalidInputError
from unseed_app.tables.table import Cells, counted, listed

TRUTH = {"true": 1.0, "yes": 1.0, "t": 1.0, "y": 1.0, "false": 0.0, "no": 0.0, "f": 0.0, "n": 0.0}
"""Words of truth values, in capitals or not."""

LARGEST_NUMBER = 1e150
"""A larger one cannot be squared."""

MOST_LEVELS = 50
"""Different texts that a column of categories may have; nor more than a third of the rows."""

_CELLS_LOOKED_AT = 10_000
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?")
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}([,.' \u00a0\u202f][0-9]{3})+([.,][0-9]+)?")
_ENDLESS = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_CURRENCY, _PERCENT = "$€£¥₹", "%‰"

_YEAR, _MONTH, _DAY = "(?P<year>[0-9]{4})", "(?P<month>[0-9]{1,2})", "(?P<day>[0-9]{1,2})"
_TIME = r"(?:[T ]\s*(?P<time>[0-9]{1,2}:[0-9:.,]+\s*(?:Z|[+-][0-9:]+)?))?"
_DATES = {
    "YYYY-MM-DD": re.compile(rf"{_YEAR}[-/]{_MONTH}[-/]{_DAY}{_TIME}"),
    "DD.MM.YYYY": re.compile(rf"{_DAY}\.{_MONTH}\.{_YEAR}{_TIME}"),
    "DD/MM/YYYY": re.compile(rf"{_DAY}/{_MONTH}/{_YEAR}{_TIME}"),
    "MM/DD/YYYY": re.compile(rf"{_MONTH}/{_DAY}/{_YEAR}{_TIME}"),
}
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True)
class Rule(ABC):
    """What becomes of a column; missing cells become ``fill``, which the training rows gave."""

    kind: ClassVar[str]
    becomes: ClassVar[str]
    name: str
    fill: float | str

    @classmethod
    @abstractmethod
    def fit(cls, cells: Cells) -> Self:
        """Remember what the training rows say."""

    @abstractmethod
    def _number(self, text: str) -> float:
        """What a cell means, NaN where that is nothing."""

    @abstractmethod
    def _fault(self, text: str) -> str:
        """What is wrong with a cell that means nothing."""

    def describe(self) -> str:
        """What becomes of the column, in a few words."""
        return self.becomes

    @property
    def outputs(self) -> list[str]:
        """Names of the features; the column's own for a single one."""
        return [self.name]

    def _numbers(self, cells: Cells) -> FloatArray:
        """What cells mean, NaN where they are missing or mean nothing."""
        return cells.values if cells.kind == self.kind else cells.translated(self._number)

    def read(self, cells: Cells) -> FloatArray:
        """What cells mean, NaN where they are missing; one that means nothing is refused with its place."""
        numbers = self._numbers(cells)
        bad = np.isnan(numbers) & ~cells.missing
        if bad.any():
            raise InvalidInputError(f"{cells.first_place(bad)}: {self._fault(cells.as_text().values[bad][0])}")
        return numbers

    def encode(self, numbers: FloatArray) -> FloatArray:
        """Features of what was read. Shape (n_rows, n_outputs)."""
        return np.where(np.isnan(numbers), self.fill, numbers)[:, None]


@dataclass(frozen=True)
class NumberRule(Rule):
    """A number as it is; missing ones are the median of the training rows."""

    kind, becomes = "number", "number"

    @classmethod
    def fit(cls, cells: Cells) -> NumberRule:
        """Remember the median."""
        return cls(cells.name, float(np.nanmedian(cls(cells.name, 0.0).read(cells))))

    def _number(self, text: str) -> float:
        return float(text) if _NUMBER.fullmatch(text) else np.nan

    def _numbers(self, cells: Cells) -> FloatArray:
        numbers = cells.values
        if has_decimal_commas(cells):
            numbers = cells.translated(lambda text: self._number(text.replace(",", ".")))
        elif cells.kind == "text":
            numbers = cells.translated(self._number)
        return np.where(np.abs(numbers) <= LARGEST_NUMBER, numbers, np.nan)

    def _fault(self, text: str) -> str:
        """What is wrong, and what to write instead."""
        shown, fault = repr(text if len(text) <= 40 else text[:40] + "…"), "is not a number"
        if _ENDLESS.fullmatch(text):  # so says a typed column too
            fault = "is not a finite number"
        elif _NUMBER.fullmatch(text):
            fault = f"is too large a number; the largest that can be worked with is {LARGEST_NUMBER:g}"
        elif looks_like_number(text) and any(sign in text for sign in _PERCENT):
            fault = "has a percent sign; write the number alone"
        elif looks_like_number(text) and any(sign in text for sign in _CURRENCY):
            fault = "has a currency sign; write the number alone"
        elif _GROUPED.fullmatch(text):
            fault = "has a thousands separator, or a decimal comma; write it with a point or without separators"
        elif _DECIMAL_COMMA.fullmatch(text):
            fault = "has a decimal comma; write it with a point"
        return f"{shown} {fault}"


def looks_like_number(text: str) -> bool:
    """Whether a person would call it a number, however it is written."""
    bare = text.strip(_CURRENCY + _PERCENT + " \u00a0")
    return any(pattern.fullmatch(bare) for pattern in (_NUMBER, _DECIMAL_COMMA, _GROUPED, _ENDLESS))


def has_decimal_commas(cells: Cells) -> bool:
    """Whether commas are decimal points: some can be nothing else, no cell has a point, and all are numbers then."""
    texts = cells.present if cells.kind == "text" else []
    if not any(_DECIMAL_COMMA.fullmatch(text) and not _GROUPED.fullmatch(text) for text in texts):
        return False
    return all("." not in text and _NUMBER.fullmatch(text.replace(",", ".")) for text in texts)


@dataclass(frozen=True)
class BooleanRule(Rule):
    """1 for true, 0 for false; missing ones are what most training rows have."""

    kind, becomes = "boolean", "true or false → 1 or 0"

    @classmethod
    def fit(cls, cells: Cells) -> BooleanRule:
        """Remember the majority."""
        return cls(cells.name, float(np.nanmean(cls(cells.name, 0.0).read(cells)) > 0.5))

    def _number(self, text: str) -> float:
        return (TRUTH | {"1": 1.0, "0": 0.0}).get(text.lower(), np.nan)

    def _fault(self, text: str) -> str:
        return f"{text!r} is not true or false"


@dataclass(frozen=True)
class DateRule(Rule):
    """Days since the first training date; missing ones are the median of the training rows."""

    kind = "date"
    form: str
    first: float

    def __post_init__(self) -> None:
        if self.form not in _DATES:
            raise ValueError(f"{self.form!r} is not a form of dates")

    @classmethod
    def fit(cls, cells: Cells) -> DateRule:
        """Remember the form, the first date and the median."""
        form = _form_of(cells.present) if cells.kind == "text" else "YYYY-MM-DD"
        if form is None:
            place, date = cells.first_place(~cells.missing), cells.present[0]
            raise InvalidInputError(f"{place}: {date!r} can be day/month or month/day; write dates as YYYY-MM-DD")
        found = cls(cells.name, 0.0, form, 0.0).read(cells)
        return cls(cells.name, float(np.nanmedian(found)), form, float(np.nanmin(found)))

    def _number(self, text: str) -> float:
        """Days since 1970; a time without a zone is taken as it stands, another as UTC."""
        match = _DATES[self.form].fullmatch(text)
        if match is None:
            return np.nan
        time = match["time"] or "00:00"
        try:
            date = datetime.date(int(match["year"]), int(match["month"]), int(match["day"]))
            moment = datetime.datetime.combine(date, datetime.time.fromisoformat(time if time[1] != ":" else f"0{time}"))
        except ValueError:
            return np.nan
        return (moment.replace(tzinfo=moment.tzinfo or datetime.UTC) - _EPOCH) / datetime.timedelta(days=1)

    def _fault(self, text: str) -> str:
        return f"{text!r} is not a date of the form {self.form}"

    @property
    def _since(self) -> str:
        moment = _EPOCH.replace(tzinfo=None) + datetime.timedelta(days=self.first)
        return moment.date().isoformat() if moment.time() == datetime.time() else moment.isoformat(" ", "seconds")

    @property
    def outputs(self) -> list[str]:
        """Days, and since when, said in the name."""
        return [f"{self.name} (days since {self._since})"]

    def encode(self, numbers: FloatArray) -> FloatArray:
        """Days since the first training date. Shape (n_rows, 1)."""
        return super().encode(numbers) - self.first

    def describe(self) -> str:
        """In a few words."""
        return f"date → days since {self._since}, the first in training"


def looks_like_date(text: str) -> bool:
    """Whether it has the form of a date, be there such a day or not."""
    return any(pattern.fullmatch(text) for pattern in _DATES.values())


def _form_of(texts: list[str]) -> str | None:
    """The form that most of the dates have; None where day and month cannot be told apart."""
    dates = {form: [match for text in texts if (match := pattern.fullmatch(text))] for form, pattern in _DATES.items()}
    form = max(dates, key=lambda form: len(dates[form]))
    if form != "DD/MM/YYYY":
        return form
    is_day_first, is_month_first = (any(int(date[part]) > 12 for date in dates[form]) for part in ("day", "month"))
    if is_day_first == is_month_first:
        return None
    return form if is_day_first else "MM/DD/YYYY"


@dataclass(frozen=True)
class CategoryRule(Rule):
    """One column of 0 and 1 for each text; missing ones are the most frequent text of the training rows."""

    kind = "category"
    fill: str
    levels: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.fill not in self.levels:
            raise ValueError(f"{self.fill!r} is not one of the levels of {self.name!r}")

    @classmethod
    def fit(cls, cells: Cells) -> CategoryRule:
        """Remember the texts."""
        levels, counts = np.unique(np.array(cells.as_text().present), return_counts=True)
        most = max(2, min(MOST_LEVELS, len(cells.values) // 3))
        if len(levels) > most:
            raise InvalidInputError(
                f"{cells.table.source}, column {cells.name!r}: text with {counted(len(levels), 'different value')} in "
                f"{counted(len(cells.values), 'row')}, such as {listed(levels.tolist(), 2)}; as a category it may have {most} "
                f"(at most {MOST_LEVELS}, and a third of the rows): leave it out with --drop, or group its values"
            )
        return cls(cells.name, str(levels[np.argmax(counts)]), tuple(levels.tolist()))

    def _number(self, text: str) -> float:
        return float(self.levels.index(text)) if text in self.levels else np.nan

    def _fault(self, text: str) -> str:
        return f"the category {text[:60]!r} was not in the training rows; known are {listed(self.levels)}"

    @property
    def outputs(self) -> list[str]:
        """One for each text."""
        return [f"{self.name} = {level}" for level in self.levels]

    def encode(self, numbers: FloatArray) -> FloatArray:
        """Shape (n_rows, n_levels)."""
        places = np.where(np.isnan(numbers), self.levels.index(self.fill), numbers)
        return np.asarray(places[:, None] == np.arange(len(self.levels)), dtype=np.float64)

    def describe(self) -> str:
        """In a few words."""
        return f"category ({counted(len(self.levels), 'level')})"


KINDS: dict[str, type[Rule]] = {rule.kind: rule for rule in (NumberRule, BooleanRule, DateRule, CategoryRule)}


def find_rule(cells: Cells) -> Rule:
    """The rule for a column, by what most of its cells are."""
    present, kind = cells.present, cells.kind
    if not present:
        raise InvalidInputError(f"{cells.table.source}, column {cells.name!r}: every cell is missing; leave it out with --drop")
    if kind == "text":
        first = present[:_CELLS_LOOKED_AT]  # all of them are read afterwards, by the rule found
        if all(text.lower() in TRUTH for text in set(present)):
            kind = "boolean"
        elif 2 * sum(map(looks_like_date, first)) > len(first):
            kind = "date"
        else:
            kind = "number" if 2 * sum(map(looks_like_number, first)) > len(first) else "category"
    return KINDS[kind].fit(cells)
