"""Networks under a loss that bends: every formula against a slow one, and the square against its closed form."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from unseed import MLP, KernelEngine
from unseed._resampling import Plan, full
from unseed._solvers import DualRidge
from unseed.engines import NewPoints, Probe, Task
from unseed.engines._classes import against_the_rest, slopes_of
from unseed.engines._curved import fit_bent
from unseed.engines._expansions import KernelExpansions
from unseed.errors import InvalidInputError
from unseed.kernels import PopulationKernel, ntk
from unseed.losses import Huber, Logistic, Poisson, Softmax

N = 40
RNG = np.random.default_rng(0)
X, X_NEW = (torch.tensor(RNG.normal(size=(n, 2))) for n in (N, 6))
ETA = torch.sin(2 * X[:, :1]) + X[:, 1:]
NETWORK = MLP(activation="erf", bias_scale=1.0)
WEIGHTS = torch.tensor(RNG.uniform(0.5, 2, N))
UNIFORM = torch.tensor(RNG.random((N, 1)))
ONE_HOT = torch.nn.functional.one_hot(torch.tensor(RNG.integers(0, 3, N)), 3).double()
CASES = {
    "logistic": (Logistic(), (torch.sigmoid(ETA) > UNIFORM).double()),
    "poisson": (Poisson(), torch.tensor(RNG.poisson(ETA.exp().numpy()).astype(float))),
    "huber": (Huber(1.345, scale=0.5), ETA + torch.tensor(RNG.standard_t(2, size=(N, 1)))),
    "softmax": (Softmax(), ONE_HOT),
}
EVERY = pytest.mark.parametrize("name", CASES)


def task(name, weights=WEIGHTS, rows=slice(None), regularization=0.05):
    loss, labels = CASES[name]
    starts = torch.full_like(labels, 0.2) + 0.3 * torch.arange(labels.shape[1])
    groups = torch.stack([labels, starts], 1)[rows]
    return Task(X[rows], groups, NETWORK, regularization, loss=loss, weights=None if weights is None else weights[rows])


def fitted(name, **options):
    asked = task(name, **options)
    return KernelEngine().fit(asked, full(len(asked.X)))


def points(X_new=X_NEW):
    return NewPoints(X_new, is_shared=True)


@EVERY
def test_influence_is_the_derivative_with_respect_to_a_row_s_weight(name):
    found = fitted(name).influence(points()) / N
    for row in (0, 7, 30):
        step = torch.zeros(N, dtype=torch.float64)
        step[row] = 1e-5 * WEIGHTS[row]
        up, down = (fitted(name, weights=WEIGHTS + sign * step).predict(points())[0, :, 0] for sign in (1, -1))
        assert_allclose(found[row], (up - down) / 2e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["logistic", "huber", "poisson"])
def test_influence_is_the_sum_of_residuals_and_effects_of_the_theorem(name):
    """N r_i c_i(x) − Σ_j r_j c_j(x) with c(x) = A⁻¹K(X, x) and r = −u/V, where no curvature is nothing."""
    trained = fitted(name, weights=None)
    loss, y = CASES[name]
    f = trained.outputs
    kernel = torch.tensor(ntk(X.numpy(), network=NETWORK))
    steepness = loss.curvature(f, y)[:, 0] / (2 * 0.05 * N)
    bends = steepness > 0
    inverse = torch.zeros(N, N, dtype=torch.float64)
    inverse[bends.nonzero(), bends.nonzero()[:, 0]] = torch.linalg.inv(
        kernel[bends][:, bends] + torch.diag(1 / steepness[bends])
    )
    effect = inverse @ torch.tensor(ntk(X.numpy(), X_NEW.numpy(), network=NETWORK))
    residual = torch.where(bends[:, None], -loss.gradient(f, y) / loss.curvature(f, y).clamp_min(1e-300), 0.0)
    expected = N * residual * effect - (residual * effect).sum(0)
    if bool(bends.all()):
        assert_allclose(trained.influence(points())[:, :, 0], expected, atol=1e-9)
    else:  # rows beyond Huber's edge pull with a force that does not change: theirs is no residual
        pull = -loss.gradient(f, y) / (2 * 0.05 * N)
        cross = torch.tensor(ntk(X.numpy(), X_NEW.numpy(), network=NETWORK))
        single = pull * (cross - kernel @ effect)
        assert_allclose(trained.influence(points())[:, :, 0], N * single - single.sum(0), atol=1e-9)
        assert_allclose(single[bends], (residual * effect)[bends], atol=1e-9)


@EVERY
def test_posterior_is_that_of_the_curvature(name):
    trained = fitted(name)
    covariance = trained.posterior_covariance(points())
    variance = trained.posterior_variance(points())
    assert_allclose(covariance.diagonal(dim1=1, dim2=2).T, variance, rtol=1e-9)
    if name == "softmax":
        return
    loss, y = CASES[name]
    steepness = (WEIGHTS * loss.curvature(trained.outputs, y)[:, 0]) / (2 * 0.05 * float(WEIGHTS.sum()))
    # The constant that a fit starts from has a flat prior: here one that is wide.
    kernel, cross = (1e6 + torch.tensor(ntk(X.numpy(), other, network=NETWORK)) for other in (None, X_NEW.numpy()))
    unknown = 1e6 + torch.tensor(ntk(X_NEW.numpy(), network=NETWORK))
    unknown = unknown - cross.T @ torch.linalg.solve(torch.eye(N) + steepness[:, None] * kernel, steepness[:, None] * cross)
    assert_allclose(covariance[0], unknown * trained.amplitude, atol=1e-4 * float(covariance[0].max()))
    if loss.dispersion is not None:
        assert float(trained.amplitude) == pytest.approx(1 / (2 * 0.05 * float(WEIGHTS.sum())), rel=1e-12)
    left, right = points(X_NEW[:3]), points(X_NEW[3:])
    expected = (covariance[0, :3, :3] + covariance[0, 3:, 3:] - 2 * covariance[0, :3, 3:]).diagonal()
    assert_allclose(trained.posterior_variance(left, right)[:, 0], expected, atol=1e-10)


def test_posterior_of_log_odds_is_that_of_all_logits_to_first_order():
    trained = fitted("softmax")
    problem = replace(trained.full, kernel=trained.full.kernel + 2e6)
    joint = problem.curvature(trained.values)  # of constants that are hardly penalised
    cross = trained.cross(points()) / 2 + 1e6
    prior = PopulationKernel(NETWORK)
    own = prior.ntk_gram(prior.profile(X_NEW)).diagonal() / 2 + 1e6
    for place in range(len(X_NEW)):
        columns = torch.zeros(3, N, 3, dtype=torch.float64)
        for c in range(3):
            columns[c, :, c] = cross[:, place]
        known = torch.stack([torch.stack([(columns[a] * joint.solve(columns[b])).sum() for b in range(3)]) for a in range(3)])
        covariance = own[place] * torch.eye(3).double() - known
        slope = slopes_of(trained.logits(points())[0, place][None])[0]
        expected = (slope @ covariance @ slope.T).diagonal() / (2 * problem.penalty)
        assert_allclose(trained.posterior_variance(points())[place], expected, rtol=1e-3)


@EVERY
def test_rows_left_out_are_those_of_refits_up_to_the_steps_that_are_left(name):
    weights = torch.ones(N, dtype=torch.float64)
    trained = fitted(name, weights=weights)
    found = trained.leave_out(torch.arange(N))
    loss, labels = CASES[name]
    for row in (2, 11, 25):
        kept = np.arange(N) != row
        without = fitted(name, weights=None, rows=kept, regularization=0.05 * N / (N - 1))
        f = without.predict(points(X[[row]]))[0, 0, 0]
        expected = torch.sigmoid(f) if name == "softmax" else loss.inverse_link(f + trained.full.starts[row])
        before = (labels[row] - trained.means[row] - (labels[row] - expected)).abs().max()
        assert float((found.errors[row] - labels[row] + expected).abs().max()) < 0.1 * float(before)
        variance = without.posterior_variance(points(X[[row]]))[0] / without.amplitude
        assert_allclose(found.variance[row] / trained.amplitude, variance, rtol=0.2)


def test_the_square_is_the_same_as_base_minus_auxiliary_plus_the_mean_of_starts():
    """Centred training, f_θ − f_θᵇ + s̄, by Newton's steps, and Algorithm 1 by its closed form."""
    labels, starts = ETA, 0.3 * X[:, :1]
    asked = Task(X, torch.stack([labels, starts], 1), NETWORK, 0.05)
    counts = np.stack([np.ones(N, np.int64), np.random.default_rng(1).integers(0, 3, N)])
    plan = Plan(counts, (0,))
    closed = KernelEngine().fit(asked, plan)
    newton = fit_bent(KernelEngine(), asked, plan, PopulationKernel(NETWORK), None)
    base, auxiliary = closed.predict(points()).unbind(2)
    assert_allclose(newton.predict(points())[:, :, 0], base - auxiliary, rtol=1e-10, atol=1e-10)
    assert_allclose(newton.predict(points())[:, :, 1], 0.0, atol=0)
    assert_allclose(newton.influence(points()), closed.influence(points()), rtol=1e-9, atol=1e-10)
    variances = [KernelExpansions.posterior_variance(one, points()) / one.amplitude for one in (newton, closed)]
    assert_allclose(*variances, rtol=1e-9)
    assert_allclose(newton.leave_out(torch.arange(N)).errors, closed.leave_out(torch.arange(N)).errors, rtol=1e-9)
    assert_allclose(newton.procedural_variance(points()), closed.procedural_variance(points()), rtol=1e-8)
    assert_allclose(
        newton.noise_variance(), (closed.full_factor.residual(labels - starts) ** 2).sum() / (N - newton.used), rtol=1e-9
    )
    assert isinstance(closed.full_factor, DualRidge)


