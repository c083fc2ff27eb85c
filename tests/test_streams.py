"""Rows that come in pieces: from lists, files, memory maps and clusters, interrupted and refused; always the same model."""

import numpy as np
import pytest

from unseed import MLP, Exact, Landmarks, PNCRegressor
from unseed._estimators import first_look

RELU = MLP(depth=1, activation="relu", bias_scale=1.0, scale_inputs=True)
OPTIONS = {"network": RELU, "solver": Landmarks(count=100), "random_state": 0}


def rows(n, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + noise * rng.standard_normal(n)


POINTS, _ = rows(60, seed=1)


@pytest.fixture(scope="module")
def data():
    """Sorted, so that a model that begins on the first rows is another one."""
    X, y = rows(14_000)
    order = np.argsort(X[:, 0])
    return X[order], y[order]


@pytest.fixture(scope="module")
def whole(data):
    return PNCRegressor(**OPTIONS).fit(*data)


class Pieces:
    """Can be passed over as often as one likes; remembers how often."""

    def __init__(self, data, size=1700):
        self.data, self.size, self.passes = data, size, 0

    def __iter__(self):
        self.passes += 1
        X, y = self.data
        return ((X[at : at + self.size], y[at : at + self.size]) for at in range(0, len(X), self.size))


def assert_same(one, other, tolerance=1e-9):
    assert one.n_rows_ == other.n_rows_
    assert one.regularization_ == pytest.approx(other.regularization_, rel=1e-6)
    for kind in ("confidence", "prediction"):
        for mine, theirs in zip(
            one.predict_interval(POINTS, kind=kind), other.predict_interval(POINTS, kind=kind), strict=True
        ):
            np.testing.assert_allclose(mine, theirs, rtol=0, atol=tolerance)


@pytest.mark.parametrize("size", [613, 200_000])
def test_pieces_that_can_be_passed_over_again_are_all_rows(data, whole, size):
    pieces = Pieces(data, size)
    model = PNCRegressor(**OPTIONS).fit_stream(pieces)
    assert_same(model, whole)
    assert pieces.passes == 2
    once = PNCRegressor(**OPTIONS).fit_stream(iter(pieces))
    difference = np.abs(once.predict(POINTS) - whole.predict(POINTS)).max()
    assert difference > 1e-3  # it began on the first rows, which are unlike the others


def test_few_rows_of_a_stream_are_held_and_fitted_exactly(data):
    few = data[0][::40], data[1][::40]
    options = {"network": RELU, "random_state": 0}
    exact = PNCRegressor(**options).fit(*few)
    for pieces in (Pieces(few, 100), iter(Pieces(few, 100))):
        model = PNCRegressor(**options).fit_stream(pieces)
        assert model.solver_ == Exact()
        np.testing.assert_allclose(model.predict_interval(POINTS)[1], exact.predict_interval(POINTS)[1], rtol=1e-12)


def test_no_more_is_held_than_the_rows_to_begin_on(data, monkeypatch):
    monkeypatch.setattr(first_look, "BEGIN_ROWS", 500)
    look = first_look.FirstLook(3)
    for X, y in Pieces((data[0], data[1][:, None]), 613):
        look = look.plus(X, y)
    whole_at_once = first_look.FirstLook(3).plus(data[0], data[1][:, None])
    for mine, theirs in zip((*look.first, *look.sample), (*whole_at_once.first, *whole_at_once.sample), strict=True):
        assert len(mine) == 500
        assert mine.base is None
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(look.rows()[0], look.sample[0])  # sorted rows
    assert look.n_rows == 14_000
