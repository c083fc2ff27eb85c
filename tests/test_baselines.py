"""The baselines have the same face as PNCRegressor and behave as what they are."""

import warnings

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from unseed import (
    MLP,
    DeepEnsembleRegressor,
    GradientDescent,
    LinearizedEngine,
    MCDropoutRegressor,
    NetworkEngine,
    PNCRegressor,
    SingleNetworkRegressor,
)
from unseed.errors import InvalidInputError

RNG = np.random.default_rng(0)
X, X_NEW = RNG.normal(size=(50, 4)), RNG.normal(size=(8, 4))
Y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=50)
NETWORK = MLP(bias_scale=1.0, scale_inputs=True, width=256)
COMMON = {"network": NETWORK, "regularization": 0.01, "random_state": 0}
LINEAR = {"engine": LinearizedEngine()} | COMMON
QUICK = {"engine": NetworkEngine(width=32, trainer=GradientDescent(steps=300)), "regularization": 0.01}


@parametrize_with_checks(
    [
        PNCRegressor(engine=LinearizedEngine(width=32), interval="batching", network=NETWORK, regularization=0.01),
        PNCRegressor(interval="half_sampling", **QUICK),
        SingleNetworkRegressor(**QUICK),
        DeepEnsembleRegressor(members=2, **QUICK),
        MCDropoutRegressor(network=MLP(bias_scale=1.0, scale_inputs=True, width=256), rate=0.01, steps=300, passes=10),
    ]
)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


def test_ensembles_scatter_less_over_seeds_and_pnc_least():
    def spread(make, **options):
        fits = [make(**(LINEAR | options | {"random_state": seed})).fit(X, Y).predict(X_NEW) for seed in range(12)]
        return np.var(fits, axis=0).mean()

    single = spread(SingleNetworkRegressor, interval="half_sampling")
    assert spread(PNCRegressor, interval="half_sampling") < 0.1 * single
    # a fifth of the variance; a ratio of two variances of twelve correlated draws each
    assert 0.05 < spread(DeepEnsembleRegressor, members=5) / single < 0.5


def test_members_spread_by_their_standard_deviation():
    reg = DeepEnsembleRegressor(members=4, **LINEAR).fit(X, Y)
    networks = reg._replicates.at(X_NEW).members[0, :, :, 0]
    mean, error = reg.predict(X_NEW, return_std=True)
    assert_allclose(mean, networks.mean(axis=0))
    assert_allclose(error, networks.std(axis=0, ddof=1))
    p = reg.get_prediction(X_NEW)
    assert_allclose(p.components.procedural, error**2 / 4)
    assert p.degrees_of_freedom == np.inf


def test_naive_bootstrap_on_a_deep_ensemble_mixes_seed_and_data():
    widths = {
        name: np.diff(make(interval="cheap_bootstrap", **LINEAR).fit(X, Y).get_prediction(X_NEW).conf_int()).mean()
        for name, make in (
            ("single", SingleNetworkRegressor),
            ("ensemble", DeepEnsembleRegressor),
            ("pnc", PNCRegressor),
        )
    }
    assert widths["single"] > widths["ensemble"] > widths["pnc"]


def test_without_interval_one_network_is_trained_and_nothing_else():
    single = SingleNetworkRegressor(interval=None, **LINEAR).fit(X, Y)
    assert len(single._replicates.trained.tangents) == 1
    bootstrapped = SingleNetworkRegressor(interval="cheap_bootstrap", **LINEAR).fit(X, Y)
    assert_allclose(single.predict(X_NEW), bootstrapped.predict(X_NEW), rtol=1e-10)  # the same start on the same rows
    assert DeepEnsembleRegressor(members=1, interval=None, **LINEAR).fit(X, Y).predict(X_NEW) == pytest.approx(
        single.predict(X_NEW)
    )
    for ask in (single.get_prediction, single.predict_interval, lambda new: single.predict(new, return_std=True)):
        with pytest.raises(InvalidInputError, match="interval=None has predictions only"):
            ask(X_NEW)


