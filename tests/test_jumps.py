"""A jump of the function is named; noise, kinks and heavy tails are none."""

import numpy as np
import pytest

from unseed import MLP, Landmarks, PNCRegressor
from unseed._jumps import largest_step

NETWORK = MLP(bias_scale=1.0, scale_inputs=True, weight_std=2.0)
LIMIT = 7.0


def with_jump(u):
    return np.floor(3 * u[:, 0]) + 0.5 * (u[:, 1] > 0.6) + u[:, 2]


def with_kinks(u):
    return 3 * np.abs(u[:, 0] - 0.4) + np.maximum(u[:, 2], u[:, 1])


def rows(function, n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    return X, function(X) + 0.3 * rng.standard_normal(n)


def finding(model):
    (found,) = [one for one in model.diagnose().findings if one.name.startswith("largest step")]
    return found


@pytest.mark.parametrize(("n", "solver"), [(1200, "exact"), (2000, "exact"), (20_000, Landmarks(count=200))])
def test_a_jump_is_named_with_its_place(n, solver):
    found = finding(PNCRegressor(network=NETWORK, solver=solver, random_state=0).fit(*rows(with_jump, n)))
    assert not found.holds
    column, place = int(found.advice.partition("column ")[2][0]), float(found.advice.partition("near ")[2].split()[0])
    assert column == 0
    assert min(abs(place - 1 / 3), abs(place - 2 / 3)) < 0.05


@pytest.mark.parametrize("solver", ["exact", Landmarks(count=150)])
def test_kinks_are_no_jumps(solver):
    # A false alarm in at most one of twenty data sets: binomial, none of 20 is expected at a chance of 1 in 10,000.
    models = (
        PNCRegressor(network=NETWORK, solver=solver, random_state=0).fit(*rows(with_kinks, 500, seed)) for seed in range(20)
    )
    assert all(finding(model).holds for model in models)


def test_errors_that_are_noise_have_no_step():
    rng = np.random.default_rng(0)
    normal = [largest_step(rng.random((1000, 10)), rng.standard_normal(1000)).standard_errors for _ in range(200)]
    heavy = [largest_step(rng.random((1000, 10)), rng.standard_t(3, 1000)).standard_errors for _ in range(200)]
    assert max(*normal, *heavy) < LIMIT  # a chance of some 1e-6 each
    assert np.mean(np.array(normal) > 4.5) <= 0.03  # 1 in 100 expected; 6 of 200 is exceeded in 1 of 400 runs


def test_features_of_few_values_and_few_rows_have_no_room_for_a_step():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (500, 2)).astype(float)
    assert largest_step(X, X[:, 0] - 0.5).standard_errors == 0.0
    assert largest_step(rng.random((30, 2)), rng.standard_normal(30)).standard_errors == 0.0
