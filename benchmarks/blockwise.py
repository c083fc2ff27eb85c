"""Time and memory of batching over blocks, against the number of rows: both must be linear.

python benchmarks/blockwise.py --rows 125000 250000 500000 1000000 --jobs 2
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

FEATURES, POINTS = 16, 1000


def measure(n_rows: int, n_jobs: int) -> None:
    """In a process of its own, so that its peak of memory is its own."""
    import numpy as np

    from unseed import MLP, BlockwisePNCRegressor

    rng = np.random.default_rng(0)
    X, X_new = (rng.uniform(-1, 1, (m, FEATURES)) for m in (n_rows, POINTS))
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n_rows)
    network = MLP(bias_scale=1.0, scale_inputs=True)
    started = time.perf_counter()
    reg = BlockwisePNCRegressor(network=network, regularization=1e-3, random_state=0, n_jobs=n_jobs).fit(X, y)
    fitted = time.perf_counter()
    reg.predict_interval(X_new)
    done = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{n_rows:>10,} {reg.n_blocks_:>7} {fitted - started:>9.1f} {done - fitted:>12.1f} {peak:>8.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[62_500, 125_000, 250_000])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--one", action="store_true", help="measure in this process")
    options = parser.parse_args()
    if options.one:
        measure(options.rows[0], options.jobs)
        return
    print(f"{'rows':>10} {'blocks':>7} {'fit, s':>9} {'predict, s':>12} {'peak, GB':>8}")
    for rows in options.rows:
        subprocess.run([sys.executable, __file__, "--one", "--rows", str(rows), "--jobs", str(options.jobs)], check=True)


if __name__ == "__main__":
    main()
