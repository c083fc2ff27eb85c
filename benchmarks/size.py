"""How well the truth is covered, how far off predictions are, and what they take, from a thousand rows to a million.

    python benchmarks/size.py --rows 1000 10000 100000 1000000 --methods unseed lightgbm catboost forest
    python benchmarks/size.py --rows 100000 --methods unseed --functions held-back --landmarks 2048 --in-process

A cell is a function, a number of rows and a method. Each is a line of `--out`; lines that are there are not measured again, so
that a run that was interrupted goes on. Cells have a process each, unless `--in-process` is said, which is quicker. Gradient
boosting (`pip install 'unseed[size]'`) is left out where it is not installed. `scaling_page.py` draws the figures.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import platform
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import unseed
from cost_of_intervals.memory import PeakMemory
from size_functions import HELD_BACK, PROBLEMS, TUNED_ON, Array, Problem
from unseed import PNCRegressor
from unseed.engines import Landmarks

OUT = Path(__file__).parent.parent / "results" / "size.json"
ROWS, POINTS, TREES, ROWS_OF_A_TREE = (1_000, 10_000, 100_000, 1_000_000), 2_000, 1_000, 100_000
GROUPS = {"tuned-on": TUNED_ON, "held-back": HELD_BACK, "all": (*TUNED_ON, *HELD_BACK)}
ORACLE = 3.92  # width over RMSE of the interval that knows how far off predictions are
FAILED = "FAILED: "
Record = dict[str, Any]


class Answer(NamedTuple):
    """What a method says about new points; bounds where it has them."""

    mean: Array
    bounds: Array | None = None  # (points, 2)


# Methods: each trains on rows, and returns what predicts, and what is worth keeping of the model


Trained = tuple[Callable[[Array], Answer], Record]


def with_unseed(X: Array, y: Array, *, device: str, landmarks: int | None, seed: int) -> Trained:
    solver = "auto" if landmarks is None else Landmarks(count=landmarks)
    reg = PNCRegressor(device=device, random_state=seed, solver=solver).fit(X, y)
    kept = {"solver": repr(reg.solver_), "network": str(reg.network_)}

    def predict(points: Array) -> Answer:
        mean, bounds = reg.predict_interval(points, confidence_level=0.95)
        return Answer(mean, bounds[:, :, 0])

    return predict, kept


def with_lightgbm(X: Array, y: Array, *, seed: int, **_: Any) -> Trained:
    from lightgbm import LGBMRegressor

    reg = LGBMRegressor(n_estimators=TREES, random_state=seed, verbose=-1).fit(X, y)
    return lambda points: Answer(reg.predict(points)), {}


def with_catboost(X: Array, y: Array, *, seed: int, **_: Any) -> Trained:
    from catboost import CatBoostRegressor

    reg = CatBoostRegressor(iterations=TREES, random_seed=seed, verbose=False, allow_writing_files=False).fit(X, y)
    return lambda points: Answer(reg.predict(points)), {}


def with_forest(X: Array, y: Array, *, seed: int, **_: Any) -> Trained:
    from sklearn.ensemble import RandomForestRegressor

    rows = ROWS_OF_A_TREE if len(X) > ROWS_OF_A_TREE else None
    reg = RandomForestRegressor(min_samples_leaf=3, max_samples=rows, n_jobs=-1, random_state=seed).fit(X, y)
    return lambda points: Answer(reg.predict(points)), {}


METHODS: dict[str, Callable[..., Trained]] = {
    "unseed": with_unseed,
    "lightgbm": with_lightgbm,
    "catboost": with_catboost,
    "forest": with_forest,
}
OPTIONAL = ("lightgbm", "catboost")


# A cell


class Cell(NamedTuple):
    """What tells one measurement from another."""

    function: str
    rows: int
    method: str
    device: str  # "cpu" or "cuda"
    landmarks: int | None
    seed: int

    @classmethod
    def of(cls, record: Record) -> Cell:
        return cls(*(record[name] for name in cls._fields))


def scores(problem: Problem, points: Array, answer: Answer, truth: Array) -> Record:
    """How far off predictions are, and how often bounds hold the truth."""
    rmse = math.sqrt(np.mean((answer.mean - truth) ** 2))
    found: Record = {"rmse_over_sd": rmse / problem.sd}
    if answer.bounds is not None:
        lower, upper = answer.bounds.T
        is_held = (lower <= truth) & (truth <= upper)
        found |= {"coverage": float(is_held.mean()), "width_over_oracle": float(np.mean(upper - lower)) / (ORACLE * rmse)}
        if problem.away is not None:
            found["coverage_away_from_jumps"] = float(is_held[problem.away(points)].mean())
    return found


def wait_for(device: str) -> None:
    """Until the device has done what it was asked, the first time to be there at all."""
    if device == "cuda":
        torch.cuda.synchronize()


def measured(cell: Cell, points: int, *, is_alone: bool) -> Record:
    """One cell; the memory of the process is its own where the process has nothing else to do."""
    gc.collect()  # the model before
    problem = PROBLEMS[cell.function]
    data = problem.data(cell.rows, points, cell.seed)
    wait_for(cell.device)
    memory = PeakMemory()
    memory.begin()
    if cell.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    predict, kept = METHODS[cell.method](data.X, data.y, device=cell.device, landmarks=cell.landmarks, seed=cell.seed)
    wait_for(cell.device)
    fitted = time.perf_counter()
    answer = predict(data.X_new)
    wait_for(cell.device)
    end = time.perf_counter()
    found = cell._asdict() | scores(problem, data.X_new, answer, data.truth)
    found |= {"points": points, "fit_seconds": fitted - start, "predict_seconds": end - fitted}
    found["added_bytes"] = memory.added()  # beyond the data; None where the system does not tell
    if is_alone:
        found["peak_bytes"] = memory.of_process()
    if cell.device == "cuda":
        found["gpu_peak_bytes"] = torch.cuda.max_memory_allocated()
    return found | kept | {"machine": machine(cell.device), "version": unseed.__version__}


def machine(device: str) -> str:
    if device == "cuda":
        return str(torch.cuda.get_device_name())
    return f"{len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()} cores, {platform.machine()}"


# A run


def records(path: Path) -> list[Record]:
    """Lines that are there; one that was cut off when a run was stopped does not count."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def append(path: Path, record: Record) -> None:
    """One more line, behind a whole one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    is_cut = path.exists() and not path.read_bytes().endswith(b"\n") and path.stat().st_size > 0
    with path.open("a") as file:
        file.write("\n" * is_cut + json.dumps(record) + "\n")


def cells(options: argparse.Namespace) -> Iterator[Cell]:
    device = ("cuda" if torch.cuda.is_available() else "cpu") if options.device == "auto" else options.device
    names = [problem.name for name in options.functions for problem in GROUPS.get(name, (PROBLEMS.get(name),)) if problem]
    for rows in options.rows:
        for name in dict.fromkeys(names):
            for method in options.methods:
                is_ours = method == "unseed"
                landmarks = options.landmarks if is_ours else None
                yield Cell(name, rows, method, device if is_ours else "cpu", landmarks, options.seed)


def in_a_process(cell: Cell, options: argparse.Namespace) -> str | None:
    """Measure a cell by this very script; what went wrong, if anything did."""
    command = [sys.executable, __file__, "--in-process", "--out", str(options.out), "--points", str(options.points)]
    command += ["--functions", cell.function, "--rows", str(cell.rows), "--methods", cell.method, "--seed", str(cell.seed)]
    command += ["--device", options.device, *(["--landmarks", str(cell.landmarks)] if cell.landmarks else [])]
    try:
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=options.limit)
    except subprocess.TimeoutExpired:
        return f"not done after {options.limit:.0f} s"
    if done.returncode == 0:
        return None
    return (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1].rpartition(FAILED)[-1]


def here(cell: Cell, options: argparse.Namespace, *, is_alone: bool) -> str | None:
    """Measure a cell in this process; what went wrong, if anything did."""
    try:
        append(options.out, measured(cell, options.points, is_alone=is_alone))
    except Exception as error:  # one cell that fails is no reason to lose the others
        traceback.print_exc()
        return f"{type(error).__name__}: {error}"
    return None


def line_of(record: Record) -> str:
    held = " " * 34
    if "coverage" in record:
        held = f"coverage {record['coverage']:.3f}  width/oracle {record['width_over_oracle']:5.2f}"
    away = f"  (away from jumps {record['coverage_away_from_jumps']:.3f})" if "coverage_away_from_jumps" in record else ""
    return (
        f"{record['function']:19}{record['rows']:>9,}  {record['method']:9}{held}  RMSE/sd {record['rmse_over_sd']:.5f}  "
        f"{record['fit_seconds']:7.2f} + {record['predict_seconds']:5.2f} s  {record.get('solver', '')}{away}"
    )


def summary(found: Sequence[Record]) -> str:
    """By number of rows: coverage on average and at worst, geometric mean of width over an oracle's."""
    lines = []
    ours = [record for record in found if "coverage" in record]
    for rows in sorted({record["rows"] for record in ours}):
        at = [record for record in ours if record["rows"] == rows]
        covered = [record["coverage"] for record in at]
        width = math.exp(np.mean([math.log(max(record["width_over_oracle"], 1e-9)) for record in at]))
        seconds = sum(record["fit_seconds"] + record["predict_seconds"] for record in at)
        worst = min(at, key=lambda record: record["coverage"])
        lines.append(
            f"n = {rows:,}: coverage {np.mean(covered):.3f}, at worst {worst['coverage']:.3f} ({worst['function']}), "
            f"{sum(value < 0.9 for value in covered)} of {len(at)} below .90, width/oracle {width:.2f}, {seconds:.0f} s in all"
        )
    return "\n".join(lines)


