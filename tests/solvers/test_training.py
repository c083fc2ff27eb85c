"""Training stopped early, against explicit gradient flow and gradient descent of a linear model."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from oracles.regression import descent_of_linear_model, flow_of_linear_model
from unseed import GradientDescent, GradientFlow
from unseed._solvers import DualRidge, StoppedRidge
from unseed.errors import InvalidInputError, SingularKernelError

RNG = np.random.default_rng(1)
J, J_NEW, Y = RNG.normal(size=(8, 20)), RNG.normal(size=(3, 20)), RNG.normal(size=8)
COUNTS = np.array([1.0, 2.0, 1.0, 3.0, 1.0, 1.0, 2.0, 1.0])


def by_eigenvectors(kernel, weights, regularization, training):
    ridge = StoppedRidge(torch.as_tensor(kernel), torch.tensor(weights), regularization, training, float(sum(weights)))
    assert torch.isfinite(ridge.spectral.gains).all()  # once they are there, it takes no steps
    return ridge


def prediction(training, regularization, counts=COUNTS):
    ridge = by_eigenvectors(J @ J.T, counts, regularization, training)
    return J_NEW @ J.T @ ridge.solve(torch.tensor(Y[:, None])).numpy()[:, 0]


@pytest.mark.parametrize("regularization", [0.0, 1e-3, 0.5])
@pytest.mark.parametrize("time", [0.01, 0.3, 5.0])
def test_gradient_flow_is_the_integrated_flow(time, regularization):
    theta = flow_of_linear_model(J, Y, COUNTS, regularization, time, rate=0.7)
    assert_allclose(prediction(GradientFlow(time=time, rate=0.7), regularization), J_NEW @ theta, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("regularization", [0.0, 1e-3, 0.5])
@pytest.mark.parametrize(("steps", "rate"), [(0, 0.01), (1, 0.01), (80, 0.01), (37, 0.1)])
def test_gradient_descent_is_the_loop(steps, rate, regularization):
    theta = descent_of_linear_model(J, Y, COUNTS, regularization, steps, rate)
    result = prediction(GradientDescent(steps=steps, rate=rate), regularization)
    assert_allclose(result, J_NEW @ theta, rtol=1e-12, atol=1e-13)


def test_long_training_is_ridge_and_no_training_is_nothing():
    ridge = DualRidge.factorise(torch.tensor(J @ J.T), torch.tensor(COUNTS), 0.01)
    limit = J_NEW @ J.T @ ridge.solve(torch.tensor(Y[:, None])).numpy()[:, 0]
    assert_allclose(prediction(GradientFlow(time=1e6), 0.01), limit, rtol=1e-11)
    assert_allclose(prediction(GradientDescent(steps=10**6, rate=0.05), 0.01), limit, rtol=1e-11)
    assert_allclose(prediction(GradientFlow(time=0), 0.01), 0.0, atol=0)


def test_directions_the_kernel_does_not_see_have_a_finite_gain():
    by_eigenvectors(np.ones((4, 4)), np.ones(4), 0.0, GradientFlow(time=3.0))


class TestStoppedRidge:
    """Steps one by one and eigenvectors are two routes to the same weights."""

    KERNEL = torch.tensor(np.kron(J @ J.T, np.eye(5)) / 5)  # 40 rows, so that a few steps are the cheaper way
    COUNTS = torch.tensor(np.tile(COUNTS, 5))
    LABELS = torch.tensor(RNG.normal(size=(40, 1)))

    def ridge(self, training, regularization=1e-3):
        return StoppedRidge(self.KERNEL, self.COUNTS, regularization, training, float(self.COUNTS.sum()))

    @pytest.mark.parametrize("regularization", [0.0, 1e-3, 0.5])
    def test_steps_and_eigenvectors_agree(self, regularization):
        training = GradientDescent(steps=25, rate=0.05)
        ridge = self.ridge(training, regularization)
        by_steps = ridge.solve(self.LABELS)
        assert "spectral" not in vars(ridge)  # it did iterate
        assert len(ridge.spectral.gains) == 40
        assert_allclose(ridge.solve(self.LABELS), by_steps, rtol=0, atol=1e-12)

    def test_labels_of_zero_cost_nothing(self):
        ridge = self.ridge(GradientDescent(steps=50, rate=0.05))
        solved = ridge.solve(torch.cat([self.LABELS, torch.zeros_like(self.LABELS)], dim=1))
        assert "spectral" not in vars(ridge)
        assert_allclose(solved[:, 1], 0.0, atol=0)

    @pytest.mark.parametrize(
        "training", [GradientDescent(steps=61, rate=0.05), GradientDescent(steps=5), GradientFlow(time=1.0)], ids=str
    )
    def test_many_steps_and_other_trainings_take_the_eigenvectors(self, training):
        ridge = self.ridge(training)
        ridge.solve(self.LABELS)
        assert "spectral" in vars(ridge)

    def test_rates_are_refused_from_where_they_diverge_on(self):
        # Every step multiplies what is left by 1 − 2 · rate · 4, which stays within one up to a rate of a quarter.
        kernel, ones = 12 * torch.eye(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64)
        labels = torch.ones(3, 1, dtype=torch.float64)
        below, beyond = (StoppedRidge(kernel, ones, 0.0, GradientDescent(steps=2, rate=rate), 3.0) for rate in (0.249, 0.251))
        assert_allclose(12 * below.solve(labels), 1 - (1 - 8 * 0.249) ** 2, rtol=1e-12)
        with pytest.raises(InvalidInputError, match=r"rate=0\.251 diverges"):
            beyond.solve(labels)

    def test_a_rate_that_diverges_is_refused(self):
        with pytest.raises(InvalidInputError, match="rate=100 diverges"):
            self.ridge(GradientDescent(steps=5, rate=100.0)).solve(self.LABELS)


def test_noise_residual_and_trace_are_those_of_the_smoother():
    K = J @ J.T
    ridge = by_eigenvectors(K, np.ones(8), 0.01, GradientFlow(time=0.1))
    left_over = np.eye(8) - K @ ridge.solve(torch.eye(8, dtype=torch.float64)).numpy()
    residual, trace = ridge.noise_residual(torch.tensor(Y[:, None]))
    assert_allclose(residual[:, 0], left_over @ Y, rtol=1e-10)
    assert_allclose(trace, np.trace(left_over.T @ left_over), rtol=1e-10)


def test_a_diverging_rate_is_refused_with_the_largest_that_works():
    with pytest.raises(InvalidInputError, match=r"rate=10 diverges.*use a rate of at most"):
        prediction(GradientDescent(steps=5, rate=10.0), 0.01)


def test_auto_rate_is_half_the_inverse_of_the_largest_curvature():
    largest = np.linalg.eigvalsh(np.sqrt(COUNTS)[:, None] * (J @ J.T) * np.sqrt(COUNTS)).max() / COUNTS.sum() + 0.01
    auto, given = (
        prediction(GradientDescent(steps=7), 0.01),
        prediction(GradientDescent(steps=7, rate=0.5 / largest), 0.01),
    )
    assert_allclose(auto, given, rtol=1e-10)


def test_numpy_numbers_are_numbers():
    assert GradientDescent(steps=np.int64(5), rate=np.float32(0.1)).steps == 5
    assert GradientFlow(time=np.float64(5)).time == 5


def test_overflowing_kernel_is_refused():
    with pytest.raises(SingularKernelError, match="overflows"):
        by_eigenvectors(np.full((2, 2), np.inf), np.ones(2), 0.1, GradientFlow(time=1.0))


@pytest.mark.parametrize(
    "build",
    [
        lambda: GradientFlow(time=-1.0),
        lambda: GradientFlow(time=1.0, rate=0.0),
        lambda: GradientFlow(time=float("nan")),
        lambda: GradientDescent(steps=-1, rate=0.1),
        lambda: GradientDescent(steps=1.5, rate=0.1),
        lambda: GradientDescent(steps=1, rate=True),
        lambda: GradientDescent(steps=1, tolerance=2.0),
    ],
)
def test_impossible_trainings_are_refused_at_birth(build):
    with pytest.raises(InvalidInputError, match=r"must be a"):
        build()
