"""Intervals for the truth: each part against an explicit formula, then what is built of them."""

import pickle
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from unseed import (
    MLP,
    AutoNetwork,
    GradientFlow,
    KernelEngine,
    LinearizedEngine,
    NetworkEngine,
    PNCRegressor,
    Sectioning,
    TruthInterval,
)
from unseed._diagnosis import _outlook
from unseed._law import KnownLaw
from unseed._predictors import PNCQuery
from unseed._random import Streams
from unseed._resampling import batches, full_and
from unseed._results import Components, Prediction
from unseed.engines import NewPoints
from unseed.errors import InvalidInputError
from unseed.intervals import Plan
from unseed.kernels import ntk

RNG = np.random.default_rng(0)
X, X_NEW = RNG.normal(size=(40, 3)), RNG.normal(size=(7, 3))
TRUTH = np.sin(X[:, 0]) + X[:, 1]
Y = TRUTH + 0.1 * RNG.normal(size=40)
NETWORK = MLP(activation="erf", bias_scale=1.0)
OPTIONS = {"network": NETWORK, "regularization": 1e-3, "standardize": False, "random_state": 0}


def fitted(**options):
    return PNCRegressor(**{**OPTIONS, **options}).fit(X, Y)


def explicit_posterior(points):
    K, k = ntk(X, network=NETWORK), ntk(points, X, network=NETWORK)
    inverse = np.linalg.inv(K + 1e-3 * 40 * np.eye(40))
    return Y @ inverse @ Y / 40 * (ntk(points, network=NETWORK) - k @ inverse @ k.T)


def test_auto_is_the_interval_for_the_truth_where_training_converges():
    assert fitted().interval_ == TruthInterval(batches=4)
    assert PNCRegressor(interval="truth", **OPTIONS).fit(X, Y).interval_ == TruthInterval(batches=4)
    stopped = PNCRegressor(engine=KernelEngine(training=GradientFlow(time=10.0)), **OPTIONS).fit(X, Y)
    assert type(stopped.interval_).__name__ == "Sectioning"
    assert PNCRegressor(**OPTIONS).fit(X[:3], Y[:3]).interval_.batches == 3


def test_early_stopping_has_no_posterior():
    engine = KernelEngine(training=GradientFlow(time=10.0))
    with pytest.raises(InvalidInputError, match="use interval='sectioning'"):
        PNCRegressor(interval="truth", engine=engine, **OPTIONS).fit(X, Y)
    for option in ({"calibration": "conformal"}, {"noise": "varying"}):
        with pytest.raises(InvalidInputError, match="needs converged training"):
            PNCRegressor(engine=engine, **option, **OPTIONS).fit(X, Y)
        with pytest.raises(InvalidInputError, match="needs a network on all rows"):
            PNCRegressor(interval="batching", **option, **OPTIONS).fit(X, Y)
        with pytest.raises(InvalidInputError, match="needs at least 32 rows, and X has 20"):
            PNCRegressor(**option, **OPTIONS).fit(X[:20], Y[:20])


def test_parts_add_up_and_the_posterior_is_explicit():
    prediction = fitted().get_prediction(X_NEW)
    parts = prediction.components.parts
    assert set(parts) == {"sampling", "posterior", "misfit", "rival"}
    assert_allclose(parts["posterior"], np.diag(explicit_posterior(X_NEW)), rtol=1e-9)
    assert_allclose(sum(parts.values()), prediction.standard_error**2, rtol=1e-12)
    assert_allclose(prediction.components.data, prediction.standard_error**2, rtol=1e-12)
    assert_allclose(parts["rival"], 0)


def test_sampling_part_is_that_of_sectioning():
    sectioning = fitted(interval="sectioning").get_prediction(X_NEW)
    truth = fitted().get_prediction(X_NEW)
    assert_allclose(truth.components.parts["sampling"], sectioning.standard_error**2, rtol=1e-12)
    assert_allclose(truth.mean, sectioning.mean, rtol=1e-12)


