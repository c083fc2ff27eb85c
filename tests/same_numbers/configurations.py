"""What is fitted, one function each: engines, intervals, networks, calibration, outputs, sizes and baselines.

Only public names that the commit before has too: the same file runs on both sides. Each configuration is cheap, has a fixed
seed, and returns named arrays.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from same_numbers import surfaces
from same_numbers.quantities import Quantities, answers
from unseed import (
    MLP,
    SGD,
    AutoNetwork,
    Batching,
    CheapBootstrap,
    DeepEnsembleRegressor,
    GaussNewton,
    GradientDescent,
    GradientFlow,
    HalfSampling,
    KernelEngine,
    LinearizedEngine,
    MCDropoutRegressor,
    MonteCarloMean,
    NetworkEngine,
    PNCRegressor,
    SingleNetworkRegressor,
)

RELU = MLP(bias_scale=1.0, scale_inputs=True)


def rows(n: int, features: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """X, and labels with two outputs, noise that grows with the first feature, and units far from 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, features)) * np.arange(1, features + 1) + 5
    first, last = X[:, 0] - 5, (X[:, -1] - 5) / features
    noise = rng.normal(size=(n, 2)) * (0.1 + 0.1 * np.abs(first[:, None]))
    return X, 40 + 7 * (np.column_stack([np.sin(2 * first) + last, first * last]) + noise)


def new_points(features: int = 3) -> np.ndarray:
    """Eleven points between the rows, and two far from all of them."""
    X, _ = rows(13, features, seed=1)
    X[-2:] += 20
    return X


def trend(X: np.ndarray) -> np.ndarray:
    """A guess at the function, in units of y."""
    return 35 + X[:, 0]


def trends(X: np.ndarray) -> np.ndarray:
    """A guess at both outputs."""
    return np.column_stack([trend(X), 2 * trend(X)])


def module(n_outputs: int = 1, activation: type[torch.nn.Module] = torch.nn.Tanh) -> torch.nn.Module:
    """A torch module of the user's own."""
    return torch.nn.Sequential(torch.nn.Linear(3, 12), activation(), torch.nn.Linear(12, n_outputs))


def pnc(n: int = 60, outputs: int = 1, **options: Any) -> Quantities:
    """Fit a `PNCRegressor` and ask it everything."""
    return fitted(PNCRegressor(**{"network": RELU, "regularization": 0.01, "random_state": 0} | options), n, outputs)


def fitted(reg: Any, n: int = 60, outputs: int = 1) -> Quantities:
    """Fit to one output or both, and ask everything."""
    X, y = rows(n)
    return answers(reg.fit(X, y if outputs == 2 else y[:, 0]), new_points())


def one_feature(**options: Any) -> Quantities:
    """Fit a curve, its network being chosen."""
    x = np.linspace(-2, 2, 60)[:, None]
    return answers(PNCRegressor(random_state=0, **options).fit(x, np.abs(x[:, 0])), np.linspace(-3, 3, 9)[:, None])


