"""Factors in place, iterations, mixed precision and preconditioners, each against plain linear algebra."""

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from unseed import MLP
from unseed._solvers import DualRidge, PrimalRidge, cholesky, conjugate_gradients
from unseed._solvers.cholesky import lower_cholesky, restore, solve_with_factor
from unseed._solvers.iterative import solve_mixed, solve_ridge
from unseed._solvers.ridge import random_signs
from unseed.kernels import ntk

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
K = ntk(X, network=MLP(bias_scale=1.0, scale_inputs=True))
A = K + 0.3 * np.eye(300)
B = RNG.normal(size=(300, 3))


def test_factor_takes_the_place_of_the_lower_triangle_and_leaves_the_upper_one():
    matrix = torch.tensor(A)
    factor = lower_cholesky(matrix)
    assert factor.data_ptr() == matrix.data_ptr()
    assert_allclose(torch.tril(factor), np.linalg.cholesky(A), rtol=1e-11, atol=1e-12)
    assert_array_equal(torch.triu(factor, 1), np.triu(A, 1))
    assert_allclose(solve_with_factor(factor, torch.tensor(B)), np.linalg.solve(A, B), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("hidden", [{}, None])
def test_factors_are_the_same_where_scipy_does_not_say_where_lapack_is(monkeypatch, hidden):
    expected = DualRidge.factorise(torch.tensor(K), torch.ones(300, dtype=torch.float64), 1e-3)
    monkeypatch.setattr(cholesky, "cython_lapack", SimpleNamespace(**({} if hidden is None else {"__pyx_capi__": hidden})))
    cholesky._routine.cache_clear()
    try:
        plain = DualRidge.factorise(torch.tensor(K), torch.ones(300, dtype=torch.float64), 1e-3)
        assert lower_cholesky(torch.tensor(A - 2.0 * np.eye(300))) is None
    finally:
        cholesky._routine.cache_clear()
    assert_allclose(torch.tril(plain.factor), torch.tril(expected.factor), rtol=1e-11, atol=1e-12)
    assert_allclose(plain.solve(torch.tensor(B)), expected.solve(torch.tensor(B)), rtol=1e-9)


def test_a_failed_factorisation_can_be_taken_back():
    indefinite = A - 2.0 * np.eye(300)
    matrix = torch.tensor(indefinite)
    diagonal = matrix.diagonal().clone()
    assert lower_cholesky(matrix) is None
    restore(matrix)
    matrix.diagonal().copy_(diagonal)
    assert_array_equal(matrix, indefinite)


@pytest.mark.parametrize("n", [1, 511, 512, 513, 1030])
def test_restore_mirrors_matrices_of_any_size(n):
    matrix = torch.tensor(RNG.normal(size=(n, n)))
    upper = np.triu(matrix.numpy())
    restore(matrix)
    assert_array_equal(matrix, upper + np.triu(upper, 1).T)


def test_stack_of_systems_is_each_alone():
    kernels, counts = [torch.tensor(K[:40, :40]), torch.tensor(K[50:90, 50:90])], [torch.ones(40), torch.arange(1, 41)]
    counts = [count.to(torch.float64) for count in counts]
    together = DualRidge.factorise_stack([k.clone() for k in kernels], counts, 0.01)
    for kernel, count, factor in zip(kernels, counts, together, strict=True):
        alone = DualRidge.factorise(kernel.clone(), count, 0.01)
        assert_allclose(factor.solve(torch.tensor(B[:40])), alone.solve(torch.tensor(B[:40])), rtol=1e-10)
        assert_array_equal(factor.ridge, alone.ridge)


def test_stack_with_a_singular_system_is_solved_one_by_one():
    singular = torch.ones(3, 3, dtype=torch.float64)
    counts = [torch.ones(3, dtype=torch.float64)] * 2
    with pytest.warns(UserWarning, match="was added to its diagonal"):
        first, second = DualRidge.factorise_stack([singular, torch.tensor(A[:3, :3])], counts, 0.0)
    assert_allclose(second.solve(torch.tensor(B[:3])), np.linalg.solve(A[:3, :3], B[:3]), rtol=1e-10)
    assert float(first.ridge[0]) > 0


def test_random_columns_find_the_trace():
    factor = DualRidge.factorise(torch.tensor(K), torch.ones(300, dtype=torch.float64), 1e-3)
    _, exact = factor.noise_residual(torch.tensor(B))
    _, estimate = factor.noise_residual(torch.tensor(B), probes=64)
    # Var(zᵀMz) ≤ 2 ‖M‖² for M = A⁻² and signs z: three standard errors of 64 of them
    inverse = np.linalg.inv(K + 0.3 * np.eye(300))
    spread = 300**2 * np.sqrt(2 / 64) * np.linalg.norm(inverse @ inverse)
    assert abs(estimate - exact) < 3 * spread < 0.1 * exact
    assert_array_equal(random_signs(5, 3, torch.tensor(B)).abs(), np.ones((5, 3)))


def test_random_columns_find_the_trace_of_a_diagonal_matrix_exactly():
    factor = DualRidge.factorise(torch.diag(torch.tensor(np.arange(1.0, 51.0))), torch.ones(50, dtype=torch.float64), 0.1)
    assert factor.squared_inverse_trace(probes=7) == pytest.approx(np.sum(1 / (np.arange(1.0, 51.0) + 5) ** 2), rel=1e-12)


def test_conjugate_gradients_solve_every_column_and_say_how_well():
    matrix = torch.tensor(A)
    columns = torch.tensor(np.column_stack([B, np.zeros(300)]))
    calls = []
    found = conjugate_gradients(
        lambda v: matrix @ v,
        columns,
        lambda v: v / matrix.diagonal()[:, None],
        tolerance=1e-10,
        max_iterations=500,
        report=lambda: calls.append(1),
    )
    assert_allclose(found.solution, np.linalg.solve(A, columns), rtol=1e-7, atol=1e-9)
    assert found.converged
    assert len(calls) == found.iterations
    left = np.linalg.norm(columns.numpy() - A @ found.solution.numpy(), axis=0)[:3] / np.linalg.norm(B, axis=0)
    assert found.relative_residual == pytest.approx(left.max(), rel=1e-6)
    short = conjugate_gradients(lambda v: matrix @ v, columns, lambda v: v, tolerance=1e-10, max_iterations=2)
    assert (short.iterations, short.converged) == (2, False)


@pytest.mark.parametrize("ridge", [1.0, 1e-2, 1e-4])
def test_mixed_precision_is_as_good_as_double_where_it_is_given(ridge):
    matrix = torch.tensor(K + ridge * np.eye(300))
    kept = matrix.clone()
    solved = solve_mixed(matrix, torch.tensor(B))
    assert_array_equal(matrix, kept)
    residual = np.linalg.norm(B - kept.numpy() @ solved.numpy(), axis=0) / np.linalg.norm(B, axis=0)
    assert residual.max() < 2e-11


def test_mixed_precision_gives_up_where_float32_cannot_follow():
    nearly_singular = np.kron(K[:100, :100], np.ones((2, 2))) + 1e-9 * np.eye(200)
    assert solve_mixed(torch.tensor(nearly_singular), torch.tensor(B[:200])) is None


def test_where_float32_cannot_follow_the_ridge_is_added_once():
    orthogonal, _ = np.linalg.qr(K)
    matrix = orthogonal * np.logspace(0, -9, 300) @ orthogonal.T
    assert solve_mixed(torch.tensor(matrix + 1e-8 * np.eye(300)), torch.tensor(B)) is None
    solved = solve_ridge(torch.tensor(matrix), torch.ones(300, dtype=torch.float64), 1e-8 / 300, torch.tensor(B), is_mixed=True)
    assert_allclose(solved, np.linalg.solve(matrix + 1e-8 * np.eye(300), B), rtol=1e-5, atol=1e-5 * float(solved.abs().max()))


def seen_from(n_landmarks, ridge):
    root = np.linalg.cholesky(K[:n_landmarks, :n_landmarks] + 1e-10 * np.eye(n_landmarks))
    features = np.linalg.solve(root, K[:n_landmarks]).T
    return PrimalRidge.factorise(torch.tensor(features), torch.ones(300, dtype=torch.float64), ridge / 300).solve


def test_landmarks_at_all_rows_are_the_inverse_and_at_some_speed_iterations_up():
    ridge = 0.03
    assert_allclose(seen_from(300, ridge)(torch.tensor(B)), np.linalg.solve(K + ridge * np.eye(300), B), rtol=1e-6, atol=1e-7)
    matrix = torch.tensor(K + ridge * np.eye(300))
    steps = [
        conjugate_gradients(lambda v: matrix @ v, torch.tensor(B), precondition, tolerance=1e-8, max_iterations=1000).iterations
        for precondition in (seen_from(100, ridge), lambda v: v)
    ]
    assert steps[0] < steps[1] / 2


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_factors_leave_the_upper_triangle_and_the_threads(dtype):
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        matrix = torch.tensor(A, dtype=dtype)
        upper = torch.triu(matrix, 1)
        factor = lower_cholesky(matrix)
        assert torch.get_num_threads() == 2
        assert factor.data_ptr() == matrix.data_ptr()
        assert_array_equal(torch.triu(factor, 1), upper)
        tolerance = 1e-11 if dtype == torch.float64 else 1e-4
        assert_allclose(torch.tril(factor), np.linalg.cholesky(A), rtol=tolerance, atol=tolerance)
        indefinite = torch.tensor(A - 2.0 * np.eye(300), dtype=dtype)
        kept, diagonal = indefinite.clone(), indefinite.diagonal().clone()
        assert lower_cholesky(indefinite) is None
        restore(indefinite)
        indefinite.diagonal().copy_(diagonal)
        assert_array_equal(indefinite, kept)
    finally:
        torch.set_num_threads(threads)


def test_other_threads_run_during_a_factorisation():
    matrix = torch.full((2500, 2500), 0.5, dtype=torch.float64).fill_diagonal_(1.0)
    worker = threading.Thread(target=lower_cholesky, args=(matrix,))
    worker.start()
    naps = 0
    while worker.is_alive():  # 0.2 s and more
        time.sleep(0.001)
        naps += 1
    assert naps >= 10