def universal(points, other=None):
    """Posterior with a mean that is not known at all, by its own linear system: of f(x), or of f(x) − f(x')."""
    rows, labels = (X - X.mean(axis=0)) / X.std(axis=0), (Y - Y.mean()) / Y.std()
    points, other = ((at - X.mean(axis=0)) / X.std(axis=0) if at is not None else None for at in (points, other))
    A = ntk(rows, network=NETWORK) + 1e-3 * 40 * np.eye(40)
    system = np.block([[A, np.ones((40, 1))], [np.ones((1, 40)), np.zeros((1, 1))]])

    def between(left, right):
        known = [np.vstack([ntk(rows, at, network=NETWORK), np.ones(len(at))]) for at in (left, right)]
        return np.diag(ntk(left, right, network=NETWORK) - known[0].T @ np.linalg.solve(system, known[1]))

    amplitude = labels @ np.linalg.solve(A, labels) / 39 * Y.var()
    if other is None:
        return amplitude * between(points, points)
    return amplitude * (between(points, points) + between(other, other) - 2 * between(points, other))


class TestMeanThatWasTakenOff:
    def test_it_is_as_uncertain_as_one_that_is_not_known_at_all(self):
        reg = fitted(standardize=True)
        parts = reg.get_prediction(X_NEW).components.parts
        assert_allclose(parts["posterior"], universal(X_NEW), rtol=1e-10)
        contrast = reg.get_contrast(X_NEW[:3], X_NEW[3:6]).components.parts
        assert_allclose(contrast["posterior"], universal(X_NEW[:3], X_NEW[3:6]), rtol=1e-9)

    def test_finite_networks_and_anchors_know_of_it(self):
        reg = fitted(standardize=True, regularization=1.0)
        networks, points = reg._replicates, NewPoints(reg._replicates.inputs(X_NEW))
        expected = networks.trained.mean_variance(points)
        assert (expected > 0).all()
        most = reg.compress(anchors=39)._replicates.trained
        assert_allclose(most.mean_variance(points), expected, rtol=0.01)
        few = pickle.loads(pickle.dumps(reg.compress(anchors=25)))._replicates.trained
        assert_allclose(few.mean_variance(points), expected, rtol=0.2)
        wide = fitted(standardize=True, regularization=1.0, engine=LinearizedEngine(width=4096))._replicates.trained
        assert_allclose(wide.mean_variance(points), expected, rtol=0.3)
        two = np.column_stack([Y, 3 * Y[::-1]])
        both = PNCRegressor(**OPTIONS | {"engine": LinearizedEngine(width=64), "standardize": True}).fit(X, two)._replicates
        alone = PNCRegressor(**OPTIONS | {"engine": LinearizedEngine(width=64), "standardize": True}).fit(X, Y)._replicates
        assert both.trained.mean_variance(points).shape == (7, 2)
        assert alone.trained.mean_variance(points, points).abs().max() < 1e-20

    def test_of_noise_alone_the_interval_is_that_of_a_mean(self):
        reg = PNCRegressor(network=NETWORK, regularization=1e8, random_state=0).fit(X, Y)
        expected = Y.std(ddof=1) / np.sqrt(40)
        found = np.sqrt(reg.get_prediction(X_NEW).components.parts["posterior"])
        assert_allclose(found, expected, rtol=1e-6)
        assert_allclose(np.sqrt(reg.get_prediction(X_NEW).components.noise), Y.std(ddof=1), rtol=1e-6)


def test_pure_noise_is_found_to_be_nothing_else_and_a_mean():
    # 60 data sets; 7 or more finds at 0.05 have a chance of 0.03. With the mean of a constant's interval width 1.
    found, widths = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        inputs, noise = rng.normal(size=(60, 10)), rng.normal(size=60)
        reg = PNCRegressor(network=NETWORK, random_state=0).fit(inputs, noise)
        replicates = reg._replicates
        found.append([replicates.misfit.mean_square[0] > 0, replicates.noise.shapes != (None,)])
        widths.append(reg.get_prediction(inputs[:20] + 0.5).standard_error.mean() / noise.std(ddof=1) * np.sqrt(60))
    assert (np.sum(found, axis=0) <= 6).all()
    assert 0.95 < np.median(widths) < 1.3


