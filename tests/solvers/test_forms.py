"""The two forms of the ridge, against each other and against dense algebra on rows that are physically repeated."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from oracles.regression import leave_one_out_by_refitting, ridge_on_repeated_rows
from unseed._solvers import DualRidge, NormalEquations, PrimalRidge, Sums
from unseed.errors import ConditioningWarning, SingularKernelError

RNG = np.random.default_rng(0)
SHAPES = [(12, 3, 1), (40, 7, 2), (60, 59, 3), (9, 1, 1)]  # rows, features, label columns
LAMBDAS = [1e-4, 1e-2, 1.0]


class Case:
    """Rows, real-valued weights, labels and new points of one shape, and both forms of their ridge."""

    def __init__(self, shape, regularization, weights=None):
        n, p, c = shape
        rng = np.random.default_rng(n + p)
        self.features, self.points = (torch.tensor(rng.normal(size=(rows, p))) for rows in (n, 5))
        self.labels = torch.tensor(rng.normal(size=(n, c)))
        self.weights = torch.tensor(rng.uniform(0.2, 3.0, size=n) if weights is None else weights)
        self.kernel, self.cross = self.features @ self.features.T, self.points @ self.features.T
        self.dual = DualRidge.factorise(self.kernel.clone(), self.weights, regularization)
        self.primal = PrimalRidge.factorise(self.features, self.weights, regularization)

    def prior(self):
        return self.points @ self.points.T


@pytest.fixture(params=[(shape, one) for shape in SHAPES for one in LAMBDAS], ids=str)
def case(request):
    return Case(*request.param)


def same(one, other):
    """Equal to ten digits of the largest number."""
    assert_allclose(one, other, rtol=1e-10, atol=1e-10 * float(torch.as_tensor(other).abs().max()))


def test_forms_agree_on_the_rows(case):
    dual, primal, labels = case.dual, case.primal, case.labels
    rows = torch.arange(0, len(labels), 2)
    for question in ("solve", "energy", "residual", "amplitude"):
        same(getattr(primal, question)(labels), getattr(dual, question)(labels))
    same(primal.ridge, dual.ridge)
    assert_allclose(primal.condition, dual.condition, rtol=1e-10)
    same(primal.inverse_diagonal(rows), dual.inverse_diagonal(rows))
    for ours, theirs in zip(primal.leave_one_out(labels, rows), dual.leave_one_out(labels, rows), strict=True):
        same(ours, theirs)
    for ours, theirs in zip(primal.noise_residual(labels), dual.noise_residual(labels), strict=True):
        same(ours, theirs)


def test_forms_agree_at_new_points(case):
    same(case.primal.effect(case.points), case.dual.effect(case.cross))
    ours, theirs = case.primal.posterior(case.points, case.prior), case.dual.posterior(case.cross, case.prior)
    assert_allclose(ours, theirs, rtol=1e-10, atol=1e-13 * float(case.prior().max()))  # the dual subtracts from the prior


@pytest.mark.parametrize("regularization", LAMBDAS)
def test_both_are_the_dense_inverse_of_repeated_rows(regularization):
    counts = RNG.integers(1, 4, size=12)
    case = Case((12, 3, 2), regularization, counts.astype(np.float64))
    labels, points = case.labels.numpy(), case.cross.numpy()
    expected = ridge_on_repeated_rows(case.kernel.numpy(), points, labels, counts, regularization)
    repeated = np.repeat(np.arange(12), counts)
    kernel, n = case.kernel.numpy()[np.ix_(repeated, repeated)], counts.sum()
    inverse = np.linalg.inv(kernel + regularization * n * np.eye(n))
    known = points[:, repeated]
    posterior = case.prior().numpy() - known @ inverse @ known.T  # loses the digits of what is subtracted
    lost = 1e-12 * float(case.prior().max())
    for form, new in ((case.dual, case.cross), (case.primal, case.points)):
        assert_allclose(form.effect(new).T @ case.labels, expected, rtol=1e-9)
        assert_allclose(form.posterior(new, case.prior), posterior, rtol=1e-9, atol=lost)
        assert_allclose(form.energy(case.labels), (labels[repeated] * (inverse @ labels[repeated])).sum(0), rtol=1e-9)


@pytest.mark.parametrize("regularization", LAMBDAS)
def test_both_leave_out_rows_and_find_traces_as_dense_algebra_does(regularization):
    case = Case((12, 3, 1), regularization, np.ones(12))
    inverse = np.linalg.inv(case.kernel.numpy() + 12 * regularization * np.eye(12))
    errors = leave_one_out_by_refitting(case.kernel.numpy(), case.labels.numpy()[:, 0], 12 * regularization)
    for form in (case.dual, case.primal):
        assert_allclose(form.leave_one_out(case.labels, torch.arange(12))[0][:, 0], errors, rtol=1e-9)
        residual, trace = form.noise_residual(case.labels)
        assert_allclose(trace, 144 * np.trace(inverse @ inverse), rtol=1e-9)
        assert_allclose(residual, 12 * inverse @ case.labels.numpy(), rtol=1e-9)


@pytest.mark.parametrize("cuts", [(0, 40), (0, 1, 40), (0, 13, 14, 40), tuple(range(41))])
def test_sums_of_any_cut_of_the_rows_are_the_sums(cuts):
    case = Case((40, 7, 2), 1e-2)
    order = torch.tensor(RNG.permutation(40))
    parts = [
        Sums.of(case.features[rows], case.labels[rows], case.weights[rows])
        for rows in (order[start:stop] for start, stop in pairwise(cuts))
    ]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    assert total.rows == 40
    equations = NormalEquations.of(total, 1e-2)
    coefficients = equations.solve(total.cross)
    same(case.points @ coefficients, case.cross @ case.dual.solve(case.labels))
    same(equations.energy(total), case.dual.energy(case.labels))
    same(equations.posterior(case.points), case.primal.posterior(case.points, case.prior))
    hat = case.primal.effect(case.features).diagonal()  # each label's effect on its own fit
    same(equations.leverage(case.features, case.weights), hat)


def test_features_that_repeat_each_other_get_a_little_jitter():
    features = torch.ones(5, 2, dtype=torch.float64)
    with pytest.warns(ConditioningWarning, match="regularization=0; 5.0e-12 was added"):
        ridge = PrimalRidge.factorise(features, torch.ones(5, dtype=torch.float64), 0.0)
    assert_allclose(ridge.ridge, 5e-12)
    with pytest.raises(SingularKernelError, match="standardize=True"):
        PrimalRidge.factorise(features * torch.nan, torch.ones(5, dtype=torch.float64), 1.0)
