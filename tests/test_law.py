"""The law of a new y: every answer against the others by numerical integration, and against new observations."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, stats

from unseed import MLP, PNCRegressor
from unseed._law import Law
from unseed._results import Calibration, Components, Prediction
from unseed._selection import Choice, Selection
from unseed._selection.choice import Candidate
from unseed._shapes import Smoothed, Student, Sum
from unseed.errors import InvalidInputError

NETWORK = MLP(activation="erf", bias_scale=1.0)
RNG = np.random.default_rng(0)
SIZES = np.sort(np.abs(RNG.standard_t(5, size=80)))
SHAPES = {
    "normal": Student(np.array(np.inf)),
    "t": Student(np.array(3.5)),
    "many degrees": Student(np.array(5e5)),
    "sum": Sum(3.0, np.array([0.6])),
    "sum of little": Sum(1.5, np.array([0.05])),
    "smoothed": Smoothed(SIZES),
    "smoothed, many": Smoothed(np.sort(np.abs(RNG.normal(size=1500)))),
}


def law(shape, centre=1.5, scale=0.7):
    return Law(np.array([centre]), np.array([scale]), (SHAPES[shape],))


def cdf_at(one, t):
    return float(one.cdf(np.array([t]))[0])


@pytest.mark.parametrize("shape", SHAPES)
class TestEveryShape:
    def test_the_density_is_the_derivative_of_the_distribution(self, shape):
        one = law(shape)
        for low, high in ((-1.0, 0.3), (1.0, 1.4), (2.0, 6.0)):
            found, _ = integrate.quad(lambda t: np.exp(one.log_density([t])[0]), low, high, epsabs=1e-11, limit=400)
            assert_allclose(found, cdf_at(one, high) - cdf_at(one, low), atol=1e-9)
        assert_allclose(one.cdf([-1e9]), 0, atol=1e-12)
        assert_allclose(one.cdf([1e9]), 1, atol=1e-12)

    @pytest.mark.parametrize("y", [1.5, 2.0, -1.0, 9.0])
    def test_the_score_is_its_integral(self, shape, y):
        one = law(shape)
        below = integrate.quad(lambda t: cdf_at(one, t) ** 2, -np.inf, y, epsabs=1e-9, limit=400)[0]
        above = integrate.quad(lambda t: (1 - cdf_at(one, t)) ** 2, y, np.inf, epsabs=1e-9, limit=400)[0]
        assert_allclose(one.crps([y])[0], below + above, atol=1e-6)

    def test_quantiles_invert_the_distribution(self, shape):
        one = law(shape)
        for q in (1e-6, 0.01, 0.4, 0.5, 0.77, 0.999):
            assert_allclose(cdf_at(one, one.quantile(q)[0]), q, rtol=1e-8)
        assert_array_equal(one.quantile(0.0), [-np.inf])
        assert_array_equal(one.quantile(1.0), [np.inf])

    def test_draws_are_of_the_law(self, shape):
        drawn = law(shape).sample(4000, np.random.default_rng(3))
        assert drawn.shape == (4000, 1)
        assert stats.kstest(law(shape).cdf(drawn)[:, 0], "uniform").pvalue > 0.001  # fails by chance once in a thousand seeds


class TestShapes:
    def test_without_noise_there_is_one_value(self):
        certain = Law(np.array([2.0]), np.array([0.0]), (Student(np.array(5.0)),))
        assert_array_equal(certain.cdf([1.9]), [0.0])
        assert_array_equal(certain.cdf([2.0]), [1.0])
        assert_array_equal(certain.quantile(0.9), [2.0])
        assert_array_equal(certain.crps([5.0]), [3.0])
        assert_array_equal(certain.log_density([5.0]), [-np.inf])
        assert_array_equal(certain.log_density([2.0]), [np.inf])

    def test_there_is_no_score_where_there_is_no_mean(self):
        assert_array_equal(Law(np.zeros(1), np.ones(1), (Student(np.array(1.0)),)).crps([0.5]), [np.inf])

    def test_one_error_in_m_plus_one_is_beyond_all_that_were_seen(self):
        # The sizes of 60 normal errors, 300 times over: 0.95 of new ones are inside. Its standard deviation is that of the
        # content of an interval between order statistics, √(0.95 · 0.05 / 62) = 0.028, over √300: 0.0016, four of them.
        rng = np.random.default_rng(0)
        for draw, cdf in ((rng.standard_normal, stats.norm.cdf), (lambda n: rng.standard_t(3, n), stats.t(3).cdf)):
            inside = []
            for _ in range(300):
                reach = -float(Smoothed(np.sort(np.abs(draw(60)))).lower_quantile(0.025))
                inside.append(cdf(reach) - cdf(-reach))
            assert abs(np.mean(inside) - 0.95) < 0.0064

    def test_errors_that_are_all_zero_leave_no_width(self):
        assert float(-Smoothed(np.zeros(70)).lower_quantile(0.025)) < 1e-300


def model(rng, n, **options):
    X = rng.normal(size=(n, 2))
    noise = 0.2 * np.exp(0.8 * X[:, 0]) if options.pop("varying", False) else 0.3
    return PNCRegressor(network=NETWORK, random_state=0, **options), X, np.sin(2 * X[:, 0]) + noise * rng.standard_normal(n)


class TestPredictions:
    @pytest.mark.parametrize("options", [{}, {"calibration": "normal"}, {"interval": "sectioning"}, {"interval": "batching"}])
    def test_prediction_intervals_are_quantiles_of_the_law(self, options):
        reg, X, y = model(np.random.default_rng(0), 100, **options)
        p = reg.fit(X, y).get_prediction(X[:7])
        for level in (0.5, 0.8, 0.95, 0.999):
            assert_allclose(p.pred_int(level), p.quantile([(1 - level) / 2, (1 + level) / 2]), rtol=1e-9)
            assert (np.diff(p.pred_int(level)) > 0).all()
        assert_allclose(p.cdf(p.mean), 0.5)
        assert_allclose(p.quantile(0.5), p.mean)
        assert (p.crps(p.mean) < p.crps(p.mean + 1)).all()
        assert p.cdf(np.zeros((3, 7))).shape == (3, 7)

    def test_without_a_calibration_it_is_students(self):
        reg, X, y = model(np.random.default_rng(0), 40)
        p = reg.fit(X, y).get_prediction(X[:5])
        expected = stats.t(38, p.mean, np.sqrt(p.standard_error**2 + p.components.noise))  # one scale is behind both
        assert_allclose(p.quantile(0.9), expected.ppf(0.9), rtol=1e-10)
        assert_allclose(p.log_density(0.3), expected.logpdf(0.3), rtol=1e-10)

    def test_with_a_calibration_it_has_the_shape_of_left_out_errors(self):
        reg, X, y = model(np.random.default_rng(0), 150)
        p, scores = reg.fit(X, y).get_prediction(X[:5]), reg._replicates.scores
        shape = Smoothed(scores[:, 0])
        scale = np.maximum(p.calibration.expected, stats.t.isf(0.025, 148) / -shape.lower_quantile(0.025) * p.standard_error)
        assert_allclose(p.cdf(p.mean + scale), shape.cdf(np.ones(5)), rtol=1e-12)
        reach = np.diff(p.pred_int(0.9))[:, 0] / 2 / scale
        place = np.mean(scores[:, 0] <= reach[0])
        assert abs(place - 0.9) < 0.03  # nearly the conformal quantile: kernels move it by less than their width

    def test_several_outputs_have_laws_of_their_own(self):
        reg, X, y = model(np.random.default_rng(0), 90)
        two = np.column_stack([y, 5 * X[:, 1] + np.random.default_rng(1).standard_t(3, size=90)])
        both = reg.fit(X, two).get_prediction(X[:4])
        alone = [column for column in both.calibration.scores.T]
        assert both.quantile([0.1, 0.9]).shape == (4, 2, 2)
        assert both.sample(6, random_state=0).shape == (6, 4, 2)
        for k, scores in enumerate(alone):
            of_mean = stats.t.isf(0.025, 88) / -Smoothed(scores).lower_quantile(0.025) * both.standard_error
            scale = np.maximum(both.calibration.expected, of_mean)[:, k]
            expected = Law(both.mean[:, k], scale, (Smoothed(scores),))
            for name in ("cdf", "log_density", "crps"):
                assert_allclose(getattr(both, name)(two[:4])[:, k], getattr(expected, name)(two[:4, k]), rtol=1e-12)
        few = PNCRegressor(network=NETWORK, random_state=0).fit(X[:30], two[:30]).get_prediction(X[:4])
        assert few.crps(two[:4]).shape == few.quantile(0.3).shape == (4, 2)

    def test_of_contrasts_and_of_pickles(self):
        reg, X, y = model(np.random.default_rng(0), 100)
        contrast = reg.fit(X, y).get_contrast(X[:3], X[3:6])
        assert contrast.calibration is None
        wide = contrast.quantile(0.9) - contrast.mean
        assert (wide > 1.25 * np.sqrt(contrast.components.noise)).all()
        p = reg.get_prediction(X[:3])
        again = pickle.loads(pickle.dumps(p))
        assert_array_equal(again.crps(0.1), p.crps(0.1))
        assert_array_equal(again.sample(3, random_state=1), p.sample(3, random_state=1))
        assert not np.array_equal(p.sample(3, random_state=1), p.sample(3, random_state=2))

    def test_two_rows_say_nothing_of_a_new_one(self):
        p = PNCRegressor(random_state=0).fit([[0.0], [1.0]], [0.0, 1.0]).get_prediction([[0.5]])
        assert_array_equal(p.quantile([0.1, 0.5, 0.9]), [[-np.inf, p.mean[0], np.inf]])
        assert_array_equal(p.cdf(3.0), [0.5])
        assert_array_equal(p.crps(3.0), [np.inf])
        assert p.log_density(3.0)[0] < -700

    @pytest.mark.parametrize("interval", ["sectioning", "batching", "cheap_bootstrap", "infinitesimal_jackknife", "auto"])
    def test_a_new_observation_is_never_surer_than_the_function(self, interval):
        reg, X, y = model(np.random.default_rng(0), 40, interval=interval)
        p = reg.fit(X, y).get_prediction(X[:9])
        for level in (0.5, 0.95, 0.9999):
            assert (p.pred_int(level)[:, 0] < p.conf_int(level)[:, 0]).all()

    def test_degrees_of_freedom_without_end_are_the_normal_law(self):
        p = Prediction(np.zeros(2), np.array([3.0, 0.0]), np.inf, Components(*np.array([[9.0, 0.0], [0.0, 0.0], [16.0, 0.0]])))
        assert_allclose(p.quantile(0.975), [5 * stats.norm.isf(0.025), 0.0])

    def test_an_interval_for_one_is_no_narrower_than_that_for_the_function(self):
        sizes = np.sort(np.abs(RNG.normal(size=99)))
        components = Components(np.ones(1), np.zeros(1), np.zeros(1))
        p = Prediction(np.zeros(1), np.ones(1), 3.0, components, Calibration(np.full(1, 0.1), sizes))
        assert_allclose(p.pred_int(0.95), p.conf_int(0.95), rtol=1e-12)

    @pytest.mark.parametrize("q", [1.5, -0.1, "half", [[0.1]], np.nan, True])
    def test_quantiles_of_what_is_no_chance_are_refused(self, q):
        reg, X, y = model(np.random.default_rng(0), 40)
        with pytest.raises(InvalidInputError, match=r"q=.* must be numbers from 0 to 1"):
            reg.fit(X, y).get_prediction(X[:2]).quantile(q)

    @pytest.mark.parametrize("y", ["low", np.zeros(3)])
    def test_observations_that_do_not_fit_are_refused(self, y):
        reg, X, labels = model(np.random.default_rng(0), 40)
        with pytest.raises(InvalidInputError, match=r"one for each mean of shape \(2,\)"):
            reg.fit(X, labels).get_prediction(X[:2]).cdf(y)


@pytest.mark.parametrize("varying", [False, True])
def test_places_of_new_observations_in_their_laws_are_uniform(varying):
    # 20 data sets of 150 rows, 100 new observations each, in ten bins. Places of one data set go together, so each bin's share
    # is compared within four standard errors of its mean over the data sets.
    shares = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        reg, X, y = model(rng, 250, varying=varying)
        places = reg.fit(X[:150], y[:150]).get_prediction(X[150:]).cdf(y[150:])
        shares.append(np.histogram(places, bins=10, range=(0, 1))[0] / 100)
    mean, error = np.mean(shares, axis=0), np.std(shares, axis=0, ddof=1) / np.sqrt(20)
    assert (np.abs(mean - 0.1) < 4 * error + 0.01).all()


class TestOptimism:
    """What is chosen by the rows fits their left-out errors better than new ones."""

    def test_each_determined_hyperparameter_counts_in_akaikes_way(self):
        reg, X, y = model(np.random.default_rng(0), 80)
        p = reg.fit(X, y).get_prediction(X[:3])  # λ is chosen, and nothing else
        expected = np.sqrt((p.components.parts["posterior"] + p.components.noise) * 81 / 79)
        assert_allclose(p.calibration.expected, expected, rtol=1e-12)
        given = reg.set_params(regularization=0.01).fit(X, y).get_prediction(X[:3])
        assert_allclose(given.calibration.expected**2, given.components.parts["posterior"] + given.components.noise)

    def test_features_that_do_not_matter_are_not_counted(self):
        one = Candidate(MLP(input_scale=(2.0, 0.5, 0.1)), 0.1, 0.0)
        assert one.n_determined == 2 + 1
        assert Candidate(MLP(input_scale=(2.0, 2.0)), 0.1, 0.0).n_determined == 1 + 1
        assert Choice(one.network, 0.1, Selection((one,))).optimism(60.0, is_given=False) == 63 / 57
        assert Choice(one.network, 0.1, Selection((one,))).optimism(4.0, is_given=False) == 5 / 3

    def test_new_observations_are_inside_although_the_network_was_chosen(self):
        # 8 data sets of 60 rows and 5 features, 300 new observations each: their shares have a standard deviation of 0.03
        # from set to set, so three standard errors of the mean are 0.032.
        shares = []
        for seed in range(8):
            rng = np.random.default_rng(seed)
            X = rng.uniform(-1, 1, size=(360, 5))
            y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.3 * rng.standard_normal(360)
            low, high = PNCRegressor(random_state=0).fit(X[:60], y[:60]).get_prediction(X[60:]).pred_int(0.95).T
            shares.append(np.mean((low <= y[60:]) & (y[60:] <= high)))
        assert abs(np.mean(shares) - 0.95) < 0.032