def test_left_out_errors_are_refits():
    left_out = fitted()._replicates.left_out
    for i in (0, 11, 39):
        others = np.arange(40) != i
        K = ntk(X[others], network=NETWORK) + 1e-3 * 40 * np.eye(39)
        k = ntk(X[[i]], X[others], network=NETWORK)
        assert_allclose(left_out.errors[i, 0], Y[i] - (k @ np.linalg.solve(K, Y[others])).item(), rtol=1e-9)
        amplitude = Y @ np.linalg.solve(ntk(X, network=NETWORK) + 1e-3 * 40 * np.eye(40), Y) / 40
        variance = amplitude * (ntk(X[[i]], network=NETWORK) - k @ np.linalg.solve(K, k.T)).item()
        assert_allclose(left_out.variance[i, 0], variance, rtol=1e-8)


def test_finite_networks_have_the_posterior_of_their_own_kernel():
    kernel = fitted().get_prediction(X_NEW).components.parts["posterior"]
    linear = fitted(engine=LinearizedEngine(width=4096)).get_prediction(X_NEW).components.parts["posterior"]
    trained = fitted(engine=NetworkEngine(width=4096)).get_prediction(X_NEW).components.parts["posterior"]
    assert_allclose(linear, kernel, rtol=0.3)
    assert_allclose(trained, kernel, rtol=0.3)
    contrast = fitted(engine=LinearizedEngine(width=4096)).get_contrast(X_NEW[:3], X_NEW[3:6])
    assert_allclose(contrast.components.parts["posterior"], explicit_contrast(), rtol=0.4)


def explicit_contrast():
    covariance = explicit_posterior(X_NEW[:6])
    return np.array([covariance[i, i] + covariance[i + 3, i + 3] - 2 * covariance[i, i + 3] for i in range(3)])


class TestContrasts:
    def test_posterior_of_a_difference_is_explicit(self):
        contrast = fitted().get_contrast(X_NEW[:3], X_NEW[3:6])
        assert_allclose(contrast.components.parts["posterior"], explicit_contrast(), rtol=1e-8)
        single = fitted().get_prediction(X_NEW[:6])
        assert_allclose(contrast.mean, single.mean[:3] - single.mean[3:], rtol=1e-12)
        assert_allclose(contrast.components.noise, single.components.noise[:3] + single.components.noise[3:])

    def test_close_points_differ_by_little(self):
        prediction, contrast = fitted().get_prediction(X_NEW), fitted().get_contrast(X_NEW, X_NEW + 1e-4)
        assert (contrast.standard_error < 0.01 * prediction.standard_error).all()

    @pytest.mark.parametrize("interval", ["batching", "cheap_bootstrap", "half_sampling", "infinitesimal_jackknife"])
    def test_every_method_has_them(self, interval):
        reg = fitted(interval=interval)
        assert_allclose(reg.get_contrast(X_NEW, X_NEW).standard_error, 0, atol=1e-12)
        assert (reg.get_contrast(X_NEW[:3], X_NEW[3:6]).standard_error > 0).all()

    def test_rows_must_match(self):
        with pytest.raises(InvalidInputError, match="X has 2 rows and X_other has 3"):
            fitted().get_contrast(X_NEW[:2], X_NEW[:3])


