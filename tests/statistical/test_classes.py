"""Coverage under losses that bend: of h*, the regularised fit to infinitely many data, and of the probability itself."""

import numpy as np
import pytest
import torch

from unseed import MLP, KernelEngine, PNCClassifier
from unseed._resampling import full
from unseed._solvers.curved import Bent, solve_bent
from unseed.engines import NewPoints, Task
from unseed.kernels import PopulationKernel
from unseed.losses import Huber, Logistic, Poisson

NETWORK, REGULARIZATION, N_SUPPORT = MLP(bias_scale=1.0), 0.02, 25
SUPPORT = np.random.default_rng(1).uniform(-1, 1, size=(N_SUPPORT, 2))
ETA = np.sin(2 * SUPPORT[:, 0]) + SUPPORT[:, 1]
POINTS = torch.tensor(SUPPORT[::5])
NODES, MASSES = np.polynomial.hermite_e.hermegauss(60)


def population(name):
    """Labels, and how probable they are, at every point: what infinitely many data consist of."""
    if name == "logistic":
        p = 1 / (1 + np.exp(-ETA))
        return np.stack([np.zeros(N_SUPPORT), np.ones(N_SUPPORT)]), np.stack([1 - p, p])
    if name == "poisson":
        counts = np.arange(40)[:, None]
        logs = counts * ETA - np.exp(ETA) - np.cumsum(np.log(np.maximum(counts, 1)), axis=0)
        return np.broadcast_to(counts, logs.shape).astype(float), np.exp(logs)
    return ETA + 0.5 * NODES[:, None], np.broadcast_to(MASSES[:, None] / MASSES.sum(), (60, N_SUPPORT))


def draw(name, n, rng):
    rows = rng.integers(N_SUPPORT, size=n)
    if name == "logistic":
        return rows, (rng.random(n) < 1 / (1 + np.exp(-ETA[rows]))).astype(float)
    return rows, rng.poisson(np.exp(ETA[rows])).astype(float) if name == "poisson" else ETA[rows] + 0.5 * rng.normal(size=n)


LOSSES = {"logistic": Logistic(), "poisson": Poisson(), "huber": Huber(1.345, scale=0.5)}


def h_star(name):
    """The fit to the population, at the points: rows are the support's, one for each label."""
    labels, masses = population(name)
    rows = np.tile(np.arange(N_SUPPORT), len(labels))
    kernel = PopulationKernel(NETWORK)
    gram = kernel.ntk_gram(kernel.profile(torch.tensor(SUPPORT)))[rows][:, rows]
    weights = torch.tensor(masses.flatten() / N_SUPPORT)
    kept = weights > 1e-14
    zeros = torch.zeros(int(kept.sum()), 1, dtype=torch.float64)
    y = torch.tensor(labels.flatten())[kept][:, None]
    fit = solve_bent(Bent(gram[kept][:, kept], y, zeros, weights[kept], REGULARIZATION, LOSSES[name]))
    return np.array([float(fit.values[np.flatnonzero(rows[kept.numpy()] == point)[0], 0]) for point in range(0, N_SUPPORT, 5)])


def coverage_of_h_star(name, n, repetitions):
    """Share of data sets and points at which the jackknife's interval holds h*."""
    target, hits = h_star(name), []
    for repetition in range(repetitions):
        rows, y = draw(name, n, np.random.default_rng([repetition, n]))
        labels = torch.tensor(y)[:, None]
        task = Task(
            torch.tensor(SUPPORT[rows]), torch.stack([labels, 0 * labels], 1), NETWORK, REGULARIZATION, loss=LOSSES[name]
        )
        trained = KernelEngine().fit(task, full(n))
        points = NewPoints(POINTS, is_shared=True)
        centre, influence = trained.predict(points)[0, :, 0, 0].numpy(), trained.influence(points)[:, :, 0].numpy()
        error = np.sqrt((influence**2).mean(axis=0) / n)
        hits.append(np.abs(centre - target) <= 1.959964 * error)
    return np.mean(hits)


@pytest.mark.parametrize("name", LOSSES)
def test_the_jackknife_covers_h_star(name):
    """Five points of a data set go together: at worst as one, so that 200 data sets have a binomial sd of .0154.

    Three of those around .95 are .904 to .996; the normal law of 150 rows is a little off, for which .01 is taken off below.
    """
    assert 0.894 <= coverage_of_h_star(name, 150, 200) <= 0.996


@pytest.mark.slow
@pytest.mark.parametrize("name", LOSSES)
def test_the_jackknife_covers_h_star_of_a_thousand_data_sets(name):
    """1,000 data sets: a binomial sd of .0069 at worst, three of them .021."""
    assert 0.929 <= coverage_of_h_star(name, 400, 1000) <= 0.971


def test_probabilities_are_covered():
    """Ten data sets of 60 rows, 40 points each, which go together: as ten draws with a binomial sd of .069, of which three."""
    hits = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, X_new = rng.uniform(-1.7, 1.7, size=(60, 1)), np.linspace(-1.6, 1.6, 40)[:, None]
        p, p_new = (1 / (1 + np.exp(-2 * np.sin(2 * rows[:, 0]))) for rows in (X, X_new))
        clf = PNCClassifier(network=MLP(activation="erf", bias_scale=1.0), random_state=seed).fit(X, rng.random(60) < p)
        bounds = clf.predict_interval(X_new)[1][:, 1, :, 0]
        hits.append(np.mean((bounds[:, 0] <= p_new) & (p_new <= bounds[:, 1])))
    assert np.mean(hits) >= 0.95 - 3 * 0.069
