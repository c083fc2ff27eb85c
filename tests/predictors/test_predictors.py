from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from unseed import MLP, Converged, GradientFlow, KernelEngine, LinearizedEngine, PNCRegressor
from unseed import _resampling as resampling
from unseed._predictors import CheckedRows, ContrastQuery, EnsembleReplicates, PNCReplicates, with_members
from unseed._random import Streams
from unseed._scaling import Scaling
from unseed._solvers import DualRidge
from unseed.engines import NewPoints, Task
from unseed.errors import NotAvailableError
from unseed.kernels import PopulationKernel, ntk
from unseed.networks import ZeroMean

RNG = np.random.default_rng(0)
X, X_NEW, Y = RNG.normal(size=(15, 2)), RNG.normal(size=(4, 2)), RNG.normal(size=(15, 1))
NETWORK = MLP(bias_scale=1.0)
CPU = torch.device("cpu")
NEW = NewPoints(torch.tensor(X_NEW))
PLAIN = Scaling.fit(X, Y, active=False)


def mean(X, inputs):
    return torch.sin(inputs[:, :1])


def pnc(engine, initial_mean, scaling=PLAIN):
    inputs, labels = torch.tensor(scaling.to_network(X)), torch.tensor(scaling.to_labels(Y))
    task = Task(inputs, torch.stack([labels, initial_mean(X, inputs)], 1), NETWORK, 0.01)
    plan = resampling.full(15)
    checked = CheckedRows(np.arange(15), X, Y)
    return PNCReplicates(engine.fit(task, plan), plan, scaling, CPU, initial_mean, checked)


@pytest.mark.parametrize("training", [Converged(), GradientFlow(time=30.0)], ids=str)
def test_pnc_is_base_minus_auxiliary_plus_mean_whatever_the_start(training):
    engine = KernelEngine(training=training)

    # Algorithm 1 by hand, from an arbitrary initial function s: train on y and on s̄ from the same start.
    def s(points):
        return np.cos(3 * points[:, :1]) + points[:, 1:]

    def trained(labels):
        task = Task(torch.tensor(X), torch.tensor(labels - s(X))[:, None], NETWORK, 0.01)
        return s(X_NEW) + engine.fit(task, resampling.full(15)).predict(NEW)[0, :, 0].numpy()

    base, auxiliary = trained(Y), trained(np.sin(X[:, :1]))
    expected = base - (auxiliary - np.sin(X_NEW[:, :1]))
    assert_allclose(pnc(engine, mean).predict(X_NEW)[0], expected, rtol=1e-10, atol=1e-12)


def test_pnc_with_zero_mean_is_kernel_ridge_regression():
    K = ntk(X, network=NETWORK)
    expected = ntk(X_NEW, X, network=NETWORK) @ np.linalg.solve(K + 0.15 * np.eye(15), Y)
    assert_allclose(pnc(KernelEngine(), ZeroMean(1)).predict(X_NEW)[0], expected, rtol=1e-10)


def test_units_are_put_back():
    scaling = Scaling.fit(X, Y, active=True)
    replicates = pnc(KernelEngine(), ZeroMean(1), scaling)
    inputs = torch.tensor(scaling.to_network(X_NEW))
    raw = replicates.trained.predict(NewPoints(inputs))[0, :, 0].numpy()
    assert_allclose(replicates.predict(X_NEW)[0], raw * scaling.y_scale + scaling.y_mean, rtol=1e-12)
    variance = replicates.trained.procedural_variance(NewPoints(inputs)).numpy()[:, None] * scaling.y_scale**2
    assert_allclose(replicates.at(X_NEW).procedural_variance(), variance, rtol=1e-12)


def test_drawn_networks_have_the_procedural_covariance_and_ensembles_a_share_of_it():
    replicates, n = pnc(KernelEngine(), ZeroMean(1)), 40_000
    covariance = replicates.trained.procedural_covariance(NEW).numpy()
    for members in (1, 5):
        draws = replicates.draw_networks(X_NEW, n, members, np.random.default_rng(0))
        assert draws.shape == (n, 4, 1)
        deviation = np.sqrt(np.diag(covariance) / members / n)
        assert (np.abs(draws.mean(axis=0) - replicates.predict(X_NEW)[0])[:, 0] < 4 * deviation).all()
        scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))  # standard error of a covariance: √(2/n) of it
        assert (np.abs(np.cov(draws[:, :, 0].T) * members - covariance) < 4 * np.sqrt(2 / n) * scale).all()


