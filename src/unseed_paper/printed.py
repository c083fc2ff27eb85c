"""The figures printed in the paper, read from ``printed.json``."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

TABLES = ("table-1", "table-2", "table-3", "table-4", "table-5", "table-6", "table-7")
INTERVAL_TABLES, ERROR_TABLES = ("table-1", "table-3", "table-5"), ("table-2", "table-4", "table-6")
REAL_TABLES = ("table-5", "table-6")

TITLES = {
    "table-1": "Confidence intervals at x0, synthetic data #1",
    "table-2": "Mean square error, synthetic data #1",
    "table-3": "Confidence intervals at x0, synthetic data #2",
    "table-4": "Mean square error, synthetic data #2",
    "table-5": "Confidence intervals at five test points, simulated real data",
    "table-6": "Mean square error on five splits, simulated real data",
    "table-7": "Clopper–Pearson bounds of a coverage rate from 100 repetitions",
}


@cache
def printed_rows(table: str) -> tuple[dict[str, Any], ...]:
    """Rows of a table as the paper prints them."""
    return tuple(json.loads(files("unseed_paper").joinpath("printed.json").read_text(encoding="utf-8"))[table])


def printed_figures(table: str, row: dict[str, Any], method: str) -> dict[str, float]:
    """What the paper prints for a method in the row with these keys; empty where it prints nothing."""
    for candidate in printed_rows(table):
        if all(candidate.get(key) == value for key, value in row.items()):
            figures: dict[str, float] = candidate.get(method, {})
            return figures
    return {}
