"""Write the tables of docs/truth.md from results/small.json, which benchmarks/small.py fills.

python benchmarks/small_page.py            refresh the page
python benchmarks/small_page.py --check    say whether it is up to date
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from marked import Blocks, markdown_table, write

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "truth.md"
RESULTS = json.loads((ROOT / "results" / "small.json").read_text())
Cells = Sequence[dict[str, Any]]


def groups(part: str) -> list[tuple[int, bool, Cells]]:
    """Cells by rows, and whether their functions were looked at."""
    keys = sorted({(cell["n"], not cell["tuned_on"]) for cell in RESULTS[part]})
    return [(n, not held, [c for c in RESULTS[part] if (c["n"], not c["tuned_on"]) == (n, held)]) for n, held in keys]


def average(cells: Cells, key: str) -> float:
    """Mean over the cells; of widths and errors the geometric one."""
    values = np.array([cell[key] for cell in cells], dtype=float)
    return float(np.exp(np.log(values).mean()) if key.startswith(("width", "rmse")) else values.mean())


def coverage_of(kind: str) -> Callable[[str], str]:
    """Table of intervals for f (an empty kind) or for a new y ("_new")."""

    def table(part: str) -> str:
        head = ["rows", "functions", "cells", "data sets each", "inside", "smallest cell", "cells below .88", "width / oracle"]
        lines = []
        for n, tuned, cells in groups(part):
            inside = [cell[f"held{kind}"] for cell in cells]
            line = [f"{n:,}", "looked at" if tuned else "held back", str(len(cells)), str(cells[0]["sets"])]
            line += [f"{np.mean(inside):.3f}", f"{min(inside):.3f}", str(sum(one < 0.88 for one in inside))]
            lines.append([*line, f"{average(cells, f'width_over_oracle{kind}'):.2f}"])
        return markdown_table(head, lines)

    return table


def noise() -> str:
    """What is found in labels that are noise alone, for a given network."""
    head = ["rows", "features", "structure found", "varying noise found", "width / that of a mean", "truth inside"]
    lines = [
        [str(row["n"]), str(row["d"]), *(f"{row[key]:.2f}" for key in ("misfit", "varying", "width_over_constant", "held"))]
        for row in RESULTS["noise"]
    ]
    return markdown_table(head, lines)


BLOCKS: Blocks = {
    "few rows": lambda: coverage_of("")("few"),
    "more rows": lambda: coverage_of("")("middle"),
    "new observations": lambda: coverage_of("_new")("new_y"),
    "noise": noise,
}

if __name__ == "__main__":
    write(PAGE, BLOCKS)
