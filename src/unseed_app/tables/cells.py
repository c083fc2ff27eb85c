"""What the cells of a column say: numbers, truth values, times or text, and which are missing."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["number", "boolean", "date", "text"]

MISSING = frozenset({"", "na", "n/a", "nan", "null", "<na>", "#n/a", "?"})
"""Texts that stand for a missing value, in capitals or not."""

TRUTH = {"true": 1.0, "yes": 1.0, "t": 1.0, "y": 1.0, "false": 0.0, "no": 0.0, "f": 0.0, "n": 0.0}
"""Words of truth values, in capitals or not."""

LARGEST_NUMBER = 1e150
"""A larger one cannot be squared."""

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?")
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}([,.' \u00a0\u202f][0-9]{3})+([.,][0-9]+)?")
_ENDLESS = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_CURRENCY, _PERCENT = "$€£¥₹", "%‰"


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
    >>> import pandas as pd
    >>> Cells.of(pd.Series(["1", " 2.5", "NA"])).missing.tolist()
    [False, False, True]
    """

    kind: Kind
    values: npt.NDArray[Any]
    missing: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, column: pd.Series) -> Cells:
        """Look at a column of a frame."""
        import pandas as pd

        is_kind = pd.api.types
        if is_kind.is_bool_dtype(column.dtype):
            return cls._filled("boolean", column.astype("boolean").astype("Float64"))
        if is_kind.is_numeric_dtype(column.dtype):
            return cls._filled("number", column.astype("Float64") if column.dtype.kind not in "iuf" else column)
        if is_kind.is_datetime64_any_dtype(column.dtype) or "date" in str(column.dtype):
            times = pd.to_datetime(column.astype(object), utc=True).dt.tz_localize(None)
            return cls._filled("date", (times - pd.Timestamp(0)) / pd.Timedelta(days=1))
        texts = np.array(["" if text is None or text != text else str(text).strip() for text in column.tolist()], dtype=object)
        return cls("text", texts, np.array([text.lower() in MISSING for text in texts], dtype=bool))

    @classmethod
    def _filled(cls, kind: Kind, column: pd.Series) -> Cells:
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return cls(kind, values, np.isnan(values))

    @property
    def present(self) -> npt.NDArray[Any]:
        """Values that are not missing."""
        return np.asarray(self.values[~self.missing])

    def as_text(self) -> Cells:
        """The same as text: whole numbers without a point."""
        if self.kind == "text":
            return self
        texts = [f"{value:.0f}" if value == round(value) else repr(float(value)) for value in np.nan_to_num(self.values)]
        return Cells("text", np.array(texts, dtype=object), self.missing)

    def translated(self, translate: Callable[[str], float]) -> Cells:
        """Text as numbers, every different cell translated once; NaN where one has no meaning, and where it is missing."""
        known = {text: translate(text) for text in set(self.present.tolist())}
        values = [np.nan if gone else known[text] for text, gone in zip(self.values.tolist(), self.missing, strict=True)]
        return Cells("number", np.array(values, dtype=np.float64), self.missing)

    def as_numbers(self) -> Cells:
        """The same as numbers, as far as they are some."""
        if self.kind != "text":
            return self
        return self.translated(number_with_comma if self.has_decimal_commas else number)

    @property
    def has_decimal_commas(self) -> bool:
        """Whether commas are decimal points: some can be nothing else, no cell has a point, and all are numbers then."""
        if self.kind != "text" or not any(map(_is_decimal_comma, self.present)):
            return False
        return all("." not in text and not np.isnan(number_with_comma(text)) for text in self.present)


def number(text: str) -> float:
    """The number that a text is, NaN where it is none; infinite where it is too large.

    Examples
    --------
    >>> number("-1.5e3"), number("1_000")
    (-1500.0, nan)
    """
    return float(text) if _NUMBER.fullmatch(text) else np.nan


def number_with_comma(text: str) -> float:
    """The same, where a comma stands for the decimal point.

    Examples
    --------
    >>> number_with_comma("1,5")
    1.5
    """
    return number(text.replace(",", "."))


def looks_like_number(text: str) -> bool:
    """Whether a person would call it a number, however it is written."""
    bare = text.strip(_CURRENCY + _PERCENT + " \u00a0")
    return any(pattern.fullmatch(bare) for pattern in (_NUMBER, _DECIMAL_COMMA, _GROUPED, _ENDLESS))


def _is_decimal_comma(text: str) -> bool:
    """Whether a comma can only be a decimal point: ``1,5`` and ``1,2345``, not ``1,234``."""
    return bool(_DECIMAL_COMMA.fullmatch(text)) and not _GROUPED.fullmatch(text)


def why_not_a_number(text: str) -> str:
    """What is wrong with a cell that should be a number, and what to write instead.

    Examples
    --------
    >>> why_not_a_number("12%")
    "'12%' has a percent sign; write the number alone"
    """
    shown = repr(text if len(text) <= 40 else text[:40] + "…")
    if _ENDLESS.fullmatch(text):  # so says a typed column too
        return f"{shown} is not a finite number"
    if _NUMBER.fullmatch(text):
        return f"{shown} is too large a number; the largest that can be worked with is {LARGEST_NUMBER:g}"
    if any(sign in text for sign in _PERCENT) and looks_like_number(text):
        return f"{shown} has a percent sign; write the number alone"
    if any(sign in text for sign in _CURRENCY) and looks_like_number(text):
        return f"{shown} has a currency sign; write the number alone"
    if _GROUPED.fullmatch(text):
        return f"{shown} has a thousands separator, or a decimal comma; write it with a point or without separators"
    if _DECIMAL_COMMA.fullmatch(text):
        return f"{shown} has a decimal comma; write it with a point"
    return f"{shown} is not a number"
