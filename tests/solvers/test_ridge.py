import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from oracles.regression import ridge_on_repeated_rows
from unseed import MLP
from unseed._solvers import DualRidge
from unseed.errors import ConditioningWarning, SingularKernelError
from unseed.kernels import ntk

RNG = np.random.default_rng(0)
X, X_NEW, Y = RNG.normal(size=(12, 2)), RNG.normal(size=(4, 2)), RNG.normal(size=(12, 3))
NETWORK = MLP(bias_scale=1.0)
K, K_NEW = ntk(X, network=NETWORK), ntk(X_NEW, X, network=NETWORK)


def factorise(kernel, counts, regularization):
    return DualRidge.factorise(torch.tensor(kernel), torch.tensor(counts, dtype=torch.float64), regularization)


@pytest.mark.parametrize("regularization", [1e-10, 1e-3, 1.0])
def test_counts_are_repeated_rows(regularization):
    counts = np.array([1, 3, 2, 1, 1, 5, 1, 2, 1, 1, 4, 1])
    solved = factorise(K, counts, regularization).solve(torch.tensor(Y)).numpy()
    expected = ridge_on_repeated_rows(K, K_NEW, Y, counts, regularization)
    # A solve with condition number κ leaves κ·1e-16 in both routes; repeated rows have κ of about K/(λ n).
    assert_allclose(K_NEW @ solved, expected, rtol=1e-10 if regularization > 1e-6 else 1e-5)


def test_residual_is_labels_minus_fit():
    factor = factorise(K, np.ones(12), 0.01)
    assert_allclose(factor.residual(torch.tensor(Y)), Y - K @ factor.solve(torch.tensor(Y)).numpy(), rtol=0, atol=1e-13)


def test_noise_residual_and_trace_are_those_of_the_smoother():
    factor = factorise(K, np.ones(12), 0.01)
    left_over = np.eye(12) - K @ np.linalg.inv(K + 0.12 * np.eye(12))
    residual, trace = factor.noise_residual(torch.tensor(Y))
    assert_allclose(
        residual.square().sum(0) / trace, ((left_over @ Y) ** 2).sum(0) / np.trace(left_over.T @ left_over), rtol=1e-10
    )


def test_singular_kernel_gets_a_little_jitter_and_a_warning():
    duplicated = np.ones((3, 3))
    with pytest.warns(ConditioningWarning, match=r"regularization=0; .* was added to its diagonal"):
        factor = factorise(duplicated, np.ones(3), 0.0)
    assert torch.isfinite(factor.solve(torch.ones(3, 1, dtype=torch.float64))).all()


def test_jitter_costs_no_more_than_it_must():
    # Two rows twice, with labels that disagree: the answer of a vanishing ridge is the fit to their means.
    kernel, labels = np.kron(K[:2, :2], np.ones((2, 2))), np.array([1.0, 3.0, 0.0, 1.0])
    with pytest.warns(ConditioningWarning):
        dual = factorise(kernel, np.ones(4), 0.0).solve(torch.tensor(labels[:, None])).numpy()
    assert_allclose(kernel @ dual[:, 0], [2.0, 2.0, 0.5, 0.5], rtol=1e-3)


def test_a_solve_with_few_digits_left_says_so():
    kernel = np.kron(K, np.ones((2, 2)))
    with pytest.warns(ConditioningWarning, match=r"condition number of about \de\+1\d at regularization=1e-15: expect \d"):
        factorise(kernel, np.ones(24), 1e-15)


def test_hopeless_kernel_names_regularization_condition_and_remedy():
    indefinite = np.array([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(SingularKernelError, match=r"regularization=1e-08 \(condition number about .*raise regularization"):
        factorise(indefinite, np.ones(2), 1e-8)


def test_overflow_names_the_inputs():
    with pytest.raises(SingularKernelError, match="standardize=True"):
        factorise(np.full((2, 2), np.nan), np.ones(2), 1e-8)
