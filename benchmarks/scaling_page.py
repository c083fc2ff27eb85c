"""Write the table of docs/scaling.md: what the cost model says of more rows and machines than were measured.

python benchmarks/scaling_page.py            refresh the page
python benchmarks/scaling_page.py --check    say whether it is up to date
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from marked import Blocks, markdown_table, write
from page import Figures, figures
from unseed.costs import Forecast, Job, Rates, forecast
from unseed.costs.formulas import duration
from unseed.machine import gigabytes

PAGE = Path(__file__).parent.parent / "docs" / "scaling.md"
ROWS, MACHINES, FEATURES, POINTS = (10**7, 10**8, 10**9), (1, 8, 64), 16, 1000
KINDS = {"cpu": ("two cores", 2048), "cuda": ("H200", 8192)}  # the machine, rows of a block on it


def far(costs: Figures) -> str:
    lines = []
    for device, (machine, block) in KINDS.items():
        if device not in costs:
            continue
        rates = _rates(costs[device]["rates"])
        for rows in ROWS:
            found = [_forecast(rates, rows, block, machines) for machines in MACHINES]
            times = [duration(one.seconds) for one in found]
            lines.append([machine, f"{block:,}", f"{rows:,}", *times, gigabytes(found[0].bytes)])
    head = ["machine", "rows of a block", "rows", *(f"{m} machine{'s' * (m > 1)}" for m in MACHINES), "memory"]
    return markdown_table(head, lines, left=1)


def _forecast(rates: Rates, rows: int, block: int, machines: int) -> Forecast:
    return forecast(Job(rows, FEATURES, POINTS, block=block, machines=machines), rates)


def _rates(measured: Figures) -> Rates:
    known = {field.name for field in fields(Rates)}
    return Rates(**{name: value for name, value in measured.items() if name in known})


BLOCKS: Blocks = {"far": lambda: far(figures("costs"))}

if __name__ == "__main__":
    write(PAGE, BLOCKS)
