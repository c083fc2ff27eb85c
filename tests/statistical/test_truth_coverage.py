"""The default interval against the truth on problems of the paper and of Friedman, nothing tuned."""

import numpy as np
import pytest

from unseed import PNCRegressor

CENTRE = 0.1


def sines(X):
    return np.sin(X).sum(axis=1)


def friedman(X):
    return 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]


def coverage(function, upper, d, n, noise, repetitions):
    """Share of 100 points of the domain and of its centre held by 95 % intervals, data set by data set."""
    at = np.random.default_rng(12345).uniform(0, upper, size=(100, d))
    at = np.vstack([at, np.full((1, d), upper / 2)])
    truth = function(at)
    held = []
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        X = rng.uniform(0, upper, size=(n, d))
        y = function(X) + noise * rng.standard_normal(n)
        low, high = PNCRegressor(random_state=seed).fit(X, y).get_prediction(at).conf_int(0.95).T
        held.append((low <= truth) & (truth <= high))
    return np.array(held)


def assert_holds(held):
    # Points of one data set fail together, so the band comes from the data sets: three standard errors of their mean.
    shares = held[:, :100].mean(axis=1)
    assert shares.mean() >= 0.95 - 3 * shares.std() / np.sqrt(len(shares))


def test_quick_coverage_of_the_truth():
    held = coverage(sines, 0.2, d=4, n=64, noise=0.001, repetitions=12)
    assert_holds(held)
    assert held[:, :100].mean() > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("d", [4, 8, 16])
def test_paper_setting_and_its_centre(d):
    held = coverage(sines, 0.2, d=d, n=128, noise=0.001, repetitions=60)
    assert_holds(held)
    # 60 data sets at 0.95: binomial, 52 or fewer have a chance of 0.008
    assert held[:, -1].sum() > 52


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.5, 2.5])
def test_friedman(noise):
    assert_holds(coverage(friedman, 1.0, d=10, n=200, noise=noise, repetitions=30))
