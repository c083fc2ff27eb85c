"""What docs/scaling.md says of rows on a cluster, from results/cluster.json; `scaling_page.py` writes it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from marked import markdown_table
from page import number
from unseed._estimators.partitions import waves
from unseed._machine import duration

OUT = Path(__file__).parent.parent / "results" / "cluster.json"
ROWS_OF_A_PARTITION = 1_000_000
OF_A_TREE = 4 / 3  # sums for each partition: four are added to one, and four of these, …
CLUSTERS = ((10**7, 4), (10**8, 16), (10**9, 64))  # rows, workers
Record = dict[str, Any]


def seconds_per_row(runs: Sequence[Record], landmarks: int) -> float:
    """Of the workers' processors: what more rows took, over how many more they were, on one number of workers."""
    few, many = sorted((run for run in runs if run["landmarks"] == landmarks), key=lambda run: (run["rows"], run["workers"]))[
        :2
    ]
    return float((many["worker_seconds"] - few["worker_seconds"]) / (many["rows"] - few["rows"]))


def measured(found: Record) -> str:
    runs, killed = found["runs"], found["killed"]
    most = max(run["rows"] for run in runs)
    shown = [run for run in runs if run["rows"] == most and run["landmarks"] == killed["landmarks"]]
    lines = [
        [
            str(run["workers"]),
            *(number(run[f"{name}_seconds"]) for name in ("wall", "worker", "own")),
            *(number(run[f"{name}_bytes"] / 1e6) for name in ("worker_sent", "own_sent")),
            number(run["worker_peak_bytes"] / 1e9),
            f"{run['difference']:.0e}",
        ]
        for run in shown
    ]
    when = "while it added up rows" if killed["deaths_while_adding"] else "when it had added up its rows"
    lines.append(
        [f"{killed['workers']}, one killed {when}", number(killed["wall_seconds"]), *["–"] * 5, f"{killed['difference']:.0e}"]
    )
    head = ["workers", "fit, s", "of the workers' processors, s", "of the own one, s", "sent by workers, MB"]
    head += ["by scheduler and client, MB", "memory of a worker, GB", "difference"]
    made = f"{most:,} rows × {found['features']} in {found['partitions']} partitions, made where they are added up"
    cores = f"processes of one machine with {found['machine']['cores']} cores and a thread each"
    about = (
        f"{made}, a network that is given and {killed['landmarks']:,} landmarks. Workers are {cores}, so more "
        "workers than cores cannot be faster; seconds of the clock are upper bounds where a machine has other work, "
        "those of processors hardly change. *Difference* is the largest, of predictions and bounds at other points, "
        "from those of `fit` with all rows as arrays, over the standard deviation of the predictions."
    )
    return f"{about}\n\n{markdown_table(head, lines)}"


def extrapolated(found: Record) -> str:
    head = ["rows", "workers", "landmarks", "fit", "traffic, GB, at most", "sums, MB", "to each worker, MB"]
    lines, rates = [], []
    for name, bytes_of in found["travels"].items():
        landmarks, sums = int(name), bytes_of["sums_bytes"]
        rate = seconds_per_row(found["runs"], landmarks)
        own = max(run["own_seconds"] for run in found["runs"] if run["landmarks"] == landmarks)
        rates.append(f"{number(1e6 * rate)} µs with {landmarks:,} landmarks")
        for rows, workers in CLUSTERS:
            n_partitions = math.ceil(rows / ROWS_OF_A_PARTITION)
            seconds = math.ceil(n_partitions / workers) * ROWS_OF_A_PARTITION * rate + own
            traffic = (OF_A_TREE * n_partitions + len(waves(n_partitions))) * sums + workers * bytes_of["begun_bytes"]
            sizes = (number(size) for size in (traffic / 1e9, sums / 1e6, bytes_of["begun_bytes"] / 1e6))
            lines.append([f"{rows:,}", f"{workers:,}", f"{landmarks:,}", duration(seconds), *sizes])
    words = " and ".join(rates)
    before = (
        f"A row takes {words} of a processor like these: what more rows took longer, over how many more they were, "
        "three looks at every row among it. What follows is an extrapolation, **by multiplication, not by a run**, "
        f"from that and the bytes of the sums: partitions of {ROWS_OF_A_PARTITION:,} rows, a core for each worker, "
        "as many partitions one after another as the busiest worker has, and every sum of the tree sent once."
    )
    after = (
        "Time is rows over workers; traffic is partitions times squared landmarks, so larger partitions have less "
        "of it; memory of a worker is that of the table above and its partition's rows, however many rows there "
        "are. Not in it: reading, where that is slower than making the rows was here, connections slower than one "
        "machine's memory, and workers that wait."
    )
    return f"{before}\n\n{markdown_table(head, lines)}\n\n{after}"


def block(path: Path = OUT) -> str:
    if not path.exists():
        return "Not measured yet: `python benchmarks/cluster.py` does."
    found = json.loads(path.read_text())
    return f"{measured(found)}\n\n{extrapolated(found)}"
