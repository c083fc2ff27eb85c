"""Figures as lines for the screen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cost_of_intervals.problem import FEATURES, POINTS

_NAME, _UNKNOWN = 46, "–"  # as wide as the longest name


def describe(figures: dict[str, Any]) -> str:
    """A table for the screen."""
    return "\n".join([*_peers(figures), *_growth(figures["growth"]), *_left_out(figures["left_out"]), *_total(figures)])


def _peers(figures: dict[str, Any]) -> Iterator[str]:
    yield f"n = {figures['rows']}, d = {FEATURES}, {POINTS} new points, {figures['machine']['threads']} threads"
    if figures["seconds"]:
        yield f"  {'':{_NAME}} {'time':>13} {'ratio':>10} {'memory':>10}"
    for name, value in figures["seconds"].items():
        ratio = f"{figures['ratios'][name]:.2f} ×" if name in figures["ratios"] else _UNKNOWN
        memory = megabytes(figures["peak_added_bytes"].get(name))
        yield f"  {name:{_NAME}} {1e3 * value:10.1f} ms {ratio:>10} {memory:>10}"


def _growth(growth: dict[str, Any]) -> Iterator[str]:
    for axis, found in growth.items():
        slope = _UNKNOWN if found["exponent"] is None else f"{found['exponent']:.2f}"
        yield f"against {axis}: exponent {slope}"
        for size, value in found["seconds"].items():
            yield f"  {size:>{_NAME}} {1e3 * value:10.1f} ms {'':>10} {megabytes(found['peak_added_bytes'].get(size)):>10}"


def _left_out(left_out: dict[str, str]) -> Iterator[str]:
    for name, reason in left_out.items():
        yield f"left out: {name}: {reason}"


def _total(figures: dict[str, Any]) -> Iterator[str]:
    yield f"memory: peak beyond what was there before; of the whole process {figures['peak_bytes'] / 1e9:.2f} GB"
    if not figures["complete"]:
        yield "stopped before the end: this is what was measured up to then"


def megabytes(n_bytes: int | None) -> str:
    """Memory of a job, or a dash where it is not known.

    Examples
    --------
    >>> megabytes(12_345_678), megabytes(None)
    ('12.3 MB', '–')
    """
    return _UNKNOWN if n_bytes is None else f"{n_bytes / 1e6:,.1f} MB"
