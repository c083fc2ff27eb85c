"""Many data sets at once give what each gives alone."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unseed import MLP, Batching, CheapBootstrap, HalfSampling, PNCRegressor, Sectioning, predict_interval_many
from unseed.errors import InvalidInputError, SingularKernelError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 41, 2))
Y = np.sin(X).sum(axis=2) + 0.1 * RNG.normal(size=(3, 41))
X_NEW = RNG.normal(size=(3, 5, 2))
OPTIONS = {"network": MLP(bias_scale=1.0, scale_inputs=True), "regularization": 1e-3}


@pytest.mark.parametrize("method", [CheapBootstrap(3), Batching(4), Sectioning(3), HalfSampling(2)], ids=str)
@pytest.mark.parametrize("standardize", [True, False])
def test_each_answer_is_that_of_the_estimator(method, standardize):
    mean, intervals = predict_interval_many(
        X, Y, X_NEW, [0.9, 0.95], interval=method, random_state=[4, 7, 1], standardize=standardize, **OPTIONS
    )
    for i, seed in enumerate((4, 7, 1)):
        reg = PNCRegressor(interval=method, random_state=seed, standardize=standardize, device="cpu", **OPTIONS).fit(X[i], Y[i])
        alone, bounds = reg.predict_interval(X_NEW[i], [0.9, 0.95])
        assert_allclose(mean[i], alone, rtol=1e-9, atol=1e-11)
        assert_allclose(intervals[i], bounds, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("network", [MLP(activation="erf"), MLP(activation="tanh"), MLP(depth=2, bias_scale=1.0)], ids=str)
@pytest.mark.parametrize("interval", ["cheap_bootstrap", "batching"])
def test_any_kernel_and_common_points(network, interval):
    options = {"network": network, "regularization": 1e-2, "interval": interval}
    mean, _ = predict_interval_many(X, Y, X_NEW[0], random_state=5, **options)
    for i in range(3):
        reg = PNCRegressor(random_state=5 + i, device="cpu", **options)
        assert_allclose(mean[i], reg.fit(X[i], Y[i]).predict(X_NEW[0]), rtol=1e-9, atol=1e-11)


def test_groups_of_data_sets_change_nothing(monkeypatch):
    whole = predict_interval_many(X, Y, X_NEW, **OPTIONS)
    monkeypatch.setattr("unseed._many.available_bytes", lambda device: 1)
    for one, other in zip(whole, predict_interval_many(X, Y, X_NEW, **OPTIONS), strict=True):
        assert_allclose(one, other, rtol=1e-10)


def test_constant_columns_are_only_shifted():
    flat = X.copy()
    flat[:, :, 1] = 0.1
    mean, _ = predict_interval_many(flat, Y, flat[:, :4], **OPTIONS)
    reg = PNCRegressor(interval="cheap_bootstrap", random_state=0, device="cpu", **OPTIONS).fit(flat[0], Y[0])
    assert_allclose(mean[0], reg.predict(flat[0, :4]), rtol=1e-9)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"X": X[0]}, r"X has shape \(41, 2\); give \(sets, rows, features\)"),
        ({"y": Y[:, :40]}, "sets and rows must be the same"),
        ({"X_new": X_NEW[:2]}, "features and sets must be the same"),
        ({"y": np.where(Y[0, 0] == Y, np.nan, Y)}, "y contains NaN"),
        ({"interval": "truth"}, "does not compare replicates"),
        ({"network": "auto"}, "network and regularization must be given"),
        ({"random_state": [1, 2]}, "random_state has 2 seeds for 3 data sets"),
        ({"confidence_level": 1.2}, "confidence_level=1.2 is not a confidence level"),
    ],
)
def test_what_cannot_be_is_said(change, words):
    arguments = {"X": X, "y": Y, "X_new": X_NEW} | OPTIONS | change
    with pytest.raises(InvalidInputError, match=words):
        predict_interval_many(**arguments)


def test_singular_systems_are_counted():
    same = np.ones_like(X)
    with pytest.raises(SingularKernelError, match=r"15 of 15 kernel matrices are singular to float64 at regularization=0"):
        predict_interval_many(same, Y, X_NEW, network=MLP(), regularization=0.0, standardize=False, interval=CheapBootstrap(4))


def test_no_regularization_at_all_is_like_one_data_set_at_a_time():
    options = {"network": MLP(bias_scale=1.0), "regularization": 0.0, "interval": CheapBootstrap(3), "standardize": False}
    mean, intervals = predict_interval_many(X, Y, X_NEW, random_state=[1, 2, 3], **options)
    for i, seed in enumerate((1, 2, 3)):
        alone, bounds = PNCRegressor(random_state=seed, **options).fit(X[i], Y[i]).predict_interval(X_NEW[i])
        assert_allclose(mean[i], alone, rtol=1e-6)
        assert_allclose(intervals[i], bounds, rtol=1e-6)