class TestSimultaneous:
    def test_bands_are_between_pointwise_and_bonferroni(self):
        prediction = fitted().get_prediction(X_NEW)
        z, bonferroni = stats.t.isf([0.025, 0.025 / 7], 38)
        factor = np.diff(prediction.simultaneous(0.95))[:, 0] / (2 * prediction.standard_error)
        assert_allclose(factor, factor[0])
        assert z < factor[0] < bonferroni

    def test_quantile_of_the_largest_is_exact_for_independent_and_for_equal_errors(self):
        class Law:
            def __init__(self, correlation):
                self._correlation = correlation

            def covariance(self):
                return self._correlation[None]

        components = Components(np.ones(5), np.zeros(5), np.zeros(5))
        for correlation, expected in ((np.eye(5), stats.norm.isf((1 - 0.95 ** (1 / 5)) / 2)), (np.ones((5, 5)), 1.95996)):
            band = Prediction(np.zeros(5), np.ones(5), np.inf, components, joint_law=Law(correlation)).simultaneous(0.95)
            # 20,000 draws: standard error of the quantile √(0.05 · 0.95 / 20,000) / density, about 0.015
            assert_allclose(band[:, 1], expected, atol=0.06)

    def test_never_narrower_than_pointwise_and_bonferroni_at_extreme_levels(self):
        together = fitted().get_prediction(np.repeat(X_NEW[:1], 5, axis=0) + 1e-3 * RNG.normal(size=(5, 3)))
        for level in (0.5, 0.95, 0.999, 0.99999):
            assert (np.diff(together.simultaneous(level)) >= np.diff(together.conf_int(level)) * (1 - 1e-12)).all()
        bound = stats.t.isf(0.5e-5 / 5, 38) * together.standard_error
        assert_allclose(together.simultaneous(0.99999)[:, 1] - together.mean, bound, rtol=1e-6)

    def test_few_degrees_of_freedom_are_those_of_all_points_together(self):
        components = Components(np.ones(5), np.zeros(5), np.zeros(5))
        law = KnownLaw(np.eye(5)[None])
        band = Prediction(np.zeros(5), np.ones(5), 3.0, components, joint_law=law).simultaneous(0.95)
        generator = np.random.default_rng(1)
        draws = np.abs(generator.normal(size=(400_000, 5))).max(axis=1) / np.sqrt(generator.chisquare(3, 400_000) / 3)
        # 20,000 draws: √(0.05 · 0.95 / 20,000) / density there (0.024), about 0.065; three of them
        assert_allclose(band[:, 1], np.quantile(draws, 0.95), atol=0.2)

    def test_parts_that_do_not_go_together_widen_the_band(self):
        # Posterior errors that are one and the same, under standard errors twice as large: the rest is independent.
        components = Components(np.full(5, 4.0), np.zeros(5), np.zeros(5))
        band = Prediction(np.zeros(5), np.full(5, 2.0), np.inf, components, joint_law=KnownLaw(np.ones((1, 5, 5))))
        draws = np.random.default_rng(1).normal(size=(200_000, 6))
        largest = np.abs(0.5 * draws[:, :1] + np.sqrt(0.75) * draws[:, 1:]).max(axis=1)
        assert_allclose(band.simultaneous(0.95)[:, 1], 2 * np.quantile(largest, 0.95), atol=0.1)

    def test_other_methods_use_bonferroni(self):
        prediction = fitted(interval="cheap_bootstrap").get_prediction(X_NEW)
        expected = stats.t.isf(0.025 / 7, 4) * prediction.standard_error
        assert_allclose(prediction.simultaneous(0.95)[:, 1] - prediction.mean, expected, rtol=1e-9)

    def test_one_point_needs_no_more_than_pointwise(self):
        prediction = fitted().get_prediction(X_NEW[:1])
        assert_allclose(prediction.simultaneous(0.9), prediction.conf_int(0.9))

    def test_several_outputs_have_bands_of_their_own(self):
        reg = PNCRegressor(**OPTIONS).fit(X, np.column_stack([Y, X[:, 2]]))
        assert reg.get_prediction(X_NEW).simultaneous().shape == (7, 2, 2)

    def test_pickled_predictions_keep_their_bands_and_not_the_model(self):
        prediction = fitted(initial_mean=lambda X: X[:, 1]).get_prediction(X_NEW)
        pickled = pickle.dumps(prediction)
        assert_allclose(pickle.loads(pickled).simultaneous(), prediction.simultaneous())
        assert len(pickled) < 5000


