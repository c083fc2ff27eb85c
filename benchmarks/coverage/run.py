"""Fill the scoreboard: one line of JSON per cell, repetition and method, written as it comes, resumed where it stopped.

python benchmarks/coverage/run.py --methods unseed --repetitions 10 --jobs 2
python benchmarks/coverage/report.py
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

from joblib import Parallel, delayed

HERE = Path(__file__).parent


def measure(cell, repetition: int, method: str, n_points: int) -> dict:
    """One data set, one method: who was covered, how wide, how far off."""
    import numpy as np
    import torch
    from methods import METHODS
    from problems import PAPER

    torch.set_num_threads(1)
    X, y = cell.sample(repetition)
    X_new, truth = cell.test(n_points)
    if cell.function in PAPER:  # the paper's own point comes last
        centre = np.full((1, cell.d), 0.1)
        X_new, truth = np.vstack([X_new, centre]), np.append(truth, cell.truth(centre))
    started = time.time()
    try:
        answer = METHODS[method](X, y, X_new, repetition)
    except Exception as error:
        return {"cell": cell.name, "repetition": repetition, "method": method, "error": f"{type(error).__name__}: {error}"}
    error = np.abs(answer.centre - truth)
    covered = error <= answer.half_width
    domain = slice(0, n_points)
    return {
        "cell": cell.name,
        "repetition": repetition,
        "method": method,
        "covered": "".join("01"[int(c)] for c in covered),
        "coverage": float(covered[domain].mean()),
        "width": float(2 * answer.half_width[domain].mean()),
        "rmse": float(np.sqrt(np.mean(error[domain] ** 2))),
        "last_width": float(2 * answer.half_width[-1]),
        "fit_seconds": round(answer.fit_seconds, 3),
        "seconds": round(time.time() - started, 3),
        **answer.notes,
    }


def missing(cells, methods, repetitions: int, done: set) -> Iterator[tuple]:
    for repetition in range(repetitions):
        for cell in cells:
            for method in methods:
                if (cell.name, repetition, method) not in done:
                    yield cell, repetition, method


def main() -> None:
    from methods import METHODS
    from problems import CELLS, PAPER_CELLS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=["unseed"], choices=list(METHODS))
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--cells", choices=["board", "paper", "all"], default="all")
    parser.add_argument("--max-rows", type=int, default=10**9, help="leave out cells with more rows")
    parser.add_argument("--match", default="", help="only cells whose name has this in it")
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start nothing new after this long")
    parser.add_argument("--records", type=Path, default=HERE / "records.jsonl")
    options = parser.parse_args()
    cells = {"board": CELLS, "paper": PAPER_CELLS, "all": CELLS + PAPER_CELLS}[options.cells]
    cells = [cell for cell in cells if cell.n <= options.max_rows and options.match in cell.name]
    done = set()
    if options.records.exists():
        done = {(r["cell"], r["repetition"], r["method"]) for r in map(json.loads, options.records.open())}
    jobs = list(missing(cells, options.methods, options.repetitions, done))
    print(f"{len(jobs)} fits to do, {len(done)} done")
    began = time.time()
    jobs_in_time = (delayed(measure)(*job, options.points) for job in jobs if time.time() - began < options.seconds)
    with options.records.open("a") as records:
        results = Parallel(
            n_jobs=options.jobs,
            return_as="generator_unordered",
            pre_dispatch="all" if options.seconds == float("inf") else "2*n_jobs",
        )(jobs_in_time)
        for count, record in enumerate(results, 1):
            records.write(json.dumps(record) + "\n")
            records.flush()
            if count % 20 == 0 or "error" in record:
                print(f"{count}/{len(jobs)}  {time.time() - began:.0f} s  {record.get('error', '')}", flush=True)


if __name__ == "__main__":
    main()
