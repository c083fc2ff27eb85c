"""Every promise about speed and memory, measured: what it took, what could not be avoided, and the ratio of the two.

python benchmarks/limits.py                       all that this machine can measure
python benchmarks/limits.py bootstrap points      some of it
python benchmarks/limits.py --out limits.json     figures as JSON

Every measurement runs in a process of its own, so that its peak of memory is its own. Best of a few timings.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.linalg import lapack

from unseed import MLP, PNCRegressor, predict_interval_many, replaced

NETWORK = MLP(bias_scale=1.0, scale_inputs=True)
OPTIONS: dict[str, Any] = {"network": NETWORK, "regularization": 1e-3, "random_state": 0}
FEATURES = 16
Figures = dict[str, float]


def data(n_rows: int, n_points: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, X_new = (rng.uniform(-1, 1, (m, FEATURES)) for m in (n_rows, n_points))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n_rows), X_new


def best(function: Callable[[], object], repetitions: int = 3) -> float:
    times = []
    for _ in range(repetitions):
        synchronise()
        start = time.perf_counter()
        function()
        synchronise()
        times.append(time.perf_counter() - start)
    return min(times)


def synchronise() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def peak_since_start(before: int) -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before


def factorisation(n_rows: int) -> float:
    """Seconds of one bare factorisation in place."""
    rng = np.random.default_rng(0)
    thin = rng.normal(size=(n_rows, 32))
    times = []
    for _ in range(3):
        matrix = thin @ thin.T
        matrix[np.diag_indices(n_rows)] += n_rows
        start = time.perf_counter()
        lapack.dpotrf(matrix.T, lower=0, overwrite_a=1, clean=0)
        times.append(time.perf_counter() - start)
    return min(times)


def bootstrap(n_rows: int = 8192) -> Figures:
    """Cheap bootstrap against the factorisations it cannot avoid, and its memory in n × n matrices."""
    X, y, X_new = data(n_rows, 256)
    PNCRegressor(interval="cheap_bootstrap", device="cpu", **OPTIONS).fit(X[:500], y[:500]).predict_interval(X_new)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def job() -> None:
        PNCRegressor(interval="cheap_bootstrap", device="cpu", **OPTIONS).fit(X, y).predict_interval(X_new)

    seconds = best(job, 2)
    peak = peak_since_start(before)
    distinct = [len(np.unique(np.random.default_rng(r).integers(n_rows, size=n_rows))) for r in range(4)]
    floor = factorisation(n_rows) + sum(factorisation(rows) for rows in distinct)
    return {
        "rows": n_rows,
        "seconds": seconds,
        "floor_seconds": floor,
        "ratio": seconds / floor,
        "peak_matrices": peak / 8 / n_rows**2,
    }


def points(n_points: int = 1_000_000, n_rows: int = 1024) -> Figures:
    """Intervals at many points against one elementwise arccos over as many kernel entries."""
    X, y, X_new = data(n_rows, n_points)
    reg = PNCRegressor(interval="cheap_bootstrap", device="cpu", **OPTIONS).fit(X, y)
    reg.predict_interval(X_new[:2000])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    seconds = best(lambda: reg.predict_interval(X_new), 1)
    peak = peak_since_start(before)
    strip = torch.rand(4096, n_rows, dtype=torch.float64).mul_(1.98).sub_(0.99)
    into = torch.empty_like(strip)
    by_torch = best(lambda: torch.acos(strip, out=into), 5) * n_points / len(strip)
    by_numpy = best(lambda: np.arccos(strip.numpy(), out=into.numpy()), 5) * n_points / len(strip)
    return {
        "points": n_points,
        "rows": n_rows,
        "seconds": seconds,
        "floor_seconds": by_torch,
        "ratio": seconds / by_torch,
        "ratio_to_numpy_on_one_core": seconds / by_numpy,
        "peak_gigabytes": peak / 1e9,
    }


def many_rows(n_rows: int = 1_000_000, device: str = "cpu") -> Figures:
    """Rows that are summed up, with intervals at 1,000 points, and the same for half of them; the network is chosen."""
    figures: Figures = {"rows": n_rows}
    for rows, name in ((n_rows // 2, "half_"), (n_rows, "")):
        X, y, X_new = data(rows, 1000)
        start = time.perf_counter()
        PNCRegressor(random_state=0, device=device).fit(X, y).predict_interval(X_new)
        synchronise()
        figures[name + "seconds"] = time.perf_counter() - start
    figures["ratio"] = figures["seconds"] / figures["half_seconds"]
    figures["peak_gigabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return figures


def gpu_many(n_sets: int = 100, n_rows: int = 1024) -> Figures:
    """Milliseconds for each of a hundred data sets."""
    sets = [data(n_rows, 256, seed) for seed in range(n_sets)]
    X, y, X_new = (torch.tensor(np.stack(part), device="cuda") for part in zip(*sets, strict=True))
    figures: Figures = {"sets": n_sets, "rows": n_rows}
    for interval in ("cheap_bootstrap", "batching"):

        def job(interval: str = interval) -> None:
            predict_interval_many(X, y, X_new, network=NETWORK, regularization=1e-3, interval=interval, device="cuda")

        job()
        figures[f"{interval}_ms_each"] = best(job, 20) * 1000 / n_sets
    return figures


def gpu_bootstrap(n_rows: int = 32768) -> Figures:
    """Cheap bootstrap of a large data set, and the factorisations alone."""
    X, y, X_new = data(n_rows, 256)
    PNCRegressor(interval="cheap_bootstrap", device="cuda", **OPTIONS).fit(X[:2000], y[:2000]).predict_interval(X_new)

    def job() -> None:
        PNCRegressor(interval="cheap_bootstrap", device="cuda", **OPTIONS).fit(X, y).predict_interval(X_new)

    seconds = best(job, 2)
    peak = torch.cuda.max_memory_allocated()
    torch.cuda.empty_cache()
    matrix = torch.eye(n_rows, dtype=torch.float64, device="cuda").add_(1e-6)
    part = matrix[: int(0.632 * n_rows), : int(0.632 * n_rows)].contiguous()
    floor = best(lambda: torch.linalg.cholesky_ex(matrix)) + 4 * best(lambda: torch.linalg.cholesky_ex(part))
    return {
        "rows": n_rows,
        "seconds": seconds,
        "floor_seconds": floor,
        "ratio": seconds / floor,
        "peak_matrices": peak / 8 / n_rows**2,
    }


def gpu_many_rows() -> Figures:
    """A million rows on a GPU."""
    many_rows(40_000, device="cuda")
    return many_rows(1_000_000, device="cuda")


def gpu_ceilings() -> Figures:
    """What the GPU can do at best, and what share of it the kernel and the factorisation reach."""
    from unseed.kernels import PopulationKernel

    n = 16384
    square = torch.rand(n, n, dtype=torch.float64, device="cuda")
    product = 2 * n**3 / best(lambda: square @ square)
    other = torch.empty_like(square)
    bandwidth = 2 * 8 * n**2 / best(lambda: other.copy_(square), 5)
    other = (square + square.T).add_(2 * n * torch.eye(n, device="cuda"))
    cholesky = n**3 / 3 / best(lambda: torch.linalg.cholesky_ex(other))
    kernel = PopulationKernel(NETWORK)
    profile = kernel.profile(torch.tensor(data(n, 1)[0], device="cuda"))
    entries = n * (n + 1) / 2 / best(lambda: kernel.ntk_gram(profile))
    arccos = torch.rand(n, n, dtype=torch.float64, device="cuda")
    into = torch.empty_like(arccos)
    arccos_entries = n**2 / best(lambda: torch.acos(arccos, out=into), 5)
    return {
        "matrix_product_tflops": product / 1e12,
        "bandwidth_tb_per_s": bandwidth / 1e12,
        "cholesky_tflops": cholesky / 1e12,
        "cholesky_share_of_matrix_product": cholesky / product,
        "kernel_entries_per_ns": entries / 1e9,
        "arccos_entries_per_ns": arccos_entries / 1e9,
        "kernel_share_of_arccos": entries / arccos_entries,
        # written twice, once for each triangle; all temporaries would stay on the chip in an ideal kernel
        "kernel_share_of_bandwidth": 16 * entries / bandwidth,
    }


ON_CPU = (bootstrap, points, many_rows)
ON_GPU = (gpu_many, gpu_bootstrap, gpu_many_rows, gpu_ceilings)
BY_NAME = {function.__name__: function for function in (*ON_CPU, *ON_GPU)}


def machine() -> dict[str, Any]:
    found = {
        "cores": len(os.sched_getaffinity(0)),
        "processor": platform.processor() or platform.machine(),
        "torch": torch.__version__,
    }
    if torch.cuda.is_available():
        found["gpu"] = torch.cuda.get_device_name()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", nargs="*", choices=[*BY_NAME, []], default=[])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", action="store_true", help="measure in this process and print JSON")
    options = parser.parse_args()
    which = options.which or [f.__name__ for f in (*ON_CPU, *(ON_GPU if torch.cuda.is_available() else ()))]
    if options.one:
        print(json.dumps(BY_NAME[which[0]]()))
        return 0
    found: dict[str, Any] = {"machine": machine(), "figures": {}}
    for name in which:
        done = subprocess.run([sys.executable, __file__, "--one", name], capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{name}: failed\n{done.stderr[-2000:]}", flush=True)
            continue
        found["figures"][name] = json.loads(done.stdout.splitlines()[-1])
        print(name, json.dumps(found["figures"][name]), flush=True)
        if options.out:
            with replaced(options.out) as part:
                part.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
