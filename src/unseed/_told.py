"""Warnings that a whole call gives once: what is wrong with a kernel is found anew for every block of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Told(NamedTuple):
    """How bad it is, and the words for it."""

    severity: float
    text: str
    category: type[Warning]


_LOCK = Lock()
_CALLS = 0  # at work in this process, on all of its threads
_WORST: dict[str, Told] = {}


def telling_once(call: Callable[P, R]) -> Callable[P, R]:
    """A function that tells at its end the worst of what `warn_of` was said in its course, about every subject once.

    Examples
    --------
    >>> @telling_once
    ... def work():
    ...     for millimetres in (1, 3, 2):
    ...         warn_of("weather", millimetres, f"it rains {millimetres} mm", UserWarning)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     work()
    >>> [str(one.message) for one in caught]
    ['it rains 3 mm']
    """

    @wraps(call)
    def told(*args: P.args, **options: P.kwargs) -> R:
        global _CALLS
        with _LOCK:
            _CALLS += 1
        try:
            return call(*args, **options)
        finally:
            worst: list[Told] = []
            with _LOCK:
                _CALLS -= 1
                if not _CALLS:
                    worst = list(_WORST.values())
                    _WORST.clear()
            for one in worst:
                warnings.warn(one.text, one.category, stacklevel=2)

    return told


def warn_of(subject: str, severity: float, text: str, category: type[Warning]) -> None:
    """Warn: at once, or at the end of the call that tells everything once."""
    with _LOCK:
        is_kept = _CALLS > 0
        if is_kept and (subject not in _WORST or severity > _WORST[subject].severity):
            _WORST[subject] = Told(severity, text, category)
    if not is_kept:
        warnings.warn(text, category, stacklevel=3)
