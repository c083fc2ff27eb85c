"""The two forms of the ridge, against each other and against dense algebra on rows that are physically repeated."""

from dataclasses import fields
from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from oracles.regression import leave_one_out_by_refitting, ridge_on_repeated_rows
from unseed._solvers import DualRidge, NormalEquations, PrimalRidge, Sums, WeightedRidge, primal
from unseed.errors import ConditioningWarning, SingularKernelError

RNG = np.random.default_rng(0)
SHAPES = [(12, 3, 1), (40, 7, 2), (60, 59, 3), (9, 1, 1)]  # rows, features, label columns
LAMBDAS = [1e-4, 1e-2, 1.0]


class Case:
    """Rows, real-valued weights, labels and new points of one shape, and both forms of their ridge."""

    def __init__(self, shape, regularization, weights=None, n_observations=None):
        n, p, c = shape
        rng = np.random.default_rng(n + p)
        self.features, self.points = (torch.tensor(rng.normal(size=(rows, p))) for rows in (n, 5))
        self.labels = torch.tensor(rng.normal(size=(n, c)) * 10.0 ** np.arange(c))
        self.weights = torch.tensor(rng.uniform(0.2, 3.0, size=n) if weights is None else weights)
        self.kernel, self.cross = self.features @ self.features.T, self.points @ self.features.T
        rest = self.weights, regularization, n_observations
        self.dual = DualRidge.factorise(self.kernel.clone(), *rest)
        self.primal = PrimalRidge.factorise(self.features, *rest)
        self.ridge = regularization * (self.weights.sum() if n_observations is None else n_observations) / self.weights

    def prior(self):
        return self.points @ self.points.T

    def sums(self, rows):
        return Sums.of(self.features[rows], self.labels[rows], self.weights[rows])


@pytest.fixture(params=[(shape, one, None, n) for shape in SHAPES for one in LAMBDAS for n in (None, 5.5)], ids=str)
def case(request):
    return Case(*request.param)


def same(one, other):
    """Equal to ten digits of the largest number, column by column: outputs have units of their own."""
    one, other = (torch.as_tensor(values, dtype=torch.float64) for values in (one, other))
    scale = other.abs().amax(0) if other.ndim else other.abs()
    assert_allclose(one / scale, other / scale, rtol=0, atol=1e-10)


QUESTIONS = {
    "ridge": lambda form, case, new: [form.ridge],
    "condition": lambda form, case, new: [form.condition],
    "solve": lambda form, case, new: [form.solve(case.labels)],
    "energy": lambda form, case, new: form.energy(case.labels),
    "residual": lambda form, case, new: [form.residual(case.labels)],
    "amplitude": lambda form, case, new: form.amplitude(case.labels),
    "noise_residual": lambda form, case, new: form.noise_residual(case.labels),
    "squared_inverse_trace": lambda form, case, new: [form.squared_inverse_trace(0)],
    "inverse_diagonal": lambda form, case, new: [form.inverse_diagonal(torch.arange(0, len(case.labels), 2))],
    "leave_one_out": lambda form, case, new: form.leave_one_out(case.labels, torch.arange(0, len(case.labels), 2)),
    "effect": lambda form, case, new: [form.effect(new)],
    "posterior": lambda form, case, new: [form.posterior(new, case.prior) / case.prior().max()],
}


def test_every_question_is_among_those_that_are_compared():
    asked = {name for name in (*vars(WeightedRidge), *WeightedRidge.__annotations__) if not name.startswith("_")}
    assert asked == set(QUESTIONS)


@pytest.mark.parametrize("question", QUESTIONS)
def test_forms_agree(case, question):
    ours, theirs = (QUESTIONS[question](form, case, new) for form, new in pairs(case))
    if question == "posterior":  # the dual subtracts from the prior, and so loses digits of it
        assert_allclose(ours[0], theirs[0], rtol=1e-10, atol=1e-13)
        return
    for one, other in zip(ours, theirs, strict=True):
        same(one, other)


