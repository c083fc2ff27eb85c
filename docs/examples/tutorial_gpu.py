"""The same numbers on a GPU, sooner: one large fit, a hundred small ones together, and trained networks."""

import sys
import time

import numpy as np
import torch

from unseed import MLP, GaussNewton, NetworkEngine, PNCRegressor, predict_interval_many

if not torch.cuda.is_available():
    sys.exit("no CUDA GPU here; device='cpu' gives the same numbers, later")

NETWORK = MLP(activation="erf", bias_scale=1.0, scale_inputs=True)
OPTIONS = {"network": NETWORK, "regularization": 1e-4, "random_state": 0}


def draw(n_rows, n_features=8, seed=0):
    """Rows and labels of a smooth function with a little noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows, n_features))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n_rows)


def seconds_of(job):
    """Result and wall time; the second call counts, since the first one also wakes the GPU up."""
    job()
    start = time.perf_counter()
    result = job()
    return result, time.perf_counter() - start


def one_large(device):
    """One fit to 8,000 rows and intervals at 1,000 points."""
    X, y = draw(8_000)
    return PNCRegressor(device=device, **OPTIONS).fit(X, y).predict_interval(draw(1_000, seed=1)[0])


def many_small(device):
    """A hundred data sets of 500 rows, in one call."""
    X, y = map(np.stack, zip(*(draw(500, seed=seed) for seed in range(100)), strict=True))
    return predict_interval_many(X, y, draw(100, seed=200)[0], device=device, **OPTIONS)


def trained(device):
    """Ten networks of width 4,096 trained to convergence: five replicates, base and auxiliary."""
    X, y = draw(500)
    engine = NetworkEngine(width=4_096, trainer=GaussNewton(tolerance=1e-3))
    reg = PNCRegressor(engine=engine, interval="cheap_bootstrap", device=device, **OPTIONS)
    return reg.fit(X, y).predict_interval(draw(100, seed=1)[0])


print("| job | CPU, s | GPU, s | largest difference of the interval ends |")
print("|---|---|---|---|")
for job in (one_large, many_small, trained):
    (_, here), cpu = seconds_of(lambda job=job: job("cpu"))
    (_, there), gpu = seconds_of(lambda job=job: job("cuda"))
    print(f"| {job.__doc__[:-1]} | {cpu:.1f} | {gpu:.2f} | {np.abs(here - there).max():.0e} |")
