"""Newton's steps: the fits of scikit-learn's own solvers, identities between losses, and systems solved by brute force."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.linear_model import GammaRegressor, HuberRegressor, LogisticRegression, PoissonRegressor, QuantileRegressor

from unseed._solvers.curved import Bent, JointCurvature, ScalarCurvature, solve_bent
from unseed._solvers.ridge import DualRidge
from unseed.errors import SingularKernelError
from unseed.losses import Gamma, Huber, Logistic, Poisson, Quantile, Softmax, Squared

RNG = np.random.default_rng(0)
N = 60
X = RNG.normal(size=(N, 3))
ETA = X @ [1.0, -0.5, 0.3]
LINEAR = torch.tensor(X @ X.T)
SMOOTH = torch.exp(-(torch.cdist(torch.tensor(X), torch.tensor(X)) ** 2) / 2)
ZEROS, ONES = torch.zeros(N, 1, dtype=torch.float64), torch.ones(N, dtype=torch.float64)
CLASSES = (RNG.random(N) < 1 / (1 + np.exp(-ETA))).astype(float)
COUNTS = RNG.poisson(np.exp(ETA)).astype(float)
HEAVY = ETA + 0.3 * RNG.standard_t(2, size=N)
EXACTLY = {"fit_intercept": False, "tol": 1e-12, "max_iter": 10_000}


def column(values):
    return torch.tensor(np.asarray(values, dtype=float))[:, None]


def solved(loss, y, penalty, kernel=LINEAR, starts=ZEROS, weights=ONES, **options):
    return solve_bent(Bent(kernel, column(y), starts, weights, penalty, loss), **options)


def coefficients(fit):
    """Of a linear kernel."""
    return X.T @ fit.dual[:, 0].numpy()


class TestScikitLearn:
    """The same features and penalty: Σ ℓ + λN |w|², with their factors."""

    def test_logistic(self):
        theirs = LogisticRegression(C=2.0, **EXACTLY).fit(X, CLASSES).coef_[0]
        assert_allclose(coefficients(solved(Logistic(), CLASSES, 0.25)), theirs, atol=1e-6)

    @pytest.mark.parametrize(
        ("loss", "theirs", "y"), [(Poisson(), PoissonRegressor, COUNTS), (Gamma(), GammaRegressor, COUNTS + 1)]
    )
    def test_rates(self, loss, theirs, y):
        expected = theirs(alpha=0.1, **EXACTLY).fit(X, y).coef_
        assert_allclose(coefficients(solved(loss, y, 0.1 * N / 2)), expected, atol=1e-6)

    def test_huber(self):
        theirs = HuberRegressor(alpha=0.1, epsilon=1.345, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(X, HEAVY)
        ours = solved(Huber(1.345, scale=theirs.scale_), HEAVY, 0.1 * theirs.scale_)
        assert_allclose(coefficients(ours), theirs.coef_, atol=1e-6)

    @pytest.mark.parametrize("level", [0.3, 0.5, 0.8])
    def test_quantile_without_a_penalty_in_the_limit_of_no_smoothing(self, level):
        """A corner of the polyhedron: a penalty that is small enough does not move it."""
        theirs = QuantileRegressor(quantile=level, alpha=0.0, fit_intercept=False).fit(X, HEAVY).coef_
        start = None
        for width in 10.0 ** np.arange(-1, -8, -1):
            fit = solved(Quantile(level, smoothing=width), HEAVY, 1e-3, start=start, steps=500)
            start = fit.dual
        assert_allclose(coefficients(fit), theirs, atol=1e-6)


@pytest.mark.parametrize("kernel", [LINEAR, SMOOTH])
def test_the_square_is_one_ridge(kernel):
    weights = torch.tensor(RNG.uniform(0.5, 2, N))
    fit = solved(Squared(), HEAVY, 0.3, kernel=kernel, weights=weights)
    ridge = DualRidge.factorise(kernel.clone(), weights, 0.3 / float(weights.sum()))
    assert fit.steps == 2  # the second finds nothing to do
    assert_allclose(fit.dual, ridge.solve(column(HEAVY)), rtol=1e-10, atol=1e-10)
    curved = Bent(kernel, column(HEAVY), ZEROS, weights, 0.3, Squared()).curvature(fit.values)
    assert_allclose(curved.solve(column(ETA)), ridge.solve(column(ETA)), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    ("loss", "y"), [(Logistic(), CLASSES), (Poisson(), COUNTS), (Gamma(), COUNTS + 1), (Huber(scale=0.3), HEAVY)]
)
def test_weights_are_repeated_rows(loss, y):
    counts = RNG.integers(1, 4, N)
    rows = np.repeat(np.arange(N), counts)
    starts = column(0.1 * X[:, 0])
    once = solved(loss, y, 0.3, kernel=SMOOTH, starts=starts, weights=torch.tensor(counts, dtype=torch.float64))
    again = Bent(SMOOTH[rows][:, rows], column(y[rows]), starts[rows], torch.ones(len(rows)).double(), 0.3, loss)
    assert_allclose(solve_bent(again).values, once.values[rows], atol=1e-9)


def two_classes(starts=0.3):
    one = Bent(SMOOTH, column(CLASSES), ZEROS + starts, ONES, 0.1, Logistic())
    both = torch.cat([ZEROS - starts / 2, ZEROS + starts / 2], 1)
    return one, Bent(SMOOTH, torch.cat([column(1 - CLASSES), column(CLASSES)], 1), both, ONES, 0.1, Softmax())


def test_softmax_of_two_classes_is_logistic():
    one, two = two_classes()
    single, joint = solve_bent(one), solve_bent(two)
    assert_allclose(joint.values[:, 1] - joint.values[:, 0], single.values[:, 0], atol=1e-8)
    assert two.curvature(joint.values).log_determinant == pytest.approx(one.curvature(single.values).log_determinant, rel=1e-10)
    assert two.cost(joint.dual / two.share, joint.values) == pytest.approx(one.cost(single.dual, single.values), rel=1e-12)


def three_classes():
    labels = torch.nn.functional.one_hot(torch.tensor(RNG.integers(0, 3, N)), 3).double()
    starts = torch.tensor([0.1, -0.4, 0.3], dtype=torch.float64).expand(N, 3)
    return Bent(SMOOTH, labels, starts, torch.tensor(RNG.uniform(0.5, 2, N)), 0.1, Softmax())


def test_the_joint_system_is_that_of_all_classes_at_once():
    problem = three_classes()
    fit = solve_bent(problem)
    joint = problem.curvature(fit.values)
    assert isinstance(joint, JointCurvature)
    p = torch.softmax(problem.starts + fit.values, -1)
    blocks = (problem.weights / 0.2)[:, None, None] * (torch.diag_embed(p) - p[:, :, None] * p[:, None, :])
    weights = torch.zeros(3 * N, 3 * N, dtype=torch.float64)
    for i in range(N):
        weights[i::N, i::N] = blocks[i]
    kernel = torch.block_diag(*[SMOOTH / 2] * 3)
    inverse = weights @ torch.linalg.inv(torch.eye(3 * N, dtype=torch.float64) + kernel @ weights)
    values = torch.tensor(RNG.normal(size=(N, 3)))
    assert_allclose(joint.solve(values).T.flatten(), inverse @ values.T.flatten(), atol=1e-10)
    assert joint.log_determinant == pytest.approx(float(torch.logdet(torch.eye(3 * N).double() + kernel @ weights)), rel=1e-10)
    pull = problem.pull(fit.values)
    assert_allclose(fit.dual, pull / 2, atol=1e-9)
    assert_allclose(fit.dual.sum(1), 0.0, atol=1e-10)


def test_permuting_the_classes_permutes_the_fit():
    problem, order = three_classes(), [2, 0, 1]
    other = Bent(SMOOTH, problem.labels[:, order], problem.starts[:, order], problem.weights, 0.1, Softmax())
    assert_allclose(solve_bent(other).values, solve_bent(problem).values[:, order], atol=1e-10)


@pytest.mark.parametrize(
    ("loss", "y", "penalty"),
    [
        (Logistic(), (ETA > 0).astype(float), 1e-8),  # separable
        (Poisson(), np.where(np.arange(N) == 0, 1e6, 0.0), 1e-3),  # the first step would overflow
        (Huber(scale=1e-3), HEAVY * 1e3, 1e-6),  # no curvature at all at the start
        (Quantile(0.99, smoothing=1e-3), HEAVY, 1e-3),
    ],
)
def test_steps_are_shortened_until_the_objective_falls(loss, y, penalty):
    problem = Bent(SMOOTH, column(y), ZEROS, ONES, penalty, loss)
    fit = solve_bent(problem, steps=300)
    pull = problem.pull(fit.values)
    assert fit.converged
    assert float((fit.dual - pull).abs().max()) < 1e-4 * float(pull.abs().max())


def test_a_fit_that_was_cut_short_says_so_and_goes_on_from_where_it_was():
    brief = solved(Poisson(), COUNTS, 0.1, kernel=SMOOTH, steps=1)
    assert not brief.converged
    whole = solved(Poisson(), COUNTS, 0.1, kernel=SMOOTH)
    again = solved(Poisson(), COUNTS, 0.1, kernel=SMOOTH, start=whole.dual)
    assert whole.converged
    assert again.steps < whole.steps
    assert_allclose(again.values, whole.values, atol=1e-10)


def test_a_kernel_that_overflows_is_named():
    with pytest.raises(SingularKernelError, match="overflows float64"):
        ScalarCurvature.of(SMOOTH * torch.inf, ONES)