class TestPredictionIntervals:
    def test_new_observations_are_covered(self):
        # 2,000 new observations with heavy tails; sd of the share √(0.95·0.05/2000) = 0.005, of the quantile from 300
        # scores 0.0125: four of their common standard deviation of 0.0135 is 0.054.
        rng = np.random.default_rng(1)
        inputs = rng.normal(size=(2300, 2))
        y = np.sin(2 * inputs[:, 0]) + 0.3 * rng.standard_t(3, size=2300)
        reg = PNCRegressor(network=MLP(activation="erf", bias_scale=1.0), random_state=0).fit(inputs[:300], y[:300])
        for level in (0.8, 0.95):
            low, high = reg.get_prediction(inputs[300:]).pred_int(level).T
            assert abs(np.mean((low <= y[300:]) & (y[300:] <= high)) - level) < 0.054 + (0.03 if level < 0.9 else 0)

    def test_noise_that_varies_makes_intervals_that_vary(self):
        rng = np.random.default_rng(2)
        inputs = rng.uniform(-1, 1, size=(500, 1))
        y = inputs[:, 0] + np.exp(1.5 * inputs[:, 0]) * 0.2 * rng.standard_normal(500)
        options = {"network": NETWORK, "random_state": 0}
        at = np.array([[-0.9], [0.9]])
        varying = PNCRegressor(**options).fit(inputs, y).get_prediction(at)
        assert varying.components.noise[1] > 5 * varying.components.noise[0]
        constant = PNCRegressor(noise="constant", **options).fit(inputs, y).get_prediction(at)
        assert_allclose(constant.components.noise[0], constant.components.noise[1])

    def test_normal_calibration_is_students_law(self):
        prediction = fitted(calibration="normal", noise="constant").get_prediction(X_NEW)
        half = stats.t.isf(0.025, 38) * np.sqrt(prediction.standard_error**2 + prediction.components.noise)
        assert_allclose(prediction.pred_int(0.95)[:, 1] - prediction.mean, half, rtol=1e-9)
        assert prediction.calibration is None

    @pytest.mark.parametrize("interval", ["truth", "sectioning", "cheap_bootstrap", "infinitesimal_jackknife"])
    def test_scores_and_scale_belong_together_for_every_method(self, interval):
        # Interpolation of a rough function: the posterior, not the noise, is what errors are relative to. 400 new points of
        # six data sets at 0.9; quantiles of 80 scores have a standard deviation of 0.034, of six means 0.014: four of those.
        covered = []
        for seed in range(6):
            rng = np.random.default_rng(seed)
            inputs = rng.uniform(-1, 1, size=(480, 3))
            y = np.sin(4 * inputs[:, 0]) * np.cos(4 * inputs[:, 1]) + inputs[:, 2]
            reg = PNCRegressor(network=MLP(), regularization=1e-9, interval=interval, random_state=0).fit(inputs[:80], y[:80])
            low, high = reg.get_prediction(inputs[80:]).pred_int(0.9).T
            covered.append(np.mean((low <= y[80:]) & (y[80:] <= high)))
        assert abs(np.mean(covered) - 0.9) < 0.056

    def test_few_rows_leave_it_to_the_normal_law_unless_asked(self):
        assert fitted().get_prediction(X_NEW).calibration is None
        assert fitted(calibration="conformal").get_prediction(X_NEW).calibration is not None

    @pytest.mark.parametrize("option", ["noise", "calibration"])
    def test_unknown_options_are_refused(self, option):
        with pytest.raises(InvalidInputError, match=f"{option}='loud' is not known"):
            fitted(**{option: "loud"})


@dataclass(frozen=True)
class LeaveOutTenths(Sectioning):
    """As the jackknife does: hardly fewer rows than all."""

    def plan(self, n_rows, streams):
        kept = np.arange(n_rows) % 10 != np.arange(10)[:, None]
        return Plan(np.concatenate([np.ones((1, n_rows)), kept]).astype(np.int64), reference=(0,))


@dataclass(frozen=True)
class OneLeavesOutNothing(Sectioning):
    """Of three replicates two are small, and one has all rows."""

    def plan(self, n_rows, streams):
        counts = np.ones((4, n_rows), dtype=np.int64)
        counts[1, :-3] = counts[2, 3:] = 0
        return Plan(counts, reference=(0,))


