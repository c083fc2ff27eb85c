"""What one fit with intervals costs, as a ratio in one run: PNCRegressor against a bare Gram matrix and factorisation.

The floor: a Cholesky factorisation of n rows is n³/3 multiplications and additions; a bootstrap resample has 0.632 n
distinct rows, so four of them add 4 · 0.632³ = 1.01 factorisations, and 256 new points add a quarter of a Gram matrix.
With the Gram matrix built once the job cannot cost less than about 1.25 Gram matrices and 2.01 factorisations.
"""

import statistics
import sys
import time

import numpy as np
import torch

from unseed import MLP, CheapBootstrap, PNCRegressor
from unseed.kernels import PopulationKernel

N_ROWS, N_FEATURES, N_POINTS, REPLICATIONS, REPETITIONS, LIMIT = 1024, 16, 256, 4, 15, 3.5


def seconds(job):
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def main():
    rng = np.random.default_rng(0)
    X, X_new = rng.normal(size=(N_ROWS, N_FEATURES)), rng.normal(size=(N_POINTS, N_FEATURES))
    y = np.sin(X).sum(axis=1) + 0.1 * rng.standard_normal(N_ROWS)
    network = MLP(bias_scale=1.0, scale_inputs=True)
    kernel, rows = PopulationKernel(network), torch.tensor(X)
    regularised = kernel.ntk_gram(kernel.profile(rows)) + 1e-3 * torch.eye(N_ROWS, dtype=torch.float64)

    def fit(regularization):
        reg = PNCRegressor(
            interval=CheapBootstrap(REPLICATIONS), network=network, regularization=regularization, random_state=0
        )
        return lambda: reg.fit(X, y).predict_interval(X_new)

    jobs = {
        "bare NTK Gram matrix": lambda: kernel.ntk_gram(kernel.profile(rows)),
        "bare Cholesky factorisation": lambda: torch.linalg.cholesky(regularised),
        "fit + intervals, λ given": fit(1e-6),
        "fit + intervals, λ by leave-one-out": fit("auto"),
    }
    times = {name: [] for name in jobs}
    for repetition in range(REPETITIONS + 2):  # interleaved, so that a slow moment of the machine hits all jobs
        for name, job in jobs.items():
            elapsed = seconds(job)
            if repetition >= 2:
                times[name].append(elapsed)
    typical = {name: statistics.median(values) for name, values in times.items()}
    bare = typical["bare NTK Gram matrix"] + typical["bare Cholesky factorisation"]
    print(
        f"n = {N_ROWS}, d = {N_FEATURES}, {N_POINTS} new points, cheap bootstrap R = {REPLICATIONS}, "
        f"{torch.get_num_threads()} threads, median of {REPETITIONS}"
    )
    for name, value in typical.items():
        print(f"  {name:38} {1e3 * value:8.1f} ms   {value / bare:5.2f} × (Gram + Cholesky)")
    ratio = typical["fit + intervals, λ given"] / bare
    print(f"limit {LIMIT}: {'kept' if ratio <= LIMIT else 'BROKEN'}")
    return 0 if ratio <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
