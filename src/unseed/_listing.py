"""What can be asked for by name: every list is one table of names and places, and messages are made of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pkgutil import resolve_name
from typing import Any

from unseed.errors import InvalidInputError


def listed(**places: str) -> dict[str, Any]:
    """Classes by the names they are asked for, from their places, written ``module:class``.

    Examples
    --------
    >>> listed(squared="unseed.losses._squared:Squared")
    {'squared': <class 'unseed.losses._squared.Squared'>}
    """
    return {name: resolve_name(place) for name, place in places.items()}


def not_known(argument: str, given: object, names: Iterable[str] | Mapping[str, object], otherwise: str) -> InvalidInputError:
    """The error for an argument that is none of these names, with what it may be.

    Examples
    --------
    >>> print(not_known("colour", "gree", ("red", "green"), "an object such as RGB(0, 1, 0)"))
    colour='gree' is not known; use 'red', 'green' or an object such as RGB(0, 1, 0)
    """
    return InvalidInputError(f"{argument}={given!r} is not known; use {', '.join(map(repr, names))} or {otherwise}")
