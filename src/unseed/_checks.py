"""Checks that options share: each refuses with the option, its value and what is allowed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from unseed.errors import InvalidInputError


def check_whole_number(name: str, value: Any, at_least: int, reason: str = "") -> int:
    """Return a whole number of at least ``at_least``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < at_least:
        raise InvalidInputError(
            f"{name}={value!r} must be a whole number of at least {at_least}" + (f"; {reason}" if reason else "")
        )
    return int(value)


def check_number(name: str, value: Any, *, above: float | None = None, at_least: float | None = None) -> float:
    """Return a finite number above, or at least, a bound."""
    fits = is_number(value) and math.isfinite(value)
    if not fits or (above is not None and not value > above) or (at_least is not None and not value >= at_least):
        bound = f" > {above:g}" if above is not None else f" >= {at_least:g}" if at_least is not None else ""
        raise InvalidInputError(f"{name}={value!r} must be a finite number{bound}")
    return float(value)


def check_share(name: str, value: Any) -> float:
    """Return a number strictly between 0 and 1."""
    if not is_number(value) or not 0.0 < value < 1.0:
        raise InvalidInputError(f"{name}={value!r} must be a number strictly between 0 and 1")
    return float(value)


def check_level(level: float, name: str = "level") -> float:
    """Return a confidence level strictly between 0 and 1."""
    if not is_number(level) or not 0.0 < level < 1.0:
        raise InvalidInputError(
            f"{name}={level!r} is not a confidence level; give a number strictly between 0 and 1, such as 0.95"
        )
    return float(level)


def check_levels(confidence_level: Any) -> list[float]:
    """Return one or several confidence levels as a list."""
    asked = np.atleast_1d(np.asarray(confidence_level, dtype=object))
    if asked.ndim != 1 or len(asked) == 0:
        raise InvalidInputError(f"confidence_level={confidence_level!r} must be a number or a list of numbers")
    return [check_level(level, "confidence_level") for level in asked]


def check_flag(name: str, value: Any) -> bool:
    """Return True or False, not something that merely counts as one of them."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidInputError(f"{name}={value!r} must be True or False")
    return bool(value)


def check_no_text(**given: Any) -> None:
    """Refuse text, numbers written as text too: an array of it, a list, or a column of a frame."""
    for name, values in given.items():
        is_plain = getattr(getattr(values, "dtype", None), "kind", "O") in "biuf"
        columns = [values[column] for column in values.columns] if hasattr(values, "columns") else [] if is_plain else [values]
        for column in columns:
            try:
                entries = np.asarray(column)
            except ValueError:  # rows of unlike length: others say so
                continue
            found = () if entries.dtype.kind in "biufcmM" else entries.ravel().tolist()
            text = next((entry for entry in found if isinstance(entry, (str, bytes))), None)
            if text is not None:
                raise InvalidInputError(
                    f"{name} holds text, such as {text!r:.40}: turn numbers that are written as text into numbers "
                    f"({name}.astype(float)), and categories into columns of 0 and 1"
                )


def is_number(value: object) -> bool:
    """Whether something is a number of Python or NumPy, and not a truth value."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def fault_of(X: Any, y: Any, error: ValueError) -> str:
    """What is wrong with rows that were refused: the first cell at fault, by its place; else the words of the refusal."""
    for name, values in (("X", X), ("y", y)):
        try:
            cells = np.asarray(values)
        except (TypeError, ValueError):  # rows of different lengths
            continue
        if cells.ndim and not len(cells):
            return f"{name} has no rows: leave this piece out"
        is_number = cells.dtype.kind in "fiub"
        at_fault = ~np.isfinite(cells) if is_number else np.vectorize(_fault_of_cell, otypes=[bool])(cells)
        if cells.ndim and at_fault.any():
            row, *column = np.unravel_index(int(at_fault.argmax()), cells.shape)
            names = getattr(values, "columns", range(cells.shape[-1]))
            place = f"row {row}" + (f", column {names[int(column[-1])]!r}" if column else "")
            return f"{name} has {_fault_of_cell(cells[(row, *column)])} in {place}: remove the row, or give a number"
    return str(error)


def in_one_sentence(error: Exception) -> str:
    """What another library says of a fault, without the advice that may follow."""
    return " ".join(str(error).split()).split(". ")[0].rstrip(".")[:200]


def _fault_of_cell(cell: Any) -> str:
    """Why it is no finite number; empty where it is one."""
    try:
        value = math.nan if cell is None else float(cell)
    except (TypeError, ValueError):
        return f"{cell!r:.40}, which is no number,"
    return "" if math.isfinite(value) else "NaN" if math.isnan(value) else "infinity"
