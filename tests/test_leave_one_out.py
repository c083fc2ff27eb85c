"""Leave-one-out accuracy against training again without each row."""

import numpy as np
from numpy.testing import assert_allclose

from unseed import MLP, PNCRegressor

N = 14
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2]) + 0.1 * RNG.normal(size=(N, 2))
OPTIONS = {"network": MLP(bias_scale=1.0), "standardize": False, "random_state": 0, "interval": "sectioning"}


def test_it_is_the_accuracy_of_networks_trained_without_the_row():
    found = PNCRegressor(regularization=0.01, **OPTIONS).fit(X, Y).leave_one_out()
    errors = []
    for i in range(N):
        others = np.arange(N) != i
        reg = PNCRegressor(regularization=0.01 * N / (N - 1), **OPTIONS).fit(X[others], Y[others])  # the same λn
        errors.append(Y[i] - reg.predict(X[i : i + 1])[0])
    assert found.n_rows == N
    mean_square = np.mean(np.square(errors), axis=0)
    assert_allclose(found.rmse, np.sqrt(mean_square), rtol=1e-8)
    assert_allclose(found.r_squared, 1 - mean_square / Y.var(axis=0), rtol=1e-8)


def test_there_is_none_where_no_network_has_seen_all_rows():
    assert PNCRegressor(regularization=0.01, **OPTIONS | {"interval": "batching"}).fit(X, Y).leave_one_out() is None
