"""What holds for every interval method, through the public estimator. A method in the list is asked at once."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from unseed import (
    MLP,
    Batching,
    CheapBootstrap,
    GradientFlow,
    HalfSampling,
    InfinitesimalJackknife,
    KernelEngine,
    LinearizedEngine,
    PNCRegressor,
    Sectioning,
    TruthInterval,
)
from unseed._random import Streams
from unseed.errors import InvalidInputError
from unseed.intervals import METHODS, own_centre

OURS = [
    Batching(),
    Batching(batches=7),
    CheapBootstrap(),
    CheapBootstrap(replications=1),
    Sectioning(),
    HalfSampling(),
    InfinitesimalJackknife(),
    TruthInterval(),
]
EVERY = [*OURS, *(method() for method in METHODS.values() if method not in map(type, OURS))]
RNG = np.random.default_rng(0)
X, X_NEW = RNG.normal(size=(61, 3)), RNG.normal(size=(9, 3))
Y = np.column_stack([np.sin(X[:, 0]) + 0.1 * RNG.normal(size=61), X[:, 1] ** 2])
NETWORK = MLP(bias_scale=1.0, scale_inputs=True)

pytestmark = pytest.mark.parametrize("method", EVERY, ids=str)


def fitted(method, y=Y[:, 0], **options):
    return PNCRegressor(interval=method, network=NETWORK, random_state=3, regularization=1e-3, **options).fit(X, y)


def test_same_seed_same_interval_for_any_number_of_jobs(method):
    one, two = fitted(method).predict_interval(X_NEW), fitted(method, n_jobs=2).predict_interval(X_NEW)
    assert_array_equal(one[0], two[0])
    assert_array_equal(one[1], two[1])


def test_another_level_is_another_quantile_of_the_same_fit(method):
    p = fitted(method).get_prediction(X_NEW)
    narrow, wide = np.diff(p.conf_int(0.5))[:, 0], np.diff(p.conf_int(0.99))[:, 0]
    assert (narrow > 0).all()
    assert (wide > narrow).all()
    assert_allclose(wide / narrow, (wide / narrow)[0], rtol=1e-12)


def test_units_of_y_and_x_do_not_matter(method):
    plain = fitted(method).predict_interval(X_NEW)[1]
    scaled = PNCRegressor(interval=method, network=NETWORK, random_state=3, regularization=1e-3)
    scaled.fit(X * 1e6, Y[:, 0] * 1e-6 + 5)
    assert_allclose(scaled.predict_interval(X_NEW * 1e6)[1], plain * 1e-6 + 5, rtol=1e-9)


def test_points_do_not_depend_on_their_neighbours(method):
    together = fitted(method).get_prediction(X_NEW)
    alone = fitted(method).get_prediction(X_NEW[4:5])
    assert_allclose(alone.conf_int()[0], together.conf_int()[4], rtol=1e-10)
    assert_allclose(alone.components.procedural[0], together.components.procedural[4], rtol=1e-8)


def test_several_outputs_are_several_single_outputs(method):
    both = fitted(method, Y).get_prediction(X_NEW)
    assert both.mean.shape == (9, 2)
    for column in range(2):
        one = fitted(method, Y[:, column]).get_prediction(X_NEW)
        assert_allclose(both.conf_int()[:, column], one.conf_int(), rtol=1e-9)
        assert_allclose(both.components.noise[:, column], one.components.noise, rtol=1e-9)
        assert_allclose(both.components.procedural[:, column], one.components.procedural, rtol=1e-9)


def test_pickle_round_trip(method):
    reg = fitted(method)
    assert_array_equal(pickle.loads(pickle.dumps(reg)).predict_interval(X_NEW)[1], reg.predict_interval(X_NEW)[1])


def test_options_of_the_engine_pass_through(method):
    engines = {width: LinearizedEngine(width=width) for width in (8, 4096)}
    kernel = fitted(method, engine=KernelEngine()).get_prediction(X_NEW)
    distances = []
    for engine in engines.values():
        reg = fitted(method, engine=engine)
        assert reg.engine_ == engine
        found = reg.get_prediction(X_NEW)
        distances.append([np.abs(getattr(found, name) - getattr(kernel, name)).mean() for name in ("mean", "standard_error")])
    narrow, wide = np.array(distances)
    assert (wide > 0).all()
    assert (wide < narrow / 3).all()  # 1/√width: a factor of 23


def test_training_that_stops_early_is_refused_or_is_another_fit(method):
    early = KernelEngine(training=GradientFlow(time=0.5))
    if method.uses_influence or method.uses_posterior:
        with pytest.raises(InvalidInputError, match="needs converged training"):
            fitted(method, engine=early)
        return
    whole, stopped = fitted(method).get_prediction(X_NEW), fitted(method, engine=early).get_prediction(X_NEW)
    for name in ("mean", "standard_error"):
        assert np.abs(getattr(stopped, name) / getattr(whole, name) - 1).min() > 1e-3


class DrawnReplicates:
    """Replicates whose predictions are random numbers."""

    def __init__(self, plan):
        self.values = RNG.normal(size=(len(plan.counts), 9, 2))
        self.sizes = plan.sizes.astype(float)

    def predict(self, X):
        return self.values

    def influence(self, X):
        return RNG.normal(size=(61, 9, 2))

    def posterior_variance(self, X):
        return np.ones((9, 2))

    def missed_variance(self, X):
        return None

    misfit_variance = rival_variance = posterior_variance


def test_the_centre_is_the_mean_of_the_reference_replicates(method):
    """`predict` relies on it and asks for no other; together they see every row once."""
    plan = method.plan(61, Streams(3))
    replicates, reference = DrawnReplicates(plan), list(plan.reference)
    assert_array_equal(plan.counts[reference].sum(axis=0), 1)
    assert own_centre(method) is None
    assert_allclose(method.estimate(replicates, X_NEW).centre, replicates.values[reference].mean(axis=0), rtol=1e-14)
    for y in (Y[:, 0], Y):
        reg = fitted(method, y)
        assert_allclose(reg.predict(X_NEW), reg.get_prediction(X_NEW).mean, rtol=1e-10)


def test_chunks_of_new_points_give_the_same_numbers(method, monkeypatch):
    whole = fitted(method).get_prediction(X_NEW)
    monkeypatch.setattr("unseed._predictors.scaled._NUMBERS_AT_A_TIME", 2 * 61)
    pieces = fitted(method).get_prediction(X_NEW)
    assert_allclose(pieces.conf_int(), whole.conf_int(), rtol=1e-10)
    assert_allclose(pieces.components.procedural, whole.components.procedural, rtol=1e-8)