def pairs(case):
    return (case.primal, case.points), (case.dual, case.cross)


def test_both_are_the_dense_inverse_with_weights_that_are_not_whole(case):
    matrix = case.kernel + torch.diag(case.ridge)
    solved, effect = torch.linalg.solve(matrix, case.labels), torch.linalg.solve(matrix, case.cross.T)
    for form, new in pairs(case):
        same(form.ridge, case.ridge)
        same(form.solve(case.labels), solved)
        same(form.effect(new), effect)
        same(form.energy(case.labels), (case.labels * solved).sum(0))
        same(form.squared_inverse_trace(0), torch.linalg.inv(matrix).square().sum())


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


@pytest.mark.parametrize("at_a_time", [1 << 22, 30])
@pytest.mark.parametrize("cuts", [(0, 40), (0, 0, 1, 40), (0, 13, 14, 40), tuple(range(41))])
def test_sums_of_any_cut_of_the_rows_are_the_sums(cuts, at_a_time, monkeypatch):
    case = Case((40, 7, 2), 1e-2)
    monkeypatch.setattr(primal, "_NUMBERS_AT_A_TIME", at_a_time)
    order = torch.tensor(RNG.permutation(40))
    total = reduce(add, [case.sums(order[start:stop]) for start, stop in pairwise(cuts)])
    backwards = reduce(lambda right, left: left + right, [case.sums(order[start:stop]) for start, stop in pairwise(cuts)])
    weighted = torch.diag(case.weights)
    expected = Sums(
        40,
        float(case.weights.sum()),
        case.features.T @ weighted @ case.features,
        case.features.T @ weighted @ case.labels,
        (case.labels.T @ weighted @ case.labels).diagonal(),
    )
    for found in (total, backwards, case.sums(slice(None))):
        for field in fields(Sums):
            same(getattr(found, field.name), getattr(expected, field.name))


@pytest.mark.parametrize("n_observations", [None, 17.5])
def test_sums_answer_for_their_rows(n_observations):
    case = Case((40, 7, 2), 1e-2, None, n_observations)
    total = case.sums(slice(0, 11)) + case.sums(slice(11, None))
    equations = NormalEquations.of(total, 1e-2, n_observations)
    same(case.points @ equations.solve(total.cross), case.cross @ case.dual.solve(case.labels))
    same(equations.energy(total), case.dual.energy(case.labels))
    same(equations.posterior(case.points), case.primal.posterior(case.points, case.prior))
    hat = case.dual.effect(case.kernel).diagonal()  # each label's effect on its own fit
    same(equations.leverage(case.features, case.weights), hat)
    assert_array_equal(total.inner, (case.sums(slice(0, 11)) + case.sums(slice(11, None))).inner)  # nothing was overwritten


def test_weights_of_rows_are_rows_that_are_there_so_often():
    case, counts = Case((12, 3, 2), 1e-2), torch.tensor([0, 1, 2, 3] * 3)
    repeated = torch.arange(12).repeat_interleave(counts)
    each = torch.ones(len(repeated), dtype=torch.float64)
    weighted = Sums.of(case.features, case.labels, counts.to(torch.float64))
    plain = Sums.of(case.features[repeated], case.labels[repeated], each)
    assert (weighted.rows, plain.rows) == (12, len(repeated))
    for name in ("weight", "inner", "cross", "squares"):
        same(getattr(weighted, name), getattr(plain, name))


def test_features_that_repeat_each_other_get_a_little_jitter():
    features = torch.ones(5, 2, dtype=torch.float64)
    with pytest.warns(ConditioningWarning, match="regularization=0; 5.0e-12 was added"):
        ridge = PrimalRidge.factorise(features, torch.ones(5, dtype=torch.float64), 0.0)
    assert_allclose(ridge.ridge, 5e-12)
    with pytest.raises(SingularKernelError, match="standardize=True"):
        PrimalRidge.factorise(features * torch.nan, torch.ones(5, dtype=torch.float64), 1.0)