class TestDiagnosis:
    def test_missed_structure_is_found(self):
        rng = np.random.default_rng(0)
        inputs = rng.normal(size=(400, 6))
        y = np.sin(4 * inputs).sum(axis=1) + 0.1 * rng.standard_normal(400)
        smooth = PNCRegressor(network=MLP(activation="erf", input_scale=[0.05] * 6), regularization=1e-6, random_state=0)
        named = {finding.name for finding in smooth.fit(inputs, y).diagnose().warnings}
        assert "structure left in the errors, share of them" in named

    def test_a_much_better_network_is_pointed_at(self):
        poor = PNCRegressor(network=MLP(input_scale=[30.0] * 3, bias_scale=0.1), regularization=1e-6, random_state=0).fit(X, Y)
        named = {finding.name: finding for finding in poor.diagnose().findings}
        assert not named["evidence per row that another network has more"].holds
        assert "network='auto'" in str(poor.diagnose())

    def test_far_points_are_found_a_few_at_a_time(self, monkeypatch):
        reg, sizes = fitted(), []
        posterior = PNCQuery.posterior_variance

        def counting(replicates, X):
            sizes.append(len(X))
            return posterior(replicates, X)

        monkeypatch.setattr(PNCQuery, "posterior_variance", counting)
        monkeypatch.setattr("unseed._predictors.scaled._NUMBERS_AT_A_TIME", 4 * len(X))
        far = np.concatenate([X, X[:3] + 100])
        assert reg.diagnose(far).far_points == (len(X), len(X) + 1, len(X) + 2)
        asked = [size for size in sizes if size != len(reg._probe)]  # the probe is asked at once, for other findings
        assert sum(asked) == len(far)
        assert max(asked) <= 4

    def test_far_points_are_flagged(self):
        diagnosis = fitted().diagnose(np.vstack([X[:5], [[30.0, 30.0, 30.0]]]))
        assert diagnosis.far_points == (5,)
        assert "far from the training rows" in str(diagnosis)
        assert fitted().diagnose(X).far_points == ()

    def test_the_learning_curve_is_told(self):
        rng = np.random.default_rng(0)
        inputs = rng.uniform(-1, 1, size=(300, 3))
        y = np.sin(3 * inputs[:, 0]) * inputs[:, 1] + 0.05 * rng.standard_normal(300)
        reg = PNCRegressor(network=MLP(bias_scale=1.0), regularization=1e-5, random_state=0).fit(inputs, y)
        assert "twice the rows would bring about" in reg.diagnose().outlook
        noise = PNCRegressor(network=MLP(bias_scale=1.0), regularization=10.0, random_state=0).fit(inputs, rng.normal(size=300))
        assert "flat to within the noise" in noise.diagnose().outlook

    def test_errors_that_halve_with_four_times_the_rows_fall_like_the_root(self):
        # Fits to a quarter of the rows are wrong by 2 wherever they were not trained, the fit to all rows by 1; no noise.
        plan = full_and(batches(40, 4, Streams(0)).counts)
        replicates = SimpleNamespace(
            plan=plan,
            sizes=plan.sizes.astype(float),
            checked=SimpleNamespace(X=X, y=np.zeros((40, 1)), indices=np.arange(40)),
            predict=lambda points: 2.0 * (plan.counts == 0)[:, :, None],
            noise_at=lambda points: np.zeros((40, 1)),
            left_out=SimpleNamespace(errors=np.ones((40, 1))),
        )
        assert "falls like n^-0.50; twice the rows would bring about 29 % less, four times 50 %" in _outlook(replicates)

    @pytest.mark.parametrize("method", [LeaveOutTenths(), OneLeavesOutNothing()], ids=str)
    def test_replicates_of_nearly_all_rows_tell_of_no_learning_curve(self, method):
        options = {"network": MLP(bias_scale=1.0), "regularization": 1e-3, "random_state": 0}
        assert PNCRegressor(interval=method, **options).fit(X, Y).diagnose().outlook == ""
        assert "Learning curve" in PNCRegressor(interval="sectioning", **options).fit(X, Y).diagnose().outlook

    def test_pure_noise_is_named(self):
        rng = np.random.default_rng(0)
        reg = PNCRegressor(network=NETWORK, regularization=10.0, random_state=0).fit(X, rng.normal(size=40))
        assert "noise, share of the variance of y" in {finding.name for finding in reg.diagnose().warnings}


