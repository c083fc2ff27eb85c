"""The methods of the scoreboard: each takes rows, labels and new points, and returns centre, half width and seconds to fit."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray
Z = 1.959963984540054


class Answer(NamedTuple):
    centre: Array
    half_width: Array
    fit_seconds: float
    notes: Mapping[str, Any] = MappingProxyType({})


def unseed(X: Array, y: Array, X_new: Array, seed: int) -> Answer:
    """`PNCRegressor()`: no tuning at all."""
    from unseed import PNCRegressor

    start = time.perf_counter()
    reg = PNCRegressor(random_state=seed, device="cpu").fit(X, y)
    elapsed = time.perf_counter() - start
    centre, intervals = reg.predict_interval(X_new)
    diagnosis = reg.diagnose()
    network = reg.network_
    relevance = " relevance" if len(set(network.input_scale)) > 1 else ""
    notes = {
        "network": f"{network.activation} {network.depth}{relevance}",
        "warnings": [finding.name for finding in diagnosis.warnings],
        "findings": {finding.name: float(f"{finding.value:.4g}") for finding in diagnosis.findings},
    }
    return Answer(centre, (intervals[:, 1, 0] - intervals[:, 0, 0]) / 2, elapsed, notes)


def gaussian_process(X: Array, y: Array, X_new: Array, seed: int, *, relevance: bool = False) -> Answer:
    """scikit-learn's Gaussian process, RBF and white noise, optimised with two restarts; the interval is for f."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    X, X_new, y, shift, scale = _standardise(X, X_new, y)
    d = X.shape[1]
    length = np.full(d, np.sqrt(d)) if relevance else np.sqrt(d)
    kernel = ConstantKernel(1.0, (1e-4, 1e6)) * RBF(length, (1e-2, 1e4)) + WhiteKernel(1e-2, (1e-10, 1e2))
    start = time.perf_counter()
    process = GaussianProcessRegressor(kernel, n_restarts_optimizer=2, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # bounds reached by irrelevant features
        process.fit(X, y)
    elapsed = time.perf_counter() - start
    mean, deviation = process.predict(X_new, return_std=True)
    deviation = np.sqrt(np.maximum(deviation**2 - process.kernel_.k2.noise_level, 0))
    notes = {"log_likelihood": float(process.log_marginal_likelihood_value_)}
    return Answer(mean * scale + shift, Z * deviation * scale, elapsed, notes)


def gaussian_process_relevance(X: Array, y: Array, X_new: Array, seed: int) -> Answer:
    """The same with a length for every feature."""
    return gaussian_process(X, y, X_new, seed, relevance=True)


def deep_ensemble(X: Array, y: Array, X_new: Array, seed: int) -> Answer:
    """Five networks of two layers of 100, ± 1.96 standard deviations of the members."""
    return _networks(X, y, X_new, seed, members=5, resample=False)


def bootstrap(X: Array, y: Array, X_new: Array, seed: int) -> Answer:
    """Twenty-five such networks, each on a resample of the rows."""
    return _networks(X, y, X_new, seed, members=25, resample=True)


def mc_dropout(X: Array, y: Array, X_new: Array, seed: int) -> Answer:
    """Monte Carlo dropout at rate 0.1."""
    from unseed import MLP, MCDropoutRegressor

    start = time.perf_counter()
    network = MLP(depth=2, width=512, bias_scale=1.0, scale_inputs=True)
    reg = MCDropoutRegressor(rate=0.1, network=network, random_state=seed, device="cpu").fit(X, y)
    elapsed = time.perf_counter() - start
    centre, intervals = reg.predict_interval(X_new)
    return Answer(centre, (intervals[:, 1, 0] - intervals[:, 0, 0]) / 2, elapsed)


def _networks(X: Array, y: Array, X_new: Array, seed: int, *, members: int, resample: bool) -> Answer:
    from sklearn.neural_network import MLPRegressor

    X, X_new, y, shift, scale = _standardise(X, X_new, y)
    rng = np.random.default_rng(seed)
    start = time.perf_counter()
    predictions = []
    for member in range(members):
        rows = rng.integers(len(X), size=len(X)) if resample else np.arange(len(X))
        network = MLPRegressor(hidden_layer_sizes=(100, 100), max_iter=300, random_state=seed * 1000 + member)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predictions.append(network.fit(X[rows], y[rows]).predict(X_new))
    elapsed = time.perf_counter() - start
    centre, deviation = np.mean(predictions, axis=0), np.std(predictions, axis=0, ddof=1)
    return Answer(centre * scale + shift, Z * deviation * scale, elapsed)


def _standardise(X: Array, X_new: Array, y: Array) -> tuple[Array, Array, Array, float, float]:
    shift, scale = X.mean(0), X.std(0)
    return (X - shift) / scale, (X_new - shift) / scale, (y - y.mean()) / y.std(), y.mean(), y.std()


METHODS: dict[str, Callable[[Array, Array, Array, int], Answer]] = {
    function.__name__: function
    for function in (unseed, gaussian_process, gaussian_process_relevance, deep_ensemble, bootstrap, mc_dropout)
}