def test_weights_are_repeated_rows():
    repeats = np.random.default_rng(2).integers(1, 4, N)
    for name in CASES:
        once = fitted(name, weights=torch.tensor(repeats, dtype=torch.float64))
        again = fitted(name, weights=None, rows=np.repeat(np.arange(N), repeats))
        assert_allclose(once.predict(points()), again.predict(points()), atol=1e-9)
        if name in ("logistic", "softmax", "poisson"):
            assert_allclose(once.posterior_variance(points()), again.posterior_variance(points()), rtol=1e-8)


def test_counts_of_a_plan_are_repeated_rows():
    counts = np.random.default_rng(3).integers(0, 3, N)
    for name in CASES:
        resampled = KernelEngine().fit(task(name, weights=None), Plan(np.stack([np.ones(N, np.int64), counts]), (0,)))
        alone = fitted(name, weights=None, rows=np.repeat(np.arange(N), counts))
        assert_allclose(resampled.predict(points(), [1]), alone.predict(points()), atol=1e-9)
        assert resampled.conditions(Probe(points(), float)) is not None


@EVERY
def test_permuting_rows_changes_nothing(name):
    order = np.random.default_rng(4).permutation(N)
    assert_allclose(fitted(name, rows=order).predict(points()), fitted(name).predict(points()), atol=1e-9)


