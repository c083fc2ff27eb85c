"""The default from three rows on, and its prediction intervals where the network was chosen on few rows: nothing tuned."""

import numpy as np
import pytest

from unseed import PNCRegressor

FUNCTIONS = {
    "noise": (2, lambda x: 0 * x[:, 0]),
    "wave": (1, lambda x: 1.4 * np.sin(3 * x[:, 0])),
    "saddle": (2, lambda x: 2.4 * (x[:, 0] ** 2 - x[:, 1] ** 2)),
    "bend": (3, lambda x: np.exp(x[:, 0]) + np.cos(2 * x[:, 1] * x[:, 2])),
}


def shares(name, n, sets, noise=0.5):
    """Of 100 points and 100 new observations, those inside of 95 % intervals, data set by data set. Shape (sets, 2)."""
    d, f = FUNCTIONS[name]
    found = []
    for seed in range(sets):
        rng = np.random.default_rng(seed)
        X, at = rng.uniform(-1, 1, size=(n, d)), rng.uniform(-1, 1, size=(100, d))
        y, new = f(X) + noise * rng.standard_normal(n), f(at) + noise * rng.standard_normal(100)
        p = PNCRegressor(random_state=seed).fit(X, y).get_prediction(at, seeds=False)
        bounds = ((p.conf_int(0.95).T, f(at)), (p.pred_int(0.95).T, new))
        found.append([np.mean((low <= values) & (values <= high)) for (low, high), values in bounds])
    return np.array(found)


def test_a_few_rows_are_enough_to_be_right():
    # Points of one data set fail together, so the band comes from the data sets: three standard errors of their mean.
    found = np.concatenate([shares(name, n, 4) for name in ("noise", "saddle") for n in (3, 8)])[:, 0]
    assert found.mean() + 3 * found.std() / np.sqrt(len(found)) >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize("n", [3, 4, 5, 8, 16, 32])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_is_held_from_three_rows_on(name, n):
    # 60 data sets; their shares have a standard deviation of up to 0.2, the mean one of 0.026: three of them below 0.95.
    assert shares(name, n, 60)[:, 0].mean() >= 0.95 - 0.08


@pytest.mark.slow
@pytest.mark.parametrize("n", [30, 60, 120])
def test_new_observations_are_held_where_the_network_was_chosen_on_the_same_rows(n):
    # 4 functions, 40 data sets each: shares with a standard deviation of 0.04, their mean one of 0.0032; three of them.
    found = np.concatenate([shares(name, n, 40) for name in FUNCTIONS])[:, 1]
    assert 0.94 - 0.01 <= found.mean() <= 0.97 + 0.01
