"""What ``unseed benchmark`` does: hand over to the benchmarks of the repository, which are no part of the installation."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

from unseed.errors import InvalidInputError

FOLDER = Path(__file__).parents[3] / "benchmarks"


def run(rows: int, repetitions: int, out: Path | None, echo: Callable[[str], None]) -> bool:
    """Measure, print and write; whether it came to its end."""
    if not (FOLDER / "cost_of_intervals").is_dir():
        raise InvalidInputError(
            "benchmark needs the folder benchmarks/ of the repository; run it in a clone, after `make benchmark`"
        )
    if str(FOLDER) not in sys.path:
        sys.path.insert(0, str(FOLDER))
    return bool(importlib.import_module("cost_of_intervals.command").run(rows, repetitions, out, echo))
