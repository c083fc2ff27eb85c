"""Dates as people write them, and which of the orders of day and month a column has."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable

import numpy as np

ISO, DOTTED, DAY_FIRST, MONTH_FIRST = "YYYY-MM-DD", "DD.MM.YYYY", "DD/MM/YYYY", "MM/DD/YYYY"

_TIME = r"(?:[T ]\s*([0-9]{1,2}:[0-9:.,]+\s*(?:Z|[+-][0-9:]+)?))?"
_PATTERNS = {
    ISO: re.compile(r"([0-9]{4})[-/]([0-9]{1,2})[-/]([0-9]{1,2})" + _TIME),
    DOTTED: re.compile(r"([0-9]{1,2})\.([0-9]{1,2})\.([0-9]{4})" + _TIME),
    DAY_FIRST: re.compile(r"([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})" + _TIME),
}
_PATTERNS[MONTH_FIRST] = _PATTERNS[DAY_FIRST]
_ORDERS = {ISO: (0, 1, 2), DOTTED: (2, 1, 0), DAY_FIRST: (2, 1, 0), MONTH_FIRST: (2, 0, 1)}
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def looks_like_date(text: str) -> bool:
    """Whether it has the form of a date, be there such a day or not."""
    return any(pattern.fullmatch(text) for pattern in _PATTERNS.values())


def form_of(texts: Iterable[str]) -> str | None:
    """The form that most of the dates have; None where day and month cannot be told apart.

    Examples
    --------
    >>> form_of(["1/2/2024", "13/2/2024"]), form_of(["1/2/2024"])
    ('DD/MM/YYYY', None)
    """
    dates = [text for text in texts if looks_like_date(text)]
    form = max((ISO, DOTTED, DAY_FIRST), key=lambda name: sum(bool(_PATTERNS[name].fullmatch(text)) for text in dates))
    if form != DAY_FIRST:
        return form
    parts = [match.groups() for text in dates if (match := _PATTERNS[DAY_FIRST].fullmatch(text))]
    is_day_first, is_month_first = (any(int(part[place]) > 12 for part in parts) for place in (0, 1))
    if is_day_first == is_month_first:
        return None
    return DAY_FIRST if is_day_first else MONTH_FIRST


def reader(form: str) -> Callable[[str], float]:
    """A function from text in a form to days since 1970; NaN where there is no such day.

    Times without a zone are taken as they stand, others are turned into UTC.

    Examples
    --------
    >>> read = reader("YYYY-MM-DD")
    >>> read("1970-01-02 12:00"), read("2024-02-30")
    (1.5, nan)
    """
    pattern, order = _PATTERNS[form], _ORDERS[form]

    def read(text: str) -> float:
        match = pattern.fullmatch(text)
        if match is None:
            return np.nan
        year, month, day = (int(match.group(place + 1)) for place in order)
        try:
            time = datetime.time.fromisoformat(_padded(match.group(4)) if match.group(4) else "00:00")
            moment = datetime.datetime.combine(datetime.date(year, month, day), time)
        except ValueError:
            return np.nan
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.UTC)
        return (moment - _EPOCH) / datetime.timedelta(days=1)

    return read


def as_text(days: float) -> str:
    """Days since 1970 as a date, with the time where there is one.

    Examples
    --------
    >>> as_text(1.5), as_text(2.0)
    ('1970-01-02 12:00:00', '1970-01-03')
    """
    moment = _EPOCH.replace(tzinfo=None) + datetime.timedelta(days=days)
    return moment.date().isoformat() if moment.time() == datetime.time() else moment.isoformat(" ", "seconds")


def _padded(time: str) -> str:
    return time if time[1] != ":" else f"0{time}"
