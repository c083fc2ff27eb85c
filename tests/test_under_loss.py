"""PNCRegressor under losses that bend: counts, amounts, outliers, quantiles, shares."""

import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.utils.estimator_checks import parametrize_with_checks

from unseed import MLP, Landmarks, LinearizedEngine, PNCRegressor, predict_interval_many
from unseed._responses import ResponsePrediction
from unseed._results import Components, Prediction
from unseed._selection.laplace import LaplaceEvidence, likeliest_dispersion, pack
from unseed._selection.objective import Architecture, ScaleObjective, Terms
from unseed.costs import Job
from unseed.errors import InvalidInputError, NotAvailableError
from unseed.losses import Gamma, Huber, Logistic, Loss, Poisson, Quantile, Squared
from unseed.plots import IntervalDisplay
from unseed.plots._display import combined
from unseed.report import write_report

mpl.use("Agg")
NETWORK = MLP(bias_scale=1.0, activation="erf")
RNG = np.random.default_rng(0)
X, X_NEW = RNG.uniform(-1.5, 1.5, size=(150, 2)), RNG.uniform(-1.5, 1.5, size=(40, 2))


def eta(X):
    return np.sin(2 * X[:, 0]) + 0.5 * X[:, 1]


LABELS = {
    "poisson": RNG.poisson(np.exp(eta(X))).astype(float),
    "gamma": RNG.gamma(4, np.exp(eta(X)) / 4),
    "huber": eta(X) + 0.2 * RNG.standard_t(1.5, size=150),
    "quantile": eta(X) + 0.3 * RNG.normal(size=150),
    "logistic": (RNG.random(150) < 1 / (1 + np.exp(-2 * eta(X)))).astype(float),
}
TRUTH = {
    "poisson": np.exp(eta(X_NEW)),
    "gamma": np.exp(eta(X_NEW)),
    "huber": eta(X_NEW),
    "quantile": eta(X_NEW),
    "logistic": 1 / (1 + np.exp(-2 * eta(X_NEW))),
}
EVERY = pytest.mark.parametrize("loss", LABELS)


def regressor(loss, **options):
    return PNCRegressor(**({"loss": loss, "network": NETWORK, "random_state": 0} | options))


@pytest.fixture(scope="module")
def fitted():
    return {loss: regressor(loss).fit(X, y) for loss, y in LABELS.items()}


