"""Write the tables of docs/scaling.md: accuracy at every size, and what the cost model says of more than was measured.

python benchmarks/scaling_page.py            refresh the page and its plots
python benchmarks/scaling_page.py --check    say whether it is up to date
"""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import size_page
from marked import Blocks, markdown_table, write
from page import Figures, figures
from unseed._machine import duration, gigabytes
from unseed.costs import Job, Rates, forecast

DOCUMENTS = Path(__file__).parent.parent / "docs"
PAGE, IMAGES = DOCUMENTS / "scaling.md", DOCUMENTS / "images"
ROWS, MACHINES, FEATURES, POINTS = (10**7, 10**8, 10**9), (1, 8, 64), 16, 1000
KINDS = {"cpu": ("two cores", 2048), "cuda": ("H200", 8192)}  # the machine, rows of a block on it


def far(costs: Figures) -> str:
    lines = []
    for device, (machine, block) in KINDS.items():
        if device not in costs:
            continue
        rates = _rates(costs[device]["rates"])
        for rows in ROWS:
            job = Job(rows, FEATURES, POINTS, block=block)
            stored = [forecast(replace(job, machines=m, is_stored=True), rates) for m in MACHINES]
            in_memory = forecast(replace(job, machines=MACHINES[-1]), rates)
            times = [duration(found.seconds) for found in (*stored, in_memory)]
            sizes = [gigabytes(n_bytes) for n_bytes in (in_memory.bytes, stored[-1].bytes, stored[-1].disk)]
            lines.append([machine, f"{block:,}", f"{rows:,}", *times, *sizes])
    named = [f"{m} machine{'s' * (m > 1)}" for m in MACHINES]
    folder = [f"{name}, `folder=`" for name in named]
    sizes = ["memory, rows in memory", "memory, `folder=`", "disk, `folder=`"]
    return markdown_table(
        ["machine", "rows of a block", "rows", *folder, f"{named[-1]}, rows in memory", *sizes], lines, left=1
    )


def _rates(measured: Figures) -> Rates:
    known = {field.name for field in fields(Rates)}
    return Rates(**{name: value for name, value in measured.items() if name in known})


BLOCKS: Blocks = {"size": size_page.block, "far": lambda: far(figures("costs"))}

if __name__ == "__main__":
    write(PAGE, BLOCKS)
    size_page.draw(IMAGES)
