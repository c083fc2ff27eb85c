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
    fits = _is_number(value) and math.isfinite(value)
    if not fits or (above is not None and not value > above) or (at_least is not None and not value >= at_least):
        bound = f" > {above:g}" if above is not None else f" >= {at_least:g}" if at_least is not None else ""
        raise InvalidInputError(f"{name}={value!r} must be a finite number{bound}")
    return float(value)


def check_share(name: str, value: Any) -> float:
    """Return a number strictly between 0 and 1."""
    if not _is_number(value) or not 0.0 < value < 1.0:
        raise InvalidInputError(f"{name}={value!r} must be a number strictly between 0 and 1")
    return float(value)


def check_level(level: float, name: str = "level") -> float:
    """Return a confidence level strictly between 0 and 1."""
    if not _is_number(level) or not 0.0 < level < 1.0:
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


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
