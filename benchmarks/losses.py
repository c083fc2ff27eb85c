"""How well rates, means, robust centres and quantiles are covered by their intervals, and how wide these are.

    python benchmarks/losses.py --rows 256 --repetitions 2

A line of `--out` is a data set and a loss; lines that are there are not measured again. `classes_page.py` writes the table.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm

from classes import ORACLE, POINTS, Array, Record
from unseed import PNCRegressor, losses

OUT = Path(__file__).parent.parent / "results" / "losses.json"
FUNCTIONS: dict[str, tuple[int, Callable[[Array], Array]]] = {
    "null": (3, lambda X: 0 * X[:, 0]),
    "wave": (1, lambda X: np.sin(3 * X[:, 0])),
    "ring": (2, lambda X: 1 - 0.5 * (X**2).sum(1)),
    "product": (4, lambda X: 0.7 * X[:, 0] * X[:, 1] + 0.5 * X[:, 2]),
    "ridge": (8, lambda X: 1.5 * np.tanh(X[:, :4].sum(1) / 2)),
    "kink": (2, lambda X: np.abs(X[:, 0]) - 1 + 0.5 * X[:, 1] * (X[:, 1] > 0)),
}
Draw = Callable[[Array, np.random.Generator], Array]
LOSSES: dict[str, tuple[Any, Draw, Callable[[Array], Array]]] = {
    "poisson": ("poisson", lambda f, rng: rng.poisson(np.exp(f + 0.5)), lambda f: np.exp(f + 0.5)),
    "gamma": ("gamma", lambda f, rng: rng.gamma(3, np.exp(f) / 3), np.exp),
    "huber": ("huber", lambda f, rng: f + 0.3 * rng.standard_t(2, size=len(f)), lambda f: f),
    "quantile .5": (losses.Quantile(0.5), lambda f, rng: f + 0.3 * rng.standard_t(2, size=len(f)), lambda f: f),
    "quantile .9": (losses.Quantile(0.9), lambda f, rng: f + 0.5 * rng.normal(size=len(f)), lambda f: f + 0.5 * norm.ppf(0.9)),
}


def measured(name: str, loss: str, n: int, seed: int) -> Record:
    """One data set."""
    (d, function), (option, draw, target) = FUNCTIONS[name], LOSSES[loss]
    rng = np.random.default_rng([seed, n, sum(map(ord, name + loss))])
    X, X_new = (np.sqrt(3) * rng.uniform(-1, 1, (rows, d)) for rows in (n, POINTS))
    y, truth = draw(function(X), rng), target(function(X_new))
    start = time.perf_counter()
    mean, bounds = PNCRegressor(loss=option, random_state=0).fit(X, y.astype(float)).predict_interval(X_new)
    seconds = time.perf_counter() - start
    low, high = bounds[:, 0, 0], bounds[:, 1, 0]
    logs = loss in ("poisson", "gamma")  # there the oracle's error is that of the logarithm
    error = ORACLE * float(np.sqrt(np.mean((np.log(mean / truth) if logs else mean - truth) ** 2)))
    oracle = float(np.mean(2 * mean * np.sinh(error))) if logs else 2 * error
    covered = float(np.mean((low <= truth) & (truth <= high)))
    kept = {"function": name, "loss": loss, "rows": n, "seed": seed, "seconds": round(seconds, 3)}
    return {**kept, "coverage": covered, "width": float((high - low).mean()), "oracle": oracle}


def records(path: Path = OUT) -> list[Record]:
    """What was measured so far."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", type=int, default=[256])
    parser.add_argument("--repetitions", type=int, default=2)
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=list(LOSSES))
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args(arguments)
    done = {(one["function"], one["loss"], one["rows"], one["seed"]) for one in records(asked.out)}
    cells = (
        (seed, n, name, loss)
        for seed in range(asked.repetitions)
        for n in asked.rows
        for name in FUNCTIONS
        for loss in asked.losses
    )
    for seed, n, name, loss in cells:
        if (name, loss, n, seed) not in done:
            record = measured(name, loss, n, seed)
            with asked.out.open("a") as file:
                file.write(json.dumps(record) + "\n")
            print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