def with_a_rival() -> Quantities:
    """Labels that are mostly noise, for which two architectures are nearly as good."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(40, 2))
    return answers(PNCRegressor(random_state=0).fit(x, x[:, 0] + 0.5 * rng.normal(size=40)), x[:9] + 0.1)


def baseline(kind: Any, outputs: int = 1, **options: Any) -> Quantities:
    """Fit another regressor and ask it what it can be asked."""
    return fitted(
        kind(**{"network": MLP(bias_scale=1.0, width=24), "regularization": 0.02, "random_state": 0} | options), 50, outputs
    )


FLOW, SHORT = GradientFlow(time=30.0), GradientDescent(steps=20, rate=0.05)
NARROW = MLP(bias_scale=1.0, scale_inputs=True, width=24, activation="tanh")
DESCENT = NetworkEngine(dtype="float64", trainer=GradientDescent(steps=60))
TO_THE_END = NetworkEngine(dtype="float64", trainer=GradientDescent(steps=3000, tolerance=0.05))
NEWTON = NetworkEngine(dtype="float64", trainer=GaussNewton(steps=12))
LINEAR = LinearizedEngine(width=64)

EXACT: dict[str, Callable[[], Quantities]] = {
    "kernel-truth": partial(pnc, 120),
    "kernel-sectioning": partial(pnc, interval="sectioning"),
    "kernel-batching": partial(pnc, interval=Batching(batches=3), outputs=2),
    "kernel-cheap-bootstrap": partial(pnc, interval=CheapBootstrap(replications=6)),
    "kernel-half-sampling": partial(pnc, interval=HalfSampling(replications=3), outputs=2),
    "kernel-jackknife": partial(pnc, interval="infinitesimal_jackknife"),
    "kernel-jackknife-outputs": partial(pnc, 90, interval="infinitesimal_jackknife", outputs=2, calibration="normal"),
    "kernel-eight-rows": partial(pnc, 8, interval=Batching(batches=2), regularization=0.1),
    "kernel-many-rows": partial(pnc, 600, network=MLP(activation="erf", bias_scale=1.0), noise="varying"),
    "kernel-relu-three-layers": partial(pnc, network=MLP(depth=3, bias_scale=0.3, bias_init="zero", weight_std=1.3)),
    "kernel-erf-two-layers": partial(pnc, 80, 2, network=MLP(depth=2, activation="erf", bias_scale=1.0, scale_inputs=True)),
    "kernel-tanh-scaled": partial(pnc, network=MLP(activation="tanh", bias_scale=0.5, input_scale=[1.0, 0.5, 2.0])),
    "kernel-gelu": partial(pnc, network=MLP(depth=2, activation="gelu", bias_scale=1.0, bias_init="zero"), noise="constant"),
    "kernel-softplus": partial(
        pnc, network=MLP(activation="softplus", bias_scale=1.0, scale_inputs=True), calibration="normal"
    ),
    "kernel-silu": partial(pnc, network=MLP(activation="silu", bias_scale=1.0), interval="cheap_bootstrap", outputs=2),
    "kernel-sin": partial(pnc, network=MLP(activation="sin", depth=2, bias_scale=1.0, scale_inputs=True)),
    "kernel-own-activation": partial(pnc, network=MLP(activation=torch.nn.functional.mish, bias_scale=1.0)),
    "kernel-penalty-chosen": partial(pnc, 90, 2, network=MLP(scale_inputs=True), regularization="auto"),
    "kernel-own-units": partial(pnc, standardize=False, noise="constant", calibration="normal", regularization=0.5),
    "kernel-flow": partial(pnc, engine=KernelEngine(training=FLOW)),
    "kernel-steps": partial(pnc, 50, 2, engine=KernelEngine(training=SHORT), interval=Batching(batches=3), network=MLP()),
    "kernel-mixed": partial(
        pnc, 200, engine=KernelEngine(precision="mixed"), interval="cheap_bootstrap", calibration="conformal"
    ),
    "kernel-mixed-truth": partial(pnc, 130, 2, engine=KernelEngine(precision="mixed")),
    "kernel-given-mean": partial(pnc, 70, initial_mean=trend),
    "kernel-given-means": partial(pnc, 40, 2, initial_mean=trends, interval="infinitesimal_jackknife"),
    "kernel-averaged-mean": partial(pnc, initial_mean=MonteCarloMean(draws=5)),
    "linearized-truth": partial(pnc, engine=LINEAR),
    "linearized-few-parameters": partial(pnc, 150, engine=LinearizedEngine(width=6), interval="sectioning"),
    "linearized-few-parameters-truth": partial(pnc, 100, 2, engine=LinearizedEngine(width=5), network=NARROW),
    "linearized-bootstrap": partial(pnc, 50, 2, engine=LINEAR, interval="cheap_bootstrap", network=MLP(activation="erf")),
    "linearized-jackknife": partial(pnc, engine="linearized", interval="infinitesimal_jackknife", network=NARROW),
    "linearized-half-sampling-flow": partial(
        pnc,
        engine=LinearizedEngine(training=FLOW),
        interval=HalfSampling(replications=2),
        network=MLP(depth=2, activation="gelu", width=24),
    ),
    "linearized-steps": partial(pnc, 40, engine=LinearizedEngine(width=32, training=SHORT), network=MLP(), initial_mean=trend),
    "linearized-module": partial(pnc, 50, engine="linearized", network=module, interval="sectioning"),
    "linearized-module-outputs": partial(pnc, 40, 2, engine="linearized", network=partial(module, 2, torch.nn.GELU)),
    "ensemble-linearized": partial(baseline, DeepEnsembleRegressor, members=3, engine="linearized", outputs=2),
    "single-linearized": partial(baseline, SingleNetworkRegressor, engine="linearized"),
    "single-without-interval": partial(baseline, SingleNetworkRegressor, engine="linearized", interval=None),
    "saved": partial(surfaces.saved, rows, new_points),
    "compressed": partial(surfaces.compressed, rows, new_points),
    "many-data-sets": surfaces.many_data_sets,
    "kernels": surfaces.kernels,
    "forecasts": surfaces.forecasts,
    "pages": partial(surfaces.pages, rows),
    "displays": partial(surfaces.displays, rows),
}
"""Closed form: ten digits must stay."""

TRAINED: dict[str, Callable[[], Quantities]] = {
    "network-gauss-newton": partial(pnc, 30, engine=NEWTON, network=NARROW),
    "network-jackknife": partial(pnc, 30, engine=NEWTON, network=NARROW, interval="infinitesimal_jackknife"),
    "network-descent": partial(pnc, 50, 2, engine=DESCENT, network=NARROW),
    "network-descent-to-the-end": partial(
        pnc, 40, engine=TO_THE_END, network=NARROW, interval="cheap_bootstrap", regularization=0.1
    ),
    "network-single-precision": partial(pnc, 40, engine=NetworkEngine(trainer=GradientDescent(steps=20)), network=NARROW),
    "network-module-batches": partial(
        pnc,
        50,
        2,
        engine=NetworkEngine(dtype="float64", trainer=SGD(epochs=15, batch_size=16)),
        network=partial(module, 2),
        interval="batching",
    ),
    "ensemble-trained": partial(baseline, DeepEnsembleRegressor, members=2, interval="batching", engine=DESCENT),
    "single-trained": partial(baseline, SingleNetworkRegressor, engine=DESCENT, outputs=2),
    "dropout": partial(baseline, MCDropoutRegressor, rate=0.2, steps=20, passes=10),
    "dropout-descent": partial(baseline, MCDropoutRegressor, passes=10, trainer=GradientDescent(steps=5, rate=0.01), outputs=2),
    "network-chosen-and-a-rival": with_a_rival,
    "network-chosen-left-out": partial(
        one_feature, network=AutoNetwork(criterion="leave_one_out", relevance=False, max_rows=40)
    ),
    "command-line": partial(surfaces.command_line, "price", "auto"),
    "command-line-two-targets": partial(surfaces.command_line, "price,size", "cheap_bootstrap"),
}
"""Trained, chosen by climbing or found by iterating until something is small enough: six digits must stay."""

TOLERANCES = {**dict.fromkeys(EXACT, 1e-10), **dict.fromkeys(TRAINED, 1e-6)}
