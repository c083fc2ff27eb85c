"""The cost model against the clock: rates of this machine, forecasts from them, and what the jobs really took.

python benchmarks/cost_model.py --out costs.json
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from limits import FEATURES, NETWORK, data, machine
from unseed import (
    SGD,
    GradientDescent,
    KernelEngine,
    LinearizedEngine,
    NetworkEngine,
    PNCRegressor,
    replaced,
)
from unseed.costs import Job, Rates, forecast
from unseed.engines import Engine

ENGINES: dict[str, Engine] = {
    "kernel": KernelEngine(),
    "linearized": LinearizedEngine(width=4096),
    "descent": NetworkEngine(width=4096, trainer=GradientDescent(steps=80)),
    "Gauss-Newton": NetworkEngine(width=4096),
    "mini-batches": NetworkEngine(width=512, trainer=SGD(epochs=20)),
}
CPU_JOBS = [  # interval or "landmarks", rows, points, and the engine where it is not the kernel engine
    ("cheap_bootstrap", 2048, 256),
    ("cheap_bootstrap", 4096, 256),
    ("cheap_bootstrap", 6144, 256),
    ("half_sampling", 4096, 256),
    ("sectioning", 4096, 256),
    ("sectioning", 6144, 1000),
    ("batching", 8192, 1000),
    ("batching", 12288, 1000),
    ("infinitesimal_jackknife", 3072, 1000),
    ("truth", 3072, 1000),
    ("truth", 4096, 4000),
    ("cheap_bootstrap", 1024, 200_000),
    ("landmarks", 32_768, 1000),
    ("landmarks", 131_072, 1000),
    ("landmarks", 65_536, 20_000),
    ("cheap_bootstrap", 512, 1000, "linearized"),
    ("sectioning", 1024, 1000, "linearized"),
    ("truth", 768, 1000, "linearized"),
    ("cheap_bootstrap", 512, 1000, "descent"),
    ("batching", 1024, 1000, "descent"),
    ("cheap_bootstrap", 256, 1000, "Gauss-Newton"),
    ("batching", 1024, 1000, "Gauss-Newton"),
    ("batching", 4096, 1000, "mini-batches"),
]
GPU_JOBS = [
    ("cheap_bootstrap", 16_384, 1000),
    ("cheap_bootstrap", 32_768, 1000),
    ("sectioning", 24_576, 1000),
    ("batching", 65_536, 1000),
    ("truth", 16_384, 4000),
    ("cheap_bootstrap", 8192, 1_000_000),
    ("landmarks", 262_144, 1000),
    ("landmarks", 1_048_576, 1000),
    ("cheap_bootstrap", 4096, 1000, "linearized"),
    ("truth", 4096, 1000, "linearized"),
    ("cheap_bootstrap", 4096, 1000, "descent"),
    ("batching", 2048, 1000, "Gauss-Newton"),
]


def estimator(kind: str, engine: str, device: str) -> Any:
    options = {"network": NETWORK, "regularization": 1e-3, "random_state": 0, "device": device}
    if kind == "landmarks":
        return PNCRegressor(solver=kind, **options)
    return PNCRegressor(interval=kind, engine=ENGINES[engine], **options)


def seconds(regressor: Any, n_rows: int, n_points: int) -> float:
    X, y, X_new = data(n_rows, n_points)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # twenty epochs are not enough, and that is not the point here
        regressor.fit(X, y).predict_interval(X_new)
    return time.perf_counter() - start


def compare(device: str) -> dict[str, Any]:
    jobs = [(*job, "kernel")[:4] for job in (CPU_JOBS if device == "cpu" else GPU_JOBS)]
    for kind, _, _, engine in jobs:  # whatever is done once per process is done here
        seconds(estimator(kind, engine, device), 300, 100)
    rates = Rates.measure(FEATURES, torch.device(device), NETWORK)
    points = []
    for kind, n_rows, n_points, engine in jobs:
        regressor = estimator(kind, engine, device)
        job = Job.of(regressor, n_rows, FEATURES, n_points)
        expected = forecast(job, rates.completed(job)).seconds
        took = min(seconds(regressor, n_rows, n_points) for _ in range(2))
        points.append(
            {"engine": engine, "kind": kind, "rows": n_rows, "points": n_points, "forecast": expected, "measured": took}
        )
        print(
            f"{engine:13} {kind:24} {n_rows:>9,} {n_points:>9,} {expected:8.2f} {took:8.2f} {expected / took:6.2f}", flush=True
        )
    ratios = np.array([point["forecast"] / point["measured"] for point in points])
    within = int(((ratios > 1 / 1.3) & (ratios < 1.3)).sum())
    print(f"{device}: {within} of {len(points)} within 30 %")
    return {"rates": asdict(rates), "points": points, "within": within}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--device", choices=("cpu", "cuda", "all"), default="all")
    options = parser.parse_args()
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])] if options.device == "all" else [options.device]
    found = {"machine": machine(), **{device: compare(device) for device in devices}}
    if options.out:
        with replaced(options.out) as part:
            part.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
