import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from unseed import MLP, Converged, GradientFlow, KernelEngine, resampling
from unseed.engines import Task
from unseed.kernels import ntk
from unseed.predictors import draw_networks, fit_pnc

RNG = np.random.default_rng(0)
X, X_NEW, Y = RNG.normal(size=(15, 2)), RNG.normal(size=(4, 2)), RNG.normal(size=(15, 1))
NETWORK = MLP(bias_scale=1.0)


def given_mean(points, n_outputs):
    return torch.sin(points[:, :1]).repeat(1, n_outputs)


@pytest.mark.parametrize("training", [Converged(), GradientFlow(time=30.0)], ids=str)
def test_pnc_is_base_minus_auxiliary_plus_mean_whatever_the_start(training):
    engine = KernelEngine(training=training)
    task = Task(torch.tensor(X), torch.tensor(Y), NETWORK, 0.01)
    pnc = fit_pnc(engine, task, resampling.full(15), given_mean).predict(X_NEW)[0]

    # Algorithm 1 by hand, from an arbitrary initial function s: train on y and on s̄ from the same start.
    def s(points):
        return np.cos(3 * points[:, :1]) + points[:, 1:]

    def trained(labels):
        shifted = Task(torch.tensor(X), torch.tensor(labels - s(X)), NETWORK, 0.01)
        return s(X_NEW) + engine.fit(shifted, resampling.full(15)).predict(torch.tensor(X_NEW))[0].numpy()

    base, auxiliary = trained(Y), trained(np.sin(X[:, :1]))
    assert_allclose(pnc, base - (auxiliary - np.sin(X_NEW[:, :1])), rtol=1e-10, atol=1e-12)


def test_pnc_with_zero_mean_is_kernel_ridge_regression():
    task = Task(torch.tensor(X), torch.tensor(Y), NETWORK, 0.01)
    pnc = fit_pnc(KernelEngine(), task, resampling.full(15), lambda points, k: points.new_zeros(len(points), k))
    K = ntk(X, network=NETWORK)
    expected = ntk(X_NEW, X, network=NETWORK) @ np.linalg.solve(K + 0.15 * np.eye(15), Y)
    assert_allclose(pnc.predict(X_NEW)[0], expected, rtol=1e-10)


def test_drawn_networks_have_the_covariance_and_ensembles_a_share_of_it():
    covariance = np.array([[2.0, 0.9], [0.9, 1.0]])
    mean = np.array([[1.0, 10.0], [2.0, 20.0]])
    n = 40_000
    for members in (1, 5):
        draws = draw_networks(mean, covariance, n, members, np.random.default_rng(0))
        assert draws.shape == (n, 2, 2)
        assert (np.abs(draws.mean(axis=0) - mean) < 4 * np.sqrt(2.0 / members / n)).all()
        for output in range(2):  # a sample covariance has a standard error below √(2/n) of the variances
            assert_allclose(np.cov(draws[:, :, output].T) * members, covariance, atol=4 * 2 * np.sqrt(2 / n))
        assert abs(np.corrcoef(draws[:, 0, 0], draws[:, 0, 1])[0, 1]) < 4 / np.sqrt(n)
