"""What the cells of a column say: numbers, truth values, dates or text, and which are missing."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from unseed._results import FloatArray

MISSING = frozenset({"", "na", "n/a", "nan", "null", "<na>", "#n/a", "?"})
"""Texts that stand for a missing value, in capitals or not."""

TRUTH = {"true": 1.0, "yes": 1.0, "t": 1.0, "y": 1.0, "false": 0.0, "no": 0.0, "f": 0.0, "n": 0.0}
"""Words of truth values, in capitals or not."""

LARGEST_NUMBER = 1e150
"""A larger one cannot be squared."""

_LONGEST = 1e22  # of the numbers that are written digit by digit

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?")
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}([,.' \u00a0\u202f][0-9]{3})+([.,][0-9]+)?")
_ENDLESS = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_CURRENCY, _PERCENT = "$€£¥₹", "%‰"

_YEAR, _MONTH, _DAY = "(?P<year>[0-9]{4})", "(?P<month>[0-9]{1,2})", "(?P<day>[0-9]{1,2})"
_TIME = r"(?:[T ]\s*(?P<time>[0-9]{1,2}:[0-9:.,]+\s*(?:Z|[+-][0-9:]+)?))?"
ISO, DAY_FIRST, MONTH_FIRST = "YYYY-MM-DD", "DD/MM/YYYY", "MM/DD/YYYY"
_DATES = {
    ISO: re.compile(rf"{_YEAR}[-/]{_MONTH}[-/]{_DAY}{_TIME}"),
    "DD.MM.YYYY": re.compile(rf"{_DAY}\.{_MONTH}\.{_YEAR}{_TIME}"),
    DAY_FIRST: re.compile(rf"{_DAY}/{_MONTH}/{_YEAR}{_TIME}"),
    MONTH_FIRST: re.compile(rf"{_MONTH}/{_DAY}/{_YEAR}{_TIME}"),
}
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


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

    def as_numbers(self) -> FloatArray:
        """Numbers, as far as the cells are some; NaN for others, and for numbers too large."""
        point = "," if self.has_decimal_commas else "."
        values = self.translated(lambda text: number(text, point)) if self.kind == "text" else self.values
        return np.where(np.abs(values) <= LARGEST_NUMBER, values, np.nan)

    @property
    def has_decimal_commas(self) -> bool:
        """Whether commas are decimal points: some can be nothing else, no cell has a point, and all are numbers then."""
        if self.kind != "text" or not any(
            _DECIMAL_COMMA.fullmatch(text) and not _GROUPED.fullmatch(text) for text in self.present
        ):
            return False
        return all("." not in text and not np.isnan(number(text, ",")) for text in self.present)


def number(text: str, point: str = ".") -> float:
    """The number that a text is, NaN where it is none; infinite where it is too large.

    Examples
    --------
    >>> number("-1.5e3"), number("1_000"), number("1,5", ",")
    (-1500.0, nan, 1.5)
    """
    text = text.replace(point, ".")
    return float(text) if _NUMBER.fullmatch(text) else np.nan


def looks_like_number(text: str) -> bool:
    """Whether a person would call it a number, however it is written."""
    bare = text.strip(_CURRENCY + _PERCENT + " \u00a0")
    return any(pattern.fullmatch(bare) for pattern in (_NUMBER, _DECIMAL_COMMA, _GROUPED, _ENDLESS))


def why_not_a_number(text: str) -> str:
    """What is wrong with a cell that should be a number, and what to write instead.

    Examples
    --------
    >>> why_not_a_number("12%")
    "'12%' has a percent sign; write the number alone"
    """
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


def looks_like_date(text: str) -> bool:
    """Whether it has the form of a date, be there such a day or not."""
    return any(pattern.fullmatch(text) for pattern in _DATES.values())


def date_form(texts: Iterable[str]) -> str | None:
    """The form that most of the dates have; None where day and month cannot be told apart.

    Examples
    --------
    >>> date_form(["1/2/2024", "13/2/2024"]), date_form(["1/2/2024"])
    ('DD/MM/YYYY', None)
    """
    dates = {form: [match for text in texts if (match := pattern.fullmatch(text))] for form, pattern in _DATES.items()}
    form = max(dates, key=lambda form: len(dates[form]))
    if form != DAY_FIRST:
        return form
    is_day_first, is_month_first = (any(int(date[part]) > 12 for date in dates[form]) for part in ("day", "month"))
    if is_day_first == is_month_first:
        return None
    return DAY_FIRST if is_day_first else MONTH_FIRST


def days_since_1970(text: str, form: str) -> float:
    """Of a date in a form; NaN where there is no such day. A time without a zone is taken as it stands, another as UTC.

    Examples
    --------
    >>> days_since_1970("1970-01-02 12:00", "YYYY-MM-DD"), days_since_1970("2024-02-30", "YYYY-MM-DD")
    (1.5, nan)
    """
    match = _DATES[form].fullmatch(text)
    if match is None:
        return np.nan
    time = match["time"] or "00:00"
    try:
        date = datetime.date(int(match["year"]), int(match["month"]), int(match["day"]))
        moment = datetime.datetime.combine(date, datetime.time.fromisoformat(time if time[1] != ":" else f"0{time}"))
    except ValueError:
        return np.nan
    return (moment.replace(tzinfo=moment.tzinfo or datetime.UTC) - _EPOCH) / datetime.timedelta(days=1)


def date_text(days: float) -> str:
    """Days since 1970 as a date, with the time where there is one.

    Examples
    --------
    >>> date_text(1.5), date_text(2.0)
    ('1970-01-02 12:00:00', '1970-01-03')
    """
    moment = _EPOCH.replace(tzinfo=None) + datetime.timedelta(days=days)
    return moment.date().isoformat() if moment.time() == datetime.time() else moment.isoformat(" ", "seconds")
