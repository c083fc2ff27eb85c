"""The default interval where rows are summed up, landmarks being plenty, too few, and far too few."""

import numpy as np
import pytest

from unseed import MLP, Landmarks, PNCRegressor

RELU = MLP(depth=1, activation="relu", bias_scale=1.0, scale_inputs=True)


def smooth(X):
    return np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]


def rough(X):
    return np.abs(X).sum(axis=1) + np.sin(6 * X[:, 0] * X[:, 1])


def shares(function, d, n, count, repetitions, network=RELU):
    """Share of 300 points whose 95 % interval holds the truth, data set by data set; and how wide the intervals are.

    Widths are relative to those of an oracle that knows the root mean square error.
    """
    at = np.random.default_rng(12345).uniform(-1, 1, (300, d))
    found, widths = [], []
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, (n, d))
        y = function(X) + 0.3 * function(X).std() * rng.standard_normal(n)
        model = PNCRegressor(network=network, solver=Landmarks(count=count), random_state=seed).fit(X, y)
        mean, intervals = model.predict_interval(at)
        low, high = intervals[:, :, 0].T
        found.append(np.mean((low <= function(at)) & (function(at) <= high)))
        widths.append((high - low).mean() / (2 * 1.96 * np.sqrt(np.mean((mean - function(at)) ** 2))))
    return np.array(found), np.array(widths)


@pytest.mark.parametrize(("function", "count"), [(smooth, 300), (smooth, 60), (rough, 300), (rough, 60)])
def test_the_truth_is_held_however_few_the_landmarks(function, count):
    held, widths = shares(function, d=4, n=4000, count=count, repetitions=6)
    # Points of one data set fail together: three standard errors of the mean over data sets, and no data set far off.
    assert held.mean() >= 0.95 - 3 * held.std() / np.sqrt(len(held))
    assert held.min() >= 0.88
    assert widths.mean() < 2.2


def test_without_what_landmarks_miss_the_truth_is_not_held():
    """The test above can fail: with the same few landmarks, the interval of sampling alone holds the truth half of the time."""
    at = np.random.default_rng(12345).uniform(-1, 1, (300, 4))
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (8000, 4))
    y = rough(X) + 0.1 * rng.standard_normal(8000)
    parts = PNCRegressor(network=RELU, solver=Landmarks(count=60), random_state=0).fit(X, y).get_prediction(at)
    without = np.sqrt(parts.standard_error**2 - parts.components.parts["landmarks"])
    assert np.mean(np.abs(parts.mean - rough(at)) <= 1.96 * without) < 0.8


@pytest.mark.slow
@pytest.mark.parametrize(("function", "n", "count"), [(smooth, 30_000, 500), (rough, 30_000, 500), (rough, 100_000, 200)])
def test_many_rows(function, n, count):
    held, widths = shares(function, d=5, n=n, count=count, repetitions=10, network="auto")
    assert held.mean() >= 0.95 - 3 * held.std() / np.sqrt(len(held))
    assert held.min() >= 0.88
    assert widths.mean() < 2.2
