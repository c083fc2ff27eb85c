"""Write the tables of docs/classes.md from results/classes.json: no figure on that page is typed by hand.

python benchmarks/classes_page.py            refresh the page
python benchmarks/classes_page.py --check    say whether it is up to date
"""

from __future__ import annotations

import math
from pathlib import Path
from statistics import mean

import losses
from classes import METHODS, PROBLEMS, Record, records
from marked import Blocks, markdown_table, write

PAGE = Path(__file__).parent.parent / "docs" / "classes.md"


def cells(method: str, n: int) -> dict[str, list[Record]]:
    """Data sets of every function."""
    found = [one for one in records() if one["method"] == method and one["rows"] == n]
    return {name: [one for one in found if one["function"] == name] for name in PROBLEMS}


def sizes() -> list[int]:
    return sorted({one["rows"] for one in records()})


def _of(found: list[Record], quantity: str) -> float:
    return mean(one[quantity] for one in found)


def _excess(found: list[Record]) -> float:
    return _of(found, "log_loss") - _of(found, "least_log_loss")


def table(n: int) -> str:
    """A line for each function: coverage and width of ours, coverage of the peers', and log losses of all."""
    head = [
        "probability",
        "classes",
        "coverage",
        "width / oracle",
        "of the Gaussian process",
        "of splines",
        *METHODS,
        "seconds",
    ]
    lines, every = [], {method: cells(method, n) for method in METHODS}
    for name, problem in PROBLEMS.items():
        found = {method: every[method][name] for method in METHODS}
        ours = found["unseed"]
        covered = [f"{_of(found[peer], 'coverage'):.3f}" if "coverage" in found[peer][0] else "" for peer in list(METHODS)[1:]]
        lines.append(
            [
                f"{name}: {problem.words}",
                str(problem.classes),
                f"{_of(ours, 'coverage'):.3f}",
                f"{_of(ours, 'width') / _of(ours, 'oracle'):.2f}",
                *covered,
                *(f"{_excess(found[method]):.4f}" for method in METHODS),
                f"{_of(ours, 'seconds'):.1f}",
            ]
        )
    return markdown_table(head, lines, left=1)


def summary() -> str:
    """Means over the functions."""
    head = ["rows", "method", "mean coverage", "cells at .90 or more", "smallest", "width / oracle", "log loss above the least"]
    lines = []
    for n in sizes():
        for method in METHODS:
            every = cells(method, n)
            of_two = [found for found in every.values() if "coverage" in found[0]]
            covered = [_of(found, "coverage") for found in of_two]
            widths = [math.log(_of(found, "width") / _of(found, "oracle")) for found in of_two]
            excess = mean(_excess(found) for found in every.values())
            lines.append(
                [
                    str(n),
                    method,
                    f"{mean(covered):.3f}",
                    f"{sum(one >= 0.9 for one in covered)} of {len(covered)}",
                    f"{min(covered):.3f}",
                    f"{math.exp(mean(widths)):.2f}",
                    f"{excess:.4f}",
                ]
            )
    return markdown_table(head, lines, left=2)


def data_sets() -> str:
    """How much the tables stand on."""
    seeds = {one["seed"] for one in records()}
    return f"{len(PROBLEMS)} functions, {len(seeds)} data sets of each size, 1,000 new points of the domain each; one thread."


def of_other_losses() -> str:
    """Coverage of the truth, and width over the oracle's: a line for each loss."""
    found = losses.records()
    head = ["loss", *losses.FUNCTIONS, "mean coverage", "width / oracle", "seconds"]
    lines = []
    for loss in losses.LOSSES:
        own = {name: [one for one in found if (one["loss"], one["function"]) == (loss, name)] for name in losses.FUNCTIONS}
        covered = [_of(cell, "coverage") for cell in own.values()]
        width = mean(math.log(_of(cell, "width") / _of(cell, "oracle")) for cell in own.values())
        seconds = mean(_of(cell, "seconds") for cell in own.values())
        lines.append(
            [loss, *(f"{one:.3f}" for one in covered), f"{mean(covered):.3f}", f"{math.exp(width):.2f}", f"{seconds:.0f}"]
        )
    return markdown_table(head, lines, left=1)


def sizes_of_other_losses() -> str:
    """What that table stands on."""
    found = losses.records()
    rows, seeds = sorted({one["rows"] for one in found}), len({one["seed"] for one in found})
    return f"Default 95 % intervals, {' and '.join(map(str, rows))} rows, data sets of each kind: {seeds}."


BLOCKS: Blocks = {
    "other losses": of_other_losses,
    "data sets of other losses": sizes_of_other_losses,
    "data sets": data_sets,
    "summary": summary,
    **{f"rows {n}": (lambda n=n: table(n)) for n in sizes()},
}

if __name__ == "__main__":
    write(PAGE, BLOCKS)