def test_linearised_training_can_stop_early():
    """Gradient descent of the expansion itself, step by step on its features."""
    training = GradientDescent(steps=30, rate=0.05)
    options = COMMON | {"standardize": False, "network": MLP(bias_scale=1.0, scale_inputs=True, width=16)}
    reg = SingleNetworkRegressor(interval=None, engine=LinearizedEngine(training=training), **options).fit(X, Y)
    (tangent,) = reg._replicates.trained.tangents
    batch, theta = tangent.batch, tangent.parameters
    rows, new = (torch.from_numpy(points)[None] for points in (X, X_NEW))
    start = batch.outputs(theta, rows)[0, :, 0].numpy()
    gram = batch.evaluate(theta, rows).tangent_kernel()[0].numpy()
    dual = np.zeros(len(X))
    for _ in range(30):
        dual = dual - 2 * 0.05 * ((start + gram @ dual - Y) / len(X) + 0.01 * dual)
    expected = batch.outputs(theta, new)[0, :, 0].numpy() + batch.cross_kernel(theta, new, rows)[0].numpy() @ dual
    assert_allclose(reg.predict(X_NEW), expected, rtol=1e-10)
    assert reg._replicates.noise_variance[0] > 0
    with pytest.raises(InvalidInputError, match="LinearizedEngine"):
        LinearizedEngine(training="long")


def test_dropout_takes_gradient_descent_at_its_word():
    """Rate so small that nothing is dropped: the plain descent of the network engine."""
    trainer = GradientDescent(steps=20, rate=0.05)
    dropped = MCDropoutRegressor(rate=1e-9, passes=2, trainer=trainer, **COMMON).fit(X, Y)
    engine = NetworkEngine(trainer=trainer, dtype="float64")
    plain = SingleNetworkRegressor(interval=None, engine=engine, **COMMON).fit(X, Y)
    assert_allclose(dropped.predict(X_NEW), plain.predict(X_NEW), rtol=1e-6)
    with pytest.raises(InvalidInputError, match="trainer='adam' is not known"):
        MCDropoutRegressor(trainer="adam").fit(X, Y)


def test_trained_ensemble_predicts():
    reg = DeepEnsembleRegressor(members=3, **(COMMON | {"network": MLP(activation="erf", width=256, bias_scale=1.0)})).fit(X, Y)
    assert reg.score(X, Y) > 0.9
    assert reg.get_prediction(X_NEW).components.noise[0] > 0


def test_dropout_widens_with_its_rate_and_is_reproducible():
    widths = []
    for rate in (0.05, 0.4):
        reg = MCDropoutRegressor(rate=rate, steps=300, **COMMON).fit(X, Y)
        y_hat, intervals = reg.predict_interval(X_NEW)
        assert_array_equal(y_hat, reg.predict(X_NEW))
        widths.append((intervals[:, 1] - intervals[:, 0]).mean())
    assert widths[1] > 2 * widths[0]
    assert np.isfinite(MCDropoutRegressor(rate=0.9, steps=300, **COMMON).fit(X, Y).predict(X_NEW)).all()
    small, large = (MCDropoutRegressor(rate=0.05, steps=50, **COMMON).fit(X, k * Y).get_prediction(X_NEW) for k in (1, 10))
    assert_allclose(large.components.noise, 100 * small.components.noise, rtol=1e-6)
    assert np.isnan(small.components.procedural).all()
    assert reg.get_prediction(X_NEW).components.noise[0] > 0


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: DeepEnsembleRegressor(members=1), "members=1 must be a whole number of at least 2; one member has no spread"),
        (lambda: DeepEnsembleRegressor(engine="kernel"), "engine='kernel' has no single networks to train"),
        (lambda: DeepEnsembleRegressor(interval="infinitesimal_jackknife", **LINEAR), "is for PNCRegressor"),
        (lambda: MCDropoutRegressor(rate=1.5), "rate=1.5 must be a number strictly between 0 and 1"),
        (lambda: SingleNetworkRegressor(interval="members"), "interval='members' needs several networks"),
        (lambda: MCDropoutRegressor(passes=1), "passes=1"),
        (lambda: MCDropoutRegressor(network=lambda: None), "puts dropout into an MLP"),
    ],
)
def test_impossible_options_are_refused(build, message):
    with pytest.raises(InvalidInputError, match=message):
        build().fit(X, Y)
