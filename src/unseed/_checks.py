"""Checks that options share: each refuses with the option, its value and what is allowed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from unseed.errors import InvalidInputError


def check_whole_number(name: str, value: Any, at_least: int, reason: str = "") -> int:
    """Return a whole number of at least ``at_least``.

    Examples
    --------
    >>> check_whole_number("depth", 2, at_least=1)
    2
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < at_least:
        raise InvalidInputError(
            f"{name}={value!r} must be a whole number of at least {at_least}" + (f"; {reason}" if reason else "")
        )
    return int(value)


def check_number(name: str, value: Any, *, above: float | None = None, at_least: float | None = None) -> float:
    """Return a finite number above, or at least, a bound.

    Examples
    --------
    >>> check_number("rate", 0.5, above=0)
    0.5
    """
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, (bool, np.bool_))
    fits = is_number and math.isfinite(value)
    if fits and above is not None:
        fits = value > above
    if fits and at_least is not None:
        fits = value >= at_least
    if not fits:
        bound = f" > {above:g}" if above is not None else f" >= {at_least:g}" if at_least is not None else ""
        raise InvalidInputError(f"{name}={value!r} must be a finite number{bound}")
    return float(value)


def check_share(name: str, value: Any) -> float:
    """Return a number strictly between 0 and 1.

    Examples
    --------
    >>> check_share("tolerance", 1e-6)
    1e-06
    """
    is_number = isinstance(value, (float, np.floating))
    if not is_number or not 0.0 < value < 1.0:
        raise InvalidInputError(f"{name}={value!r} must be a number strictly between 0 and 1")
    return float(value)


def check_flag(name: str, value: Any) -> bool:
    """Return True or False, not something that merely counts as one of them.

    Examples
    --------
    >>> check_flag("standardize", True)
    True
    """
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidInputError(f"{name}={value!r} must be True or False")
    return bool(value)
