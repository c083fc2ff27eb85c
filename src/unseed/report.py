"""The report's public names, for whoever has the application beside the library."""

from importlib import import_module
from typing import Any

_NAMES = ("Report", "build", "check_can_be_written", "checked_rows", "in_short", "write_page", "write_report")

__all__ = list(_NAMES)


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("unseed_app.report"), name)