def test_interval_for_the_truth_covers_a_function_that_regularisation_bends():
    # 20 data sets × 50 points. The network is much too smooth (λ large): what the paper's intervals cover is the bent h*,
    # not the truth; the interval for the truth sees what is left in the errors. Coverage is averaged over data sets whose
    # own coverages have a standard deviation of about 0.05: three standard errors of the mean are 0.035.
    rng = np.random.default_rng(0)
    at = rng.uniform(-2, 2, size=(50, 2))
    truth = np.sin(2 * at[:, 0]) + 0.3 * at[:, 1]
    covered = {"truth": [], "cheap_bootstrap": []}
    for seed in range(20):
        rng = np.random.default_rng(seed + 1)
        inputs = rng.uniform(-2, 2, size=(200, 2))
        y = np.sin(2 * inputs[:, 0]) + 0.3 * inputs[:, 1] + 0.2 * rng.standard_normal(200)
        for interval, results in covered.items():
            reg = PNCRegressor(interval=interval, network=NETWORK, regularization=0.3, random_state=seed).fit(inputs, y)
            low, high = reg.get_prediction(at).conf_int(0.95).T
            results.append(np.mean((low <= truth) & (truth <= high)))
    assert np.mean(covered["truth"]) > 0.95 - 0.035
    assert np.mean(covered["cheap_bootstrap"]) < 0.7


def test_columns_that_are_constant_to_rounding_do_no_harm():
    constant = np.column_stack([X, np.full(40, 0.1)])
    reg = PNCRegressor(network=MLP(bias_scale=1.0), regularization=1e-3, random_state=0).fit(constant, Y)
    moved = constant[:3] + np.array([0, 0, 0, 0.1])
    assert (reg.get_prediction(moved).standard_error < 100 * Y.std()).all()


def test_units_of_outputs_do_not_mix_in_finite_networks():
    reg = PNCRegressor(engine=LinearizedEngine(width=256), **OPTIONS).fit(X, np.column_stack([Y, 1e-6 * Y]))
    first, second = reg.get_prediction(X_NEW).components.parts["posterior"].T
    assert_allclose(second, 1e-12 * first, rtol=0.5)


def test_a_given_mean_is_taken_out_before_anything_is_chosen():
    rng = np.random.default_rng(0)
    inputs = rng.uniform(-1, 1, size=(100, 2))
    y = 100 * inputs[:, 0] + rng.normal(size=100)
    given = PNCRegressor(network=NETWORK, initial_mean=lambda X: 100 * X[:, 0], standardize=False, random_state=0)
    rest = PNCRegressor(network=NETWORK, standardize=False, random_state=0)
    given.fit(inputs, y)
    rest.fit(inputs, y - 100 * inputs[:, 0])
    assert_allclose(given.regularization_, rest.regularization_, rtol=1e-6)


def test_a_given_regularization_has_no_rival():
    assert fitted(network="auto", regularization=10.0)._replicates.rival is None


def test_points_cannot_be_far_from_nothing():
    with pytest.raises(InvalidInputError, match="needs a converged network on all rows"):
        fitted(interval="batching").diagnose(X_NEW)


def test_a_network_chosen_for_convergence_is_refused_where_training_stops():
    engine = KernelEngine(training=GradientFlow(time=10.0))
    with pytest.raises(InvalidInputError, match="is chosen for converged training"):
        fitted(network=AutoNetwork(), engine=engine)


def test_posterior_of_a_big_matrix_is_computed_in_chunks(monkeypatch):
    from unseed._solvers import ridge

    expected = fitted()._replicates.left_out.errors
    monkeypatch.setattr(ridge, "_NUMBERS_AT_A_TIME", 100)
    assert_allclose(fitted()._replicates.left_out.errors, expected, rtol=1e-10)