# Labels of the checks are any numbers: a loss for these, and options that make it a matter of seconds.
@parametrize_with_checks([PNCRegressor(loss=Huber(), network=NETWORK, regularization=0.1)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


class TestUse:
    @EVERY
    def test_predictions_and_intervals_are_in_the_range_and_near_the_truth(self, fitted, loss):
        reg = fitted[loss]
        mean, bounds = reg.predict_interval(X_NEW, [0.8, 0.99])
        assert bounds.shape == (40, 2, 2)
        assert ((bounds[:, 0] < mean[:, None]) & (mean[:, None] < bounds[:, 1])).all()
        assert_allclose(reg.predict(X_NEW), mean, rtol=1e-9)
        assert loss in ("huber", "quantile") or (bounds > 0).all()
        assert loss != "logistic" or (bounds < 1).all()
        assert np.mean((bounds[:, 0, 1] <= TRUTH[loss]) & (TRUTH[loss] <= bounds[:, 1, 1])) >= 0.9
        assert np.corrcoef(mean, TRUTH[loss])[0, 1] > 0.85

    @EVERY
    def test_standard_errors_are_those_of_the_map_to_first_order(self, fitted, loss):
        reg = fitted[loss]
        found, (mean, error) = reg.get_prediction(X_NEW), reg.predict(X_NEW, return_std=True)
        assert isinstance(found, Prediction)
        assert_allclose(error, found.standard_error, rtol=1e-9)
        assert_allclose(mean, found.mean, rtol=1e-9)
        tiny = found.conf_int(0.001)
        assert_allclose(tiny[:, 1] - tiny[:, 0], 2 * stats.norm.ppf(0.5005) * error, rtol=1e-3)
        assert_allclose(sum(found.components.parts.values()), found.components.data, rtol=1e-12)
        assert (np.diff(found.simultaneous(), axis=1) > np.diff(found.conf_int(), axis=1)).all()

    @pytest.mark.parametrize(
        "method", ["batching", "sectioning", "cheap_bootstrap", "half_sampling", "infinitesimal_jackknife"]
    )
    @pytest.mark.parametrize("loss", ["poisson", "huber"])
    def test_every_interval_method(self, loss, method):
        reg = regressor(loss, interval=method, regularization=0.01).fit(X, LABELS[loss])
        mean, bounds = reg.predict_interval(X_NEW)
        assert ((bounds[:, 0, 0] < mean) & (mean < bounds[:, 1, 0])).all()
        assert loss == "huber" or (bounds > 0).all()
        assert reg.diagnose().findings

    def test_contrasts_are_on_the_scale_of_the_link(self, fitted):
        found = fitted["poisson"].get_contrast(X_NEW[:20], X_NEW[20:])
        logs = np.log(fitted["poisson"].predict(X_NEW))
        assert_allclose(found.mean, logs[:20] - logs[20:], rtol=1e-9)

    def test_networks_of_other_seeds_to_first_order(self, fitted):
        draws = fitted["poisson"].sample_networks(X_NEW[:3], 4000, random_state=0)
        expected = fitted["poisson"].get_prediction(X_NEW[:3]).components.procedural
        assert_allclose(draws.var(axis=0), expected, rtol=0.15)  # five standard deviations of a variance from 4,000 draws: 11 %

    @EVERY
    def test_a_model_comes_back(self, fitted, loss, tmp_path):
        reg = fitted[loss]
        reg.save(tmp_path / "model")
        again = PNCRegressor.load(tmp_path / "model")
        assert_array_equal(again.predict_interval(X_NEW)[1], reg.predict_interval(X_NEW)[1])
        assert str(again.diagnose()) == str(reg.diagnose())
        assert again.loss_ == reg.loss_

    @EVERY
    def test_rows_in_pieces(self, fitted, loss):
        reg = regressor(loss).fit(X[:70], LABELS[loss][:70]).partial_fit(X[70:], LABELS[loss][70:])
        assert_allclose(reg.predict(X_NEW), fitted[loss].predict(X_NEW), rtol=1e-6)

    def test_an_initial_mean_of_ones_own_is_corrected(self):
        reg = regressor("huber", initial_mean=eta, regularization=10.0).fit(X, LABELS["huber"])
        assert_allclose(reg.predict(X_NEW), eta(X_NEW), atol=0.3)
        assert str(reg.diagnose(X_NEW))

    def test_the_choice_of_a_network(self):
        reg = PNCRegressor(loss="poisson", random_state=0).fit(X[:80], LABELS["poisson"][:80])
        assert reg.selection_.best.network == reg.network_
        assert_array_equal(reg.predict(X_NEW), clone_fit(reg).predict(X_NEW))


def clone_fit(reg):
    return PNCRegressor(**reg.get_params()).fit(X[:80], LABELS["poisson"][:80])


class TestNewObservations:
    def test_counts(self, fitted):
        bounds = fitted["poisson"].predict_interval(X_NEW, 0.9, kind="prediction")[1][:, :, 0]
        assert_array_equal(bounds, np.round(bounds))
        new = np.random.default_rng(1).poisson(TRUTH["poisson"], size=(200, 40))
        share = np.mean((bounds[:, 0] <= new) & (new <= bounds[:, 1]))
        assert 0.9 <= share <= 0.995  # whole numbers: at least the level, up to the probability of a count

    def test_quantiles_of_counts_are_those_of_the_mixture(self):
        link = Prediction(np.array([0.7]), np.array([0.4]), np.inf, Components(*np.full((3, 1), 0.16)))
        found = ResponsePrediction.of(link, Poisson(), 1.0).pred_int(0.9)
        draws = np.random.default_rng(1).poisson(np.exp(0.7 + 0.4 * np.random.default_rng(2).standard_normal(400_000)))
        assert_array_equal(found[0], np.quantile(draws, [0.05, 0.95], method="inverted_cdf"))

    def test_amounts(self, fitted):
        bounds = fitted["gamma"].predict_interval(X_NEW, 0.9, kind="prediction")[1][:, :, 0]
        new = np.random.default_rng(1).gamma(4, TRUTH["gamma"] / 4, size=(200, 40))
        assert 0.85 <= np.mean((bounds[:, 0] <= new) & (new <= bounds[:, 1])) <= 0.97
        trained = fitted["gamma"]._replicates.trained
        assert trained.dispersion == pytest.approx(0.25, rel=0.4)  # 150 labels: 1/ν within three standard errors, 13 % each

    def test_with_outliers_they_are_conformal(self, fitted):
        bounds = fitted["huber"].predict_interval(X_NEW, 0.9, kind="prediction")[1][:, :, 0]
        new = TRUTH["huber"] + 0.2 * np.random.default_rng(1).standard_t(1.5, size=(200, 40))
        assert 0.84 <= np.mean((bounds[:, 0] <= new) & (new <= bounds[:, 1])) <= 0.96

    @pytest.mark.parametrize(
        ("loss", "words"), [("quantile", "knows a quantile of y, not its law"), ("logistic", "labels of a few kinds")]
    )
    def test_where_there_is_none_it_says_so(self, fitted, loss, words):
        with pytest.raises(NotAvailableError, match=words):
            fitted[loss].predict_interval(X_NEW, kind="prediction")
        table = fitted[loss].get_prediction(pd.DataFrame(X_NEW, index=np.arange(5, 45))).summary_frame()
        assert table["obs_ci_lower"].isna().all()
        assert table.index[0] == 5


class TestScales:
    def test_huber_and_quantiles_follow_units_of_y(self, fitted):
        for loss in ("huber", "quantile"):
            other = regressor(loss).fit(X, 1000 * LABELS[loss] + 50)
            _, bounds = fitted[loss].predict_interval(X_NEW)
            assert_allclose(other.predict_interval(X_NEW)[1], 1000 * bounds + 50, rtol=1e-4, atol=1e-2)
        assert other.loss_.smoothing == pytest.approx(1000 * fitted["quantile"].loss_.smoothing, rel=1e-3)

    def test_scales_are_those_of_the_noise(self, fitted):
        # That of the median size of errors of t with 1.5 degrees of freedom, and more for what the fit does not know.
        alone = 0.2 * 1.4826 * stats.t(1.5).ppf(0.75)
        assert 0.8 * alone < fitted["huber"].loss_.scale < 1.8 * alone
        assert 0.05 * 0.3 < fitted["quantile"].loss_.smoothing < 0.4 * 0.3
        assert "width over which the quantile is smoothed" in str(fitted["quantile"].diagnose())

    def test_scales_that_are_given_are_kept(self):
        assert regressor(Huber(2.0, scale=0.7)).fit(X, LABELS["huber"]).loss_ == Huber(2.0, scale=0.7)
        assert regressor(Quantile(0.9, smoothing=0.05)).fit(X, LABELS["quantile"]).loss_.smoothing == pytest.approx(0.05)
        given = Quantile(0.9, smoothing=0.05, spread=0.2)
        assert regressor(given).fit(X, LABELS["quantile"]).loss_.spread == pytest.approx(0.2)

    def test_levels_are_in_order_and_hold_their_share(self):
        fits = [regressor(Quantile(level)).fit(X, LABELS["quantile"]) for level in (0.1, 0.5, 0.9)]
        low, middle, high = (reg.predict(X) for reg in fits)
        assert (low < middle).mean() > 0.98
        assert (middle < high).mean() > 0.98
        assert 0.05 <= np.mean(LABELS["quantile"] < low) <= 0.15
        assert 0.85 <= np.mean(LABELS["quantile"] < high) <= 0.95


class TestEvidence:
    CASES = pytest.mark.parametrize(
        ("loss", "y"),
        [
            (Logistic(), "logistic"),
            (Poisson(), "poisson"),
            (Gamma(), "gamma"),
            (Huber(scale=0.3), "huber"),
            (Quantile(0.8, 0.1), "quantile"),
        ],
    )

    @CASES
    def test_its_gradient_is_its_derivative(self, loss, y):
        labels = torch.tensor(LABELS[y])[:60, None]
        weights = torch.tensor(np.random.default_rng(0).uniform(0.5, 2, 60))
        packed = pack(labels, loss.start(labels, weights).expand(60, 1), weights)
        objective = ScaleObjective(
            torch.tensor(X[:60]), packed, Architecture("erf", 1), LaplaceEvidence(loss), Terms(is_prior=True)
        )
        point = objective.start(1.0, 0.1, 2)
        _, slope = objective.score_and_slope(point)
        width = 4e-3 if loss.dispersion is None else 1e-5  # an estimated dispersion moves in steps of 1e-5
        for unit, own in zip(width * np.eye(len(point)), slope, strict=True):
            rise = (objective.score(point + unit) - objective.score(point - unit)) / (2 * width)
            assert own == pytest.approx(rise, rel=3e-3 if isinstance(loss, Huber) else 1e-4, abs=1e-4)

    def test_laplace_is_exact_for_the_square(self):
        """For the square, whose law has the dispersion 2 σ², it is the marginal likelihood at its best amplitude."""
        matrix = torch.tensor(np.exp(-((X[:40, :1] - X[:40, 0]) ** 2)))
        y = torch.tensor(LABELS["quantile"])[:40, None]
        zeros, ones = torch.zeros_like(y), torch.ones(40, dtype=torch.float64)
        found = LaplaceEvidence(Squared())(matrix / 0.3, pack(y, zeros, ones))
        variance = float(y.T @ torch.linalg.solve(matrix / 0.3 + torch.eye(40).double(), y)) / 40
        law = torch.distributions.MultivariateNormal(zeros[:, 0], variance * (matrix / 0.3 + torch.eye(40).double()))
        assert found.value == pytest.approx(float(law.log_prob(y[:, 0])) / 40, abs=1e-6)

    @pytest.mark.parametrize(
        "loss", [Huber(1.0, scale=0.7), Quantile(0.8, smoothing=0.05), Quantile(0.5, smoothing=0.5)], ids=str
    )
    @pytest.mark.parametrize("dispersion", [1e-3, 0.1, 2.0])
    def test_normalisers_are_their_integrals(self, loss, dispersion):
        y, phi = torch.zeros(1, dtype=torch.float64), torch.tensor(dispersion, dtype=torch.float64)
        assert_allclose(loss.log_normaliser(y, phi), Loss.log_normaliser(loss, y, phi), atol=1e-6)

    @pytest.mark.parametrize(("loss", "sample"), [(Gamma(), RNG.gamma(4, 0.5, 4000)), (Poisson(), RNG.poisson(2, 4000))])
    def test_normalisers_make_densities_of_the_laws(self, loss, sample):
        y = torch.tensor(sample.astype(float))
        f, phi = torch.full_like(y, 0.6), torch.tensor(loss.dispersion or 0.25, dtype=torch.float64)
        assert_allclose(-loss.value(f, y) / phi + loss.log_normaliser(y, phi), loss.law(f, phi).log_prob(y), atol=1e-9)

    def test_the_dispersion_is_the_likeliest(self):
        y = torch.tensor(RNG.gamma(4, 0.5, 4000))[:, None]
        weights = torch.ones(4000, dtype=torch.float64)
        cost = float(Gamma().value(Gamma().start(y, weights), y).sum())
        assert likeliest_dispersion(Gamma(), cost, y, weights) == pytest.approx(0.25, rel=0.1)  # four standard errors


class TestWherePeopleLook:
    def test_a_report_and_displays_of_rates(self, fitted, tmp_path):
        rows = np.tile(X_NEW, (9, 1))  # more than are predicted at once
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            write_report(tmp_path / "report.html", fitted["poisson"], rows, np.tile(LABELS["poisson"][:40], 9))
        assert "poisson" in (tmp_path / "report.html").read_text(encoding="utf-8")
        pieces = [fitted["poisson"].get_prediction(rows) for rows in (X_NEW[:10], X_NEW[10:])]
        whole = combined(pieces, np.concatenate)
        assert_allclose(whole.conf_int(), fitted["poisson"].get_prediction(X_NEW).conf_int(), rtol=1e-9)
        assert IntervalDisplay.from_estimator(fitted["poisson"], X_NEW).ax_ is not None
        with pytest.raises(NotAvailableError, match="a forecast is for loss='squared' so far, not for loss='poisson'"):
            Job.of(fitted["poisson"], rows=100, features=2)


class TestRefusals:
    @pytest.mark.parametrize(
        ("loss", "y", "words"),
        [
            ("poisson", [0.5], r"loss='poisson' cannot have the label 0.5 \(row 0 of y\)"),
            ("poisson", [-1.0], r"loss='poisson' cannot have the label -1 \(row 0 of y\)"),
            ("gamma", [0.0], r"loss='gamma' cannot have the label 0 \(row 0 of y\)"),
            ("logistic", [2.0], r"loss='logistic' cannot have the label 2 \(row 0 of y\)"),
        ],
    )
    def test_labels(self, loss, y, words):
        with pytest.raises(InvalidInputError, match=words):
            regressor(loss).fit(X[:30], np.append(y, LABELS[loss][:29]))

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"regularization": 0.0}, "regularization=0 leaves loss='poisson' without a finite fit"),
            ({"engine": LinearizedEngine(width=32)}, "loss='poisson' bends, and so far it takes networks of infinite width"),
            ({"loss": "softmax"}, r"loss='softmax' is for classes; use PNCClassifier\(\)"),
            ({"initial_mean": eta}, "is a function in units of y, and loss='poisson' predicts on another scale"),
            ({"noise": "varying"}, "noise='varying' is for loss='squared'"),
            ({"network": lambda: None}, "MLP"),
            ({"solver": Landmarks()}, "loss='poisson' holds all rows at once so far"),
            ({"interval": "members"}, "interval='members' is not known"),
        ],
    )
    def test_options(self, options, words):
        with pytest.raises(InvalidInputError, match=words):
            regressor(**({"loss": "poisson"} | options)).fit(X, LABELS["poisson"])

    def test_several_columns(self):
        with pytest.raises(InvalidInputError, match="y has 2 columns, and loss='poisson' takes one"):
            regressor("poisson").fit(X, np.stack([LABELS["poisson"]] * 2, axis=1))

    @pytest.mark.parametrize(
        ("make", "words"),
        [
            (lambda: Huber(threshold=0.0), "threshold=0.0 must be a finite number > 0"),
            (lambda: Huber(scale=-1.0), "scale=-1.0 must be"),
            (lambda: Quantile(level=1.0), "level=1.0 must be a number strictly between 0 and 1"),
            (lambda: Quantile(smoothing=0.0), "smoothing=0.0 must be a finite number > 0"),
        ],
    )
    def test_parameters_at_birth(self, make, words):
        with pytest.raises(InvalidInputError, match=words):
            make()

    def test_a_curvature_that_is_not_a_number(self):
        class Broken(Squared):
            name = "broken"

            def curvature(self, f, y):
                return torch.where(f > 1, torch.nan, 2.0)

        with pytest.raises(InvalidInputError, match=r"loss='broken' has the curvature nan at f=1.25"):
            regressor(Broken()).fit(X, LABELS["huber"])

    def test_many_data_sets_at_once_are_for_the_square(self):
        with pytest.raises(TypeError, match="loss"):
            predict_interval_many(X[None], LABELS["poisson"][None], X_NEW[None], loss="poisson")


class TestTheLawOfANewLabel:
    def test_quantiles_and_chances_are_inverse_and_make_the_interval(self, fitted):
        found = fitted["gamma"].get_prediction(X_NEW[:10])
        for q in (0.05, 0.5, 0.9):
            assert_allclose(found.cdf(found.quantile(q)), q, atol=1e-6)
        assert_allclose(found.quantile([0.05, 0.95]), found.pred_int(0.9), rtol=1e-12)

    def test_counts_have_chances_of_their_own(self, fitted):
        found = fitted["poisson"].get_prediction(X_NEW[:10])
        assert (found.cdf(2.0) == found.cdf(2.9)).all()
        assert (found.cdf(2.0) < found.cdf(3.0)).all()
        assert_allclose(found.cdf(200.0), 1.0)
        with pytest.raises(NotAvailableError, match="pred_int, quantile and cdf"):
            found.crps(2.0)

    def test_a_robust_fit_has_the_law_of_its_errors(self, fitted):
        found = fitted["huber"].get_prediction(X_NEW[:10])
        assert_allclose(found.cdf(found.quantile(0.3)), 0.3, atol=1e-6)
        assert np.isfinite(found.crps(0.0)).all()