def parser() -> argparse.ArgumentParser:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--rows", type=int, nargs="+", default=ROWS)
    asked.add_argument("--functions", nargs="+", default=["all"], choices=[*GROUPS, *PROBLEMS], metavar="NAME")
    asked.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    asked.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"], help="of unseed; others take the CPU")
    asked.add_argument("--landmarks", type=int, help="solver=Landmarks(count=...) in place of unseed's default")
    asked.add_argument("--points", type=int, default=POINTS)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--limit", type=float, help="seconds for a cell that has a process of its own")
    asked.add_argument("--in-process", action="store_true", help="all cells in this process, which is quicker")
    asked.add_argument("--out", type=Path, default=OUT)
    return asked


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    missing = [name for name in options.methods if name in OPTIONAL and find_spec(name) is None]
    for name in missing:
        print(f"left out: {name}, which is not installed (pip install 'unseed[size]')", flush=True)
    options.methods = [name for name in options.methods if name not in missing]
    there = {Cell.of(record) for record in records(options.out)}
    wanted = list(cells(options))
    todo = [cell for cell in wanted if cell not in there]
    failures = 0
    for cell in todo:
        wrong = here(cell, options, is_alone=len(todo) == 1) if options.in_process else in_a_process(cell, options)
        failures += wrong is not None
        if wrong is not None:
            print(f"{cell.function:19}{cell.rows:>9,}  {cell.method:9}{FAILED}{wrong}", file=sys.stderr, flush=True)
        else:
            print(line_of(next(record for record in records(options.out) if Cell.of(record) == cell)), flush=True)
    print(summary([record for record in records(options.out) if Cell.of(record) in wanted]))
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main())
