"""Linearised networks solved in their parameters, against the same in the tangent kernel of the rows."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from unseed import MLP, GradientDescent, LinearizedEngine, NetworkEngine, PNCRegressor
from unseed._resampling import full
from unseed.engines import NewPoints, TangentFit, Task
from unseed.networks import MLPBatch, ModuleBatch

RNG = np.random.default_rng(0)
X, X_NEW = torch.tensor(RNG.normal(size=(60, 3))), torch.tensor(RNG.normal(size=(7, 3)))


class InTheKernel(TangentFit):
    """The dual form, whatever the sizes."""

    is_primal = False


def batches():
    yield MLPBatch(MLP(activation="erf", bias_scale=1.0), 3, 1, 6)
    yield MLPBatch(MLP(activation="relu"), 3, 2, 8)
    yield MLPBatch(MLP(depth=2, activation="tanh", bias_scale=0.5), 3, 1, 4)
    yield ModuleBatch.of(lambda: nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2)), X[:2], 2)


@pytest.fixture(params=list(batches()), ids=["erf", "two outputs", "deep", "module"])
def forms(request):
    batch = request.param
    start = batch.draw(np.random.default_rng(1))[None]
    counts = torch.tensor(RNG.integers(1, 4, size=60).astype(np.float64))
    labels = torch.tensor(RNG.normal(size=(60, 2, batch.n_outputs)))
    arguments = batch, start, X, counts, 1e-2
    primal, dual = TangentFit(*arguments), InTheKernel(*arguments)
    assert primal.is_primal
    assert primal.factor.features.shape == (60 * batch.n_outputs, batch.n_parameters)
    return primal, dual, labels


def same(one, other):
    assert_allclose(one, other, rtol=1e-10, atol=1e-10 * float(other.abs().max()))


def test_predictions_agree(forms):
    primal, dual, labels = forms
    solved = primal.solve(labels)
    same(solved, dual.solve(labels))
    same(primal.predict(X_NEW, solved), dual.predict(X_NEW, dual.solve(labels)))


def test_influence_and_leave_one_out_agree(forms):
    primal, dual, labels = forms
    same(primal.influence(X_NEW, labels[:, 0]), dual.influence(X_NEW, labels[:, 0]))
    ours, theirs = (fit.leave_out(torch.arange(0, 60, 7), labels[:, 0]) for fit in forms[:2])
    same(ours.errors, theirs.errors)
    same(ours.variance, theirs.variance)


def test_an_error_left_out_moves_with_its_own_label(forms):
    """The fit without a label does not know it, so the error there grows by what is added to it, whatever the others are."""
    labels, rows = forms[2][:, 0], torch.tensor([3, 40])
    for fit in forms[:2]:
        for output in range(labels.shape[1]):
            moved = labels.clone()
            moved[40, output] += 1.0
            change = fit.leave_out(rows, moved).errors - fit.leave_out(rows, labels).errors
            assert change[1, output] == pytest.approx(1.0, rel=1e-9)


def test_posteriors_and_noise_agree(forms):
    primal, dual, labels = forms
    same(primal.posterior_covariance(X_NEW, labels[:, 0]), dual.posterior_covariance(X_NEW, labels[:, 0]))
    same(primal.posterior_variance(X_NEW, X[:7], labels[:, 0]), dual.posterior_variance(X_NEW, X[:7], labels[:, 0]))
    (residual, trace), (expected, expected_trace) = (fit.noise_residual(labels[:, 0]) for fit in forms[:2])
    same(residual, expected)
    assert_allclose(trace, expected_trace, rtol=1e-10)


def test_without_a_ridge_every_linearised_network_goes_through_its_own_labels():
    labels = torch.stack([torch.sin(X[:20, :1]), X[:20, 1:2]], dim=1)
    task = Task(X[:20], labels, MLP(activation="erf", bias_scale=1.0), 1e-10)
    trained = LinearizedEngine(width=64).fit(task, full(20))
    assert_allclose(trained.predict(NewPoints(X[:20]))[0], labels, atol=1e-5)


def test_with_as_many_parameters_as_labels_or_no_ridge_the_kernel_is_factorised():
    batch = MLPBatch(MLP(), 3, 1, 15)  # 60 parameters
    start, counts = batch.draw(np.random.default_rng(0))[None], torch.ones(60, dtype=torch.float64)
    assert not TangentFit(batch, start, X, counts, 1e-3).is_primal
    small = MLPBatch(MLP(), 3, 1, 14)
    assert TangentFit(small, start[:, :56], X, counts, 1e-3).is_primal
    assert not TangentFit(small, start[:, :56], X, counts, 0.0).is_primal


def test_the_posterior_of_a_trained_network_does_not_depend_on_what_the_auxiliary_one_has_learned():
    options = {"network": MLP(activation="erf", bias_scale=1.0), "regularization": 0.1}
    base, posteriors = torch.sin(X[:, :1]), []
    for auxiliary in (torch.zeros_like(base), X[:, 1:2]):
        task = Task(X, torch.stack([base, auxiliary], dim=1), **options)
        trained = NetworkEngine(width=24, dtype="float64").fit(task, full(60))
        covariance = trained.posterior_covariance(NewPoints(X_NEW))[0]
        posteriors.append(covariance / covariance.trace())  # the amplitude is that of both labels' difference
    assert not torch.allclose(trained.parameters[0, 0], trained.parameters[0, 1], rtol=1e-2)
    assert_allclose(posteriors[0], posteriors[1], rtol=1e-6)


@pytest.mark.parametrize("training", [None, GradientDescent(steps=20, rate=0.05)])
def test_an_estimator_has_the_same_intervals_by_either_form(training, monkeypatch):
    engine = LinearizedEngine(width=6) if training is None else LinearizedEngine(width=6, training=training)
    reg = PNCRegressor(engine=engine, network=MLP(activation="erf", bias_scale=1.0), regularization=1e-2, random_state=0)
    rows, labels = X.numpy(), np.sin(X[:, 0].numpy())
    by_parameters = reg.fit(rows, labels).get_prediction(X_NEW.numpy())
    monkeypatch.setattr(TangentFit, "is_primal", False)
    by_kernel = reg.fit(rows, labels).get_prediction(X_NEW.numpy())
    assert_allclose(by_parameters.mean, by_kernel.mean, rtol=1e-10)
    assert_allclose(by_parameters.standard_error, by_kernel.standard_error, rtol=1e-9)
