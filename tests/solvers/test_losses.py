"""Losses: what they answer, which of them one solve can train, and that nothing but λ changes with their scale."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from unseed import MLP, GaussNewton, GradientFlow, KernelEngine, LinearizedEngine, NetworkEngine
from unseed._progress import Progress
from unseed._random import Streams
from unseed._resampling import Plan
from unseed._solvers import Objective
from unseed.engines import NewPoints, Task
from unseed.errors import InvalidInputError
from unseed.losses import LOSSES, Loss, Squared, check_labels, check_trainable, constant_curvature, newton_step, resolve_loss
from unseed.networks import MLPBatch


@dataclass(frozen=True)
class Scaled(Loss):
    """A quadratic loss of a user's own."""

    name: ClassVar[str] = "scaled"
    scale: float = 3.0

    def value(self, f, y):
        return self.scale * (f - y) ** 2

    def gradient(self, f, y):
        return 2 * self.scale * (f - y)

    def curvature(self, f, y):
        return torch.full_like(f, 2 * self.scale)


class LogCosh(Loss):
    name = "log_cosh"

    def value(self, f, y):
        return torch.nn.functional.softplus(2 * (f - y)) - (f - y)

    def gradient(self, f, y):
        return torch.tanh(f - y)

    def curvature(self, f, y):
        return 1 - torch.tanh(f - y) ** 2


class Beside(Squared):
    """Smallest beside the label, which s̄ of the auxiliary network would not survive."""

    def gradient(self, f, y):
        return 2 * (f - y - 1)


class WrongValue(Squared):
    def value(self, f, y):
        return (f - y).abs()


POINTS = torch.linspace(-2, 2, 9, dtype=torch.float64)


@pytest.mark.parametrize("loss", [Scaled(), LogCosh(), *(loss() for loss in LOSSES.values())], ids=lambda loss: loss.name)
def test_gradient_and_curvature_are_the_derivatives(loss):
    f, y = POINTS.clone().requires_grad_(), 0.3 * POINTS.flip(0)
    (gradient,) = torch.autograd.grad(loss.value(f, y).sum(), f, create_graph=True)
    assert_allclose(loss.gradient(f, y).detach(), gradient.detach(), atol=1e-12)
    curvature = torch.func.jacrev(lambda at: loss.gradient(at, y))(f.detach()).diagonal()
    assert_allclose(loss.curvature(f, y).detach(), curvature, atol=1e-12)


def test_square_is_the_normal_law():
    loss, noise = Squared(), torch.tensor(0.5, dtype=torch.float64)
    density = loss.law(torch.zeros_like(POINTS), noise).log_prob(POINTS)
    constant = density + loss.value(torch.zeros_like(POINTS), POINTS) / (2 * noise)
    assert_allclose(constant, constant[0].expand(9), rtol=1e-12)
    labels, weights = torch.randn(9, 2, dtype=torch.float64), torch.rand(9, dtype=torch.float64)
    best = loss.start(labels, weights)
    assert_allclose((weights[:, None] * loss.gradient(best.expand_as(labels), labels)).sum(0), 0.0, atol=1e-14)
    assert_allclose(loss.inverse_link(loss.link(POINTS)), POINTS, rtol=0)


def test_newton_reaches_the_label_of_a_square_in_one_step():
    for loss in (Squared(), Scaled(0.2)):
        weights, step = newton_step(loss, POINTS, POINTS.flip(0))
        assert_allclose(POINTS + step, POINTS.flip(0), atol=1e-15)
        assert_allclose(weights, constant_curvature(loss) / 2, rtol=1e-15)


def test_names_and_objects():
    assert resolve_loss("squared") == Squared()
    assert resolve_loss(Scaled()) == Scaled()
    for wrong in ("median", Squared, 3, None, []):
        with pytest.raises(InvalidInputError, match=r"loss=.* is not known; use .*'squared'.* or an object"):
            resolve_loss(wrong)


@pytest.mark.parametrize("loss", [LogCosh(), Beside(), WrongValue(), Scaled(-1.0), Scaled(0.0)], ids=lambda one: repr(one)[:20])
def test_what_one_solve_cannot_train_is_refused(loss):
    assert isinstance(loss, Loss)
    with pytest.raises(InvalidInputError, match=r"^loss='\w+' is not a constant times .* needs a constant curvature"):
        check_trainable(loss)


def test_labels_that_a_loss_cannot_have():
    class Positive(Squared):
        name = "positive"

        def legal(self, labels):
            return labels > 0

    check_labels(Positive(), POINTS.square() + 1)
    with pytest.raises(InvalidInputError, match=r"loss='positive' cannot have the label -2 \(row 0 of y\)"):
        check_labels(Positive(), POINTS[:, None])


def a_task(loss, regularization):
    rng = np.random.default_rng(0)
    labels = torch.tensor(np.stack([rng.normal(size=(30, 2)), 0.1 * rng.normal(size=(30, 2))], axis=1))
    network = MLP(activation="erf", bias_scale=1.0)
    return Task(torch.tensor(rng.normal(size=(30, 2))), labels, network, regularization, Streams(0), loss=loss)


TRAINED = NetworkEngine(width=512, trainer=GaussNewton(steps=100, tolerance=1e-8), dtype="float64")


@pytest.mark.parametrize("engine", [KernelEngine(), LinearizedEngine(width=64), TRAINED])
def test_a_scale_of_the_loss_is_a_scale_of_the_penalty(engine):
    plan = Plan(np.stack([np.ones(30, np.int64), np.random.default_rng(1).integers(0, 3, 30)]), (0,))
    points = NewPoints(torch.linspace(-1, 1, 10, dtype=torch.float64).reshape(5, 2))
    own = engine.fit(a_task(Scaled(3.0), 3.0), plan)
    square = engine.fit(a_task(Squared(), 1.0), plan)
    tolerance = 1e-6 if isinstance(engine, NetworkEngine) else 1e-12
    for question in ("predict", "influence", "posterior_variance"):
        assert_allclose(getattr(own, question)(points), getattr(square, question)(points), rtol=tolerance, atol=tolerance)
    assert_allclose(own.noise_variance(), square.noise_variance(), rtol=tolerance)


@pytest.mark.parametrize("engine", [KernelEngine(GradientFlow(time=10.0)), LinearizedEngine(width=64)])
def test_closed_forms_refuse_other_losses(engine):
    with pytest.raises(InvalidInputError, match="log_cosh"):
        engine.fit(a_task(LogCosh(), 1e-3), Plan(np.ones((1, 30), np.int64), (0,)))


def test_gauss_newton_finds_the_minimum_of_a_loss_that_bends():
    rng = np.random.default_rng(2)
    batch = MLPBatch(MLP(activation="tanh", bias_scale=1.0), 2, 1, 64)
    start = batch.draw(rng)[None]
    X, y = torch.tensor(rng.normal(size=(1, 20, 2))), torch.tensor(0.3 * rng.normal(size=(1, 20, 1)))
    problem = Objective(batch, start, X, y, torch.ones(1, 20, dtype=torch.float64), 1e-2, LogCosh())
    fit = GaussNewton(steps=100).train(problem, Progress())
    leaf = fit.parameters.clone().requires_grad_()
    value = problem.value(batch.outputs(leaf, X), leaf)
    (gradient,) = torch.autograd.grad(value.sum(), leaf)
    first = problem.gradient(batch.evaluate(start, X), start)
    assert float(gradient.norm()) < 2e-6 * float(first.norm())
    square = replace(problem, loss=Squared())
    assert float((fit.parameters - GaussNewton().train(square, Progress()).parameters).norm()) > 1e-3
