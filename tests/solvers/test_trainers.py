"""Trainers of real networks: explicit loops, gradients that vanish, problems that share a batch."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from unseed import MLP, SGD, GaussNewton, GradientDescent
from unseed._progress import Progress
from unseed._solvers import Objective
from unseed.errors import InvalidInputError
from unseed.networks import MLPBatch

QUIET = Progress()


def objective(activation="erf", n=24, d=3, width=128, regularization=1e-3, dtype=torch.float64, counts=None, depth=1, k=1):
    rng = np.random.default_rng(0)
    X = torch.tensor(rng.normal(size=(n, d)), dtype=dtype).expand(2, -1, -1)
    y = torch.tensor(np.stack([np.sin(rng.normal(size=(n, k))), np.zeros((n, k))]), dtype=dtype)
    batch = MLPBatch(MLP(activation=activation, bias_scale=1.0, depth=depth), d, k, width)
    start = batch.draw(np.random.default_rng(1)).to(dtype).expand(2, -1)
    counts = torch.ones(2, n, dtype=torch.float64) if counts is None else torch.tensor(counts, dtype=torch.float64)
    return Objective(batch, start, X, y, counts, regularization)


def autograd_gradient(problem, parameters):
    leaf = parameters.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(problem.value(problem.batch.outputs(leaf, problem.X), leaf).sum(), leaf)
    return gradient


def test_gradient_is_that_of_the_loss():
    problem = objective("tanh", counts=np.random.default_rng(3).integers(0, 4, size=(2, 24)), depth=2, k=2)
    parameters = problem.start + 0.1 * torch.randn(problem.start.shape, dtype=torch.float64)
    gradient = problem.gradient(problem.batch.evaluate(parameters, problem.X), parameters)
    assert_allclose(gradient, autograd_gradient(problem, parameters), rtol=0, atol=1e-13)


def test_gradient_descent_is_the_loop():
    problem = objective("relu")
    parameters = problem.start.clone()
    for _ in range(30):
        parameters = parameters - 0.05 * autograd_gradient(problem, parameters)
    fit = GradientDescent(steps=30, rate=0.05).train(problem, QUIET)
    assert_allclose(fit.parameters, parameters, rtol=0, atol=1e-12)
    assert fit.steps == 30
    assert_allclose(fit.loss, problem.value(problem.batch.outputs(parameters, problem.X), parameters), rtol=1e-12)


@pytest.mark.parametrize("activation", ["relu", "erf", "tanh"])
def test_auto_rate_never_diverges_and_stops_at_the_tolerance(activation):
    problem = objective(activation, regularization=0.1)
    fit = GradientDescent(steps=3000, rate="auto", tolerance=1e-4).train(problem, QUIET)
    first = problem.value(problem.batch.outputs(problem.start, problem.X), problem.start)
    assert (fit.loss < first).all()
    if activation != "relu":
        assert fit.converged.all()
        assert fit.steps < 3000


def test_largest_curvature_is_that_of_the_tangent_kernel():
    problem = objective(n=20)
    K = problem.batch.evaluate(problem.start, problem.X).tangent_kernel()[0].numpy()
    expected = np.linalg.eigvalsh(K).max() / 20 + 1e-3
    assert 1.0 <= float(problem.largest_curvature()[0]) / expected < 1.02
    assert 0.7 < float(problem.largest_curvature(max_rows=10)[0]) / expected < 2.0


@pytest.mark.parametrize("regularization", [1e-10, 1e-3])
@pytest.mark.parametrize("activation", ["erf", "tanh", "relu"])
def test_gauss_newton_makes_the_gradient_vanish(activation, regularization):
    problem = objective(activation, d=8, width=32 * 24, regularization=regularization)
    fit = GaussNewton().train(problem, QUIET)
    assert fit.steps <= 30
    assert fit.converged.all()
    gradient = autograd_gradient(problem, fit.parameters).norm(dim=1) / autograd_gradient(problem, problem.start).norm(dim=1)
    assert_allclose(fit.relative_gradient, gradient, rtol=1e-6)
    if activation != "relu" or regularization < 1e-6:  # at a minimum on kinks the gradient stays, the loss does not fall
        assert (gradient <= 1e-6).all()


@pytest.mark.parametrize("activation", ["relu", "erf"])
def test_gauss_newton_at_the_papers_width_in_single_precision(activation):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 0.2, size=(64, 16))
    y = np.sin(X).sum(axis=1) + 0.001 * rng.standard_normal(64)
    X, y = (X - X.mean(0)) / X.std(0), (y - y.mean()) / y.std()
    batch = MLPBatch(MLP(activation=activation), 16, 1, 32 * 64)
    labels = torch.tensor(np.stack([y, 0 * y])[:, :, None], dtype=torch.float32)
    start = batch.draw(np.random.default_rng(0)).float().expand(2, -1)
    inputs = torch.tensor(X, dtype=torch.float32).expand(2, -1, -1)
    fit = GaussNewton().train(Objective(batch, start, inputs, labels, torch.ones(2, 64, dtype=torch.float64), 1e-10), QUIET)
    assert fit.steps <= 10
    assert (fit.relative_gradient <= 1e-6).all()


def test_all_trainers_find_the_same_minimum():
    problem = objective("erf", width=512, regularization=0.05)
    newton = GaussNewton().train(problem, QUIET)
    descent = GradientDescent(steps=20_000, tolerance=1e-7).train(problem, QUIET)
    assert_allclose(newton.loss, descent.loss, rtol=1e-8)
    stochastic = SGD(epochs=400, batch_size=8).train(problem, QUIET)
    assert_allclose(stochastic.loss, newton.loss, rtol=2e-2)


@pytest.mark.parametrize("trainer", [GaussNewton(tolerance=1e-9), GradientDescent(steps=20, rate=0.05)], ids=str)
def test_counts_are_repeated_rows_and_padding_is_nothing(trainer):
    wide = {"width": 2048, "regularization": 0.1}
    plain = objective(counts=np.array([[2] + [1] * 22 + [0]] * 2), **wide)
    index = torch.tensor([0, *range(23)]).expand(2, -1)
    repeated = objective(**wide).rows(index)
    assert_allclose(trainer.train(plain, QUIET).parameters, trainer.train(repeated, QUIET).parameters, rtol=0, atol=1e-6)


def test_networks_of_a_batch_do_not_touch_each_other():
    both = objective()
    alone = Objective(both.batch, both.start[:1], both.X[:1], both.labels[:1], both.weights[:1], both.regularization)
    assert_allclose(GaussNewton().train(both, QUIET).parameters[:1], GaussNewton().train(alone, QUIET).parameters, atol=1e-7)


def test_several_outputs_train_together():
    problem = objective("erf", k=3, width=2048, regularization=0.05)
    fit = GaussNewton().train(problem, QUIET)
    assert fit.converged.all()


def test_stochastic_descent_with_padded_rows_is_unbiased():
    # With all rows in one batch a step of SGD is a step of gradient descent, padding or not.
    counts = np.array([[1.0] * 20 + [0.0] * 4] * 2)
    problem = objective(counts=counts)
    one = SGD(epochs=1, batch_size=24, rate=0.01, momentum=0.0).train(problem, QUIET)
    step = GradientDescent(steps=1, rate=0.01).train(problem, QUIET)
    assert_allclose(one.parameters, step.parameters, rtol=0, atol=1e-12)


def test_momentum_and_schedule_are_the_loop():
    problem, parameters, velocity = objective(), objective().start.clone(), 0.0
    for epoch in range(4):  # one batch of all rows an epoch, so the order does not matter
        rate = 0.01 * 0.5 * (1 + np.cos(np.pi * epoch / 4))
        velocity = 0.7 * velocity - rate * autograd_gradient(problem, parameters)
        parameters = parameters + velocity
    fit = SGD(epochs=4, batch_size=24, rate=0.01, momentum=0.7).train(problem, QUIET)
    assert_allclose(fit.parameters, parameters, rtol=0, atol=1e-12)


def test_stochastic_descent_recovers_from_too_large_a_rate():
    problem = objective("relu", regularization=0.1)
    fit = SGD(epochs=60, batch_size=8, rate=3.0).train(problem, QUIET)
    first = problem.value(problem.batch.outputs(problem.start, problem.X), problem.start)
    assert (fit.loss < first).all()


@pytest.mark.parametrize(
    "build",
    [
        lambda: GaussNewton(steps=0),
        lambda: GaussNewton(tolerance=1.5),
        lambda: GaussNewton(stall=0.0),
        lambda: SGD(epochs=0),
        lambda: SGD(batch_size=1.5),
        lambda: SGD(rate=-1.0),
        lambda: SGD(momentum=1.0),
        lambda: SGD(tolerance=0.0),
    ],
)
def test_impossible_trainers_are_refused_at_birth(build):
    with pytest.raises(InvalidInputError, match="must be a"):
        build()


def test_a_loss_that_cannot_fall_with_a_large_gradient_is_not_converged(monkeypatch):
    # Steps that are all refused: nothing moves, and the trainer must not call that an end.
    def stuck(objective, evaluation, parameters, loss, damping, open_):
        return parameters, loss, damping

    monkeypatch.setattr("unseed._solvers.gauss_newton._best_step", stuck)
    assert not GaussNewton(steps=6).train(objective("relu"), QUIET).converged.any()


def test_progress_shows_the_loss(capsys):
    GaussNewton(steps=2).train(objective(), Progress(active=True))
    assert "Gauss-Newton" in capsys.readouterr().err
