"""Finite networks approach the kernel like width^-1/2, and PNC takes the seed out of trained networks."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from unseed import MLP, InfinitesimalJackknife, LinearizedEngine, NetworkEngine, PNCRegressor


def data(d, n=64):
    rng = np.random.default_rng(0)
    X, X_new = rng.uniform(0, 0.2, size=(n, d)), rng.uniform(0, 0.2, size=(50, d))
    return X, np.sin(X).sum(axis=1) + 0.001 * rng.standard_normal(n), X_new


def predictions(d, engine, seed):
    """PNC and base network on standardised y."""
    X, y, X_new = data(d)
    options = {"network": MLP(bias_scale=1.0), "regularization": 1e-4, "random_state": seed}
    reg = PNCRegressor(engine=engine, interval=InfinitesimalJackknife(), **options).fit(X, y)
    replicates = reg._replicates
    base, auxiliary = replicates.trained.predict(replicates.at(X_new).points)[0].unbind(1)
    return (base - auxiliary)[:, 0].numpy(), base[:, 0].numpy()


@pytest.mark.parametrize("d", [2, 16])
def test_linearised_networks_approach_the_kernel_like_the_inverse_root_of_width(d):
    widths = [128, 512, 2048, 8192]
    kernel, _ = predictions(d, "kernel", 0)
    distances = [
        np.mean([np.abs(predictions(d, LinearizedEngine(width=w), seed)[0] - kernel).mean() for seed in range(4)])
        for w in widths
    ]
    slope = np.polyfit(np.log(widths), np.log(distances), 1)[0]
    assert -0.65 < slope < -0.35  # four distances with a relative sd of about 0.2 each over 4.2 logarithmic units: sd 0.07


@pytest.mark.parametrize(("d", "ratio"), [(2, 3), (16, 8)])
def test_trained_pnc_is_near_the_kernel_and_a_single_network_is_not(d, ratio):
    kernel, _ = predictions(d, "kernel", 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        runs = [predictions(d, NetworkEngine(width=32 * 64), seed) for seed in range(6)]
    pnc, single = (np.array(values) for values in zip(*runs, strict=True))
    assert np.abs(pnc - kernel).mean() < 0.03
    assert np.abs(single - kernel).mean() > ratio * np.abs(pnc - kernel).mean()
    assert pnc.var(axis=0).mean() < 0.1 * single.var(axis=0).mean()