def test_other_engines_have_no_exact_draws_but_a_rough_procedural_variance():
    replicates = pnc(LinearizedEngine(width=256), ZeroMean(1))
    with pytest.raises(NotAvailableError, match="DeepEnsembleRegressor"):
        replicates.draw_networks(X_NEW, 1, 1, np.random.default_rng(0))
    auxiliary = replicates.trained.predict(NEW)[:, :, 1].numpy()
    assert_allclose(replicates.at(X_NEW).procedural_variance(), (auxiliary**2).mean(axis=0), rtol=1e-12)


def test_a_rival_counts_for_a_difference_by_how_much_it_changes_it():
    labels = torch.stack([torch.tensor(Y), torch.zeros(15, 1, dtype=torch.float64)], 1)
    rival = KernelEngine().fit(Task(torch.tensor(X), labels, MLP(activation="erf"), 0.01), resampling.full(15))
    own = pnc(KernelEngine(), ZeroMean(1))
    distance = replace(own, trained=rival).predict(X_NEW)[0] - own.predict(X_NEW)[0]
    both, pairs = replace(own, rival=rival), np.stack([X_NEW, X_NEW[::-1]], axis=1)
    assert_allclose(both.at(X_NEW).rival_variance(X_NEW), distance**2, rtol=1e-9)
    assert_allclose(ContrastQuery(both, pairs).rival_variance(pairs), (distance - distance[::-1]) ** 2, rtol=1e-9)


def test_ensembles_average_their_members():
    plan = resampling.full_and(resampling.half_samples(15, 2, Streams(0)))
    repeated = with_members(plan, 3)
    assert repeated.counts.shape == (9, 15)
    assert repeated.reference == (0, 1, 2)
    task = Task(torch.tensor(X), torch.tensor(Y)[:, None], NETWORK, 0.01)
    trained = LinearizedEngine(width=64).fit(task, repeated)
    ensemble = EnsembleReplicates(trained, plan, PLAIN, CPU, 3)
    networks = trained.predict(NEW)[:, :, 0].numpy()
    assert_allclose(ensemble.at(X_NEW).predict(X_NEW)[1], networks[3:6].mean(axis=0), rtol=1e-12)
    expected = networks.reshape(3, 3, 4, 1).var(axis=1, ddof=1).mean(axis=0) / 3
    assert_allclose(ensemble.at(X_NEW).procedural_variance(), expected, rtol=1e-12)
    assert np.isnan(EnsembleReplicates(trained, repeated, PLAIN, CPU, 1).at(X_NEW).procedural_variance()).all()


@pytest.mark.parametrize("interval", ["truth", "cheap_bootstrap"])
def test_a_prediction_without_interval_takes_one_pass_over_the_kernel_and_nothing_else(interval, monkeypatch):
    reg = PNCRegressor(network=NETWORK, regularization=0.01, interval=interval, random_state=0).fit(X, Y[:, 0])
    expected = reg.get_prediction(X_NEW).mean
    reg.fit(X, Y[:, 0])
    products, product = [], PopulationKernel.ntk_product

    def counted(kernel, points, rows, weights):
        products.append((len(points), len(rows), *weights.shape))
        return product(kernel, points, rows, weights)

    def refused(*arguments, **options):
        raise AssertionError("this is for intervals")

    monkeypatch.setattr(PopulationKernel, "ntk_product", counted)
    for kind, names in ((DualRidge, ("solve", "whiten", "factorise")), (PopulationKernel, ("ntk_cross", "ntk_gram"))):
        for name in names:
            monkeypatch.setattr(kind, name, refused)
    assert_allclose(reg.predict(X_NEW), expected, rtol=1e-12)
    assert products == [(4, 15, 15, 1)]  # one column: the labels of the replicate that stands for these data
    assert not {"left_out", "misfit", "noise", "noise_variance", "scores"} & set(vars(reg._replicates))
    assert not {"factors", "amplitude"} & set(vars(reg._replicates.trained))