def test_conditions_hold_where_the_fit_has_converged_and_not_where_it_has_not():
    for name in CASES:
        trained = fitted(name)
        assert all(finding.holds for finding in trained.conditions(Probe(points(), float)))
        moved = replace(trained, dual=trained.dual * 1.01)
        assert not next(iter(moved.conditions(Probe(points(), float)))).holds


def test_batches_have_predictions_and_noise_alone():
    plan = Plan(np.stack([np.arange(N) % 2, 1 - np.arange(N) % 2]), (0, 1))
    trained = KernelEngine().fit(task("poisson"), plan)
    assert trained.capabilities == frozenset()
    assert float(trained.noise_variance()) > 0
    with pytest.raises(InvalidInputError, match="on all rows"):
        trained.influence(points())


def test_no_penalty_is_refused():
    with pytest.raises(InvalidInputError, match=r"regularization=0 must be positive for loss='logistic': without a penalty"):
        fitted("logistic", regularization=0.0)


def test_log_odds_against_the_rest():
    logits = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    odds = against_the_rest(logits)
    assert_allclose(torch.sigmoid(odds).detach(), torch.softmax(logits, -1).detach(), rtol=1e-12)
    slopes = torch.stack([torch.autograd.grad(odds[:, c].sum(), logits, retain_graph=True)[0] for c in range(4)], 1)
    assert_allclose(slopes_of(logits.detach()), slopes, atol=1e-12)
