"""Compare this machine's ratios with stored ones: `make benchmark-check`.

A ratio is one of our jobs over work that cannot be avoided: elementwise arccos, matrix products and Cholesky factorisations by
torch or NumPy, whichever is faster here. Nothing of ours runs in those, so that a slower kernel shows. A ratio may be half as
large again as stored (`TOLERANCE`); if one is larger, all are measured once more, and the smaller figures count.

python benchmarks/check.py             compare
python benchmarks/check.py --store     store this machine's ratios
"""

from __future__ import annotations

import json
import math
import platform
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cost_of_intervals as benchmark
from cost_of_intervals import floors
from cost_of_intervals.floors import Job
from unseed import replaced
from unseed.intervals import Batching

BASELINE, TOLERANCE = Path(__file__).parent / "baseline.json", 1.5
ROWS, POINTS, BATCHES = 1024, 4096, 8  # a batch has half as many rows
ROUNDS, CALLS = 7, 3  # in every round, calls of a job one after the other
Jobs = dict[str, tuple[Job, ...]]  # what does the same in several ways; the fastest counts


def whole_jobs() -> Jobs:
    """A Gram matrix, the cheap bootstrap and the same by KernelRidge, and what they cannot avoid."""
    problem = benchmark.Problem.draw(ROWS)
    known = benchmark.jobs(problem)
    return {name: (known[name],) for name in (benchmark.OURS, benchmark.GRAM, benchmark.SAME, benchmark.CHOLESKY)} | {
        "arccos": floors.arccos(ROWS, ROWS),
        "product": floors.products(problem.X),
    }


def many_points() -> Jobs:
    """Prediction by a fitted model, and the arccos of as many entries."""
    problem = benchmark.Problem.draw(ROWS, n_points=POINTS)
    fitted = benchmark.ours().fit(problem.X, problem.y)
    return {"prediction": (lambda: fitted.predict_interval(problem.X_new),), "its arccos": floors.arccos(POINTS, ROWS)}


def batching() -> Jobs:
    """A fit by batching, and what its Gram matrices and factors cannot avoid."""
    problem = benchmark.Problem.draw(BATCHES * ROWS // 2)
    batches = problem.X.reshape(BATCHES, ROWS // 2, -1)
    model = benchmark.ours().set_params(interval=Batching(BATCHES))
    return {
        "batching": (lambda: model.fit(problem.X, problem.y),),
        "arccos of batches": floors.arccos(BATCHES, ROWS // 2, ROWS // 2),
        "products of batches": floors.products(batches),
        "factorisations of batches": (floors.cholesky(batches),),
    }


RATIOS = {  # by what they are called: one of our jobs, and those whose sum it is held against
    "Gram matrix over arccos and product": (benchmark.GRAM, "arccos", "product"),
    "bootstrap over arccos, product and factorisation": (benchmark.OURS, "arccos", "product", benchmark.CHOLESKY),
    "bootstrap over the same by KernelRidge": (benchmark.OURS, benchmark.SAME),
    "prediction at new points over arccos": ("prediction", "its arccos"),
    "batching over arccos, products and factorisations": (
        *("batching", "arccos of batches", "products of batches", "factorisations of batches"),
    ),
}


def fastest(jobs: Jobs) -> dict[str, float]:
    """Seconds of the fastest call of each; they take turns, so that a slow moment of the machine hits all."""
    seconds = dict.fromkeys(jobs, math.inf)
    for _ in range(ROUNDS):
        for name, ways in jobs.items():
            for way in ways:
                time.sleep(benchmark.REST)
                seconds[name] = min(seconds[name], *(benchmark.seconds(way) for _ in range(CALLS)))
    return seconds


def ratios() -> dict[str, float]:
    seconds = fastest(whole_jobs() | many_points() | batching())
    return {name: seconds[ours] / sum(map(seconds.__getitem__, floor)) for name, (ours, *floor) in RATIOS.items()}


def machine() -> dict[str, Any]:
    return benchmark.machine() | {"processor": platform.processor() or platform.machine()}


@dataclass(frozen=True)
class Line:
    """One ratio beside its limit."""

    name: str
    ratio: float
    stored: float | None

    @property
    def verdict(self) -> str:
        if self.stored is None:
            return "NOT STORED"
        return "kept" if self.ratio <= TOLERANCE * self.stored else "BROKEN"

    def __str__(self) -> str:
        stored, limit = ("–", "–") if self.stored is None else (f"{self.stored:.2f}", f"{TOLERANCE * self.stored:.2f}")
        return f"{self.name:50} {self.ratio:8.2f} {stored:>8} {limit:>8}   {self.verdict}"


def compared(stored: dict[str, float]) -> list[Line]:
    """All ratios; what is beyond its limit is measured once more, because a machine may have had other things to do."""
    found = ratios()
    if any(Line(name, ratio, stored.get(name)).verdict == "BROKEN" for name, ratio in found.items()):
        print("Beyond a limit; measuring once more …", flush=True)
        again = ratios()
        found = {name: min(ratio, again[name]) for name, ratio in found.items()}
    return [Line(name, ratio, stored.get(name)) for name, ratio in found.items()]


ADVICE = {
    "BROKEN": (
        "BROKEN: slower than stored, twice. Let the machine rest and run it again; if it stays, look for the change with "
        "git bisect, and if it is meant, or the machine is another one, store anew: python benchmarks/check.py --store"
    ),
    "NOT STORED": "NOT STORED: nothing to compare with; on a quiet machine: python benchmarks/check.py --store",
}


def main() -> int:
    here = machine()
    if "--store" in sys.argv:
        with replaced(BASELINE) as part:
            part.write_text(json.dumps({"machine": here, "ratios": ratios()}, indent=1) + "\n")
        print(f"Stored in {BASELINE}.")
        return 0
    baseline = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    lines = compared(baseline.get("ratios", {}))
    print(f"{'':50} {'ratio':>8} {'stored':>8} {'limit':>8}   at most {TOLERANCE} times as stored", *lines, sep="\n")
    if baseline.get("machine", here) != here:
        print(f"Stored on another machine ({baseline['machine']}), where ratios may differ; here: {here}.")
    verdicts = {line.verdict for line in lines}
    for verdict, advice in ADVICE.items():
        if verdict in verdicts:
            print(advice)
    return 1 if verdicts & set(ADVICE) else 0


if __name__ == "__main__":
    sys.exit(main())
