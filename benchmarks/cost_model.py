"""The cost model against the clock: rates of this machine, forecasts from them, and what the jobs really took.

python benchmarks/cost_model.py --out costs.json
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from limits import NETWORK, data, machine
from unseed import BlockwisePNCRegressor, PNCRegressor
from unseed.costs import Job, Rates, forecast

CPU_JOBS = [  # interval or "blocks", rows, points
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
    ("blocks", 32_768, 1000),
    ("blocks", 131_072, 1000),
    ("blocks", 65_536, 20_000),
]
GPU_JOBS = [
    ("cheap_bootstrap", 16_384, 1000),
    ("cheap_bootstrap", 32_768, 1000),
    ("sectioning", 24_576, 1000),
    ("batching", 65_536, 1000),
    ("truth", 16_384, 4000),
    ("cheap_bootstrap", 8192, 1_000_000),
    ("blocks", 262_144, 1000),
    ("blocks", 1_048_576, 1000),
]


def estimator(kind: str, device: str) -> Any:
    options = {"network": NETWORK, "regularization": 1e-3, "random_state": 0, "device": device}
    return BlockwisePNCRegressor(**options) if kind == "blocks" else PNCRegressor(interval=kind, **options)


def seconds(kind: str, n_rows: int, n_points: int, device: str) -> float:
    X, y, X_new = data(n_rows, n_points)
    start = time.perf_counter()
    estimator(kind, device).fit(X, y).predict_interval(X_new)
    return time.perf_counter() - start


def compare(device: str) -> dict[str, Any]:
    jobs = CPU_JOBS if device == "cpu" else GPU_JOBS
    for kind in {kind for kind, *_ in jobs}:  # whatever is done once per process is done here
        seconds(kind, 2000, 100, device)
    rates = Rates.measure(16, torch.device(device), NETWORK)
    points = []
    for kind, n_rows, n_points in jobs:
        expected = forecast(Job.of(estimator(kind, device), n_rows, 16, n_points), rates).seconds
        took = min(seconds(kind, n_rows, n_points, device) for _ in range(2))
        points.append({"kind": kind, "rows": n_rows, "points": n_points, "forecast": expected, "measured": took})
        print(f"{kind:24} {n_rows:>9,} {n_points:>9,} {expected:8.2f} {took:8.2f} {expected / took:6.2f}", flush=True)
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
        options.out.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
