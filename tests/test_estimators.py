"""PNCRegressor as a scikit-learn user meets it."""

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from unseed import (
    MLP,
    Batching,
    CheapBootstrap,
    GradientDescent,
    HalfSampling,
    InfinitesimalJackknife,
    KernelEngine,
    MonteCarloMean,
    PNCRegressor,
    Sectioning,
    TruthInterval,
)
from unseed._estimators import training
from unseed.engines import _cost as forecast
from unseed.errors import InvalidInputError, NotEnoughMemoryError

X, Y = load_diabetes(return_X_y=True)
X, Y, X_NEW = X[:120], Y[:120], X[120:150]
NETWORK = MLP(bias_scale=1.0, scale_inputs=True)


def regressor(**options):
    """With a given network, which is a hundred times quicker than a chosen one."""
    return PNCRegressor(**({"network": NETWORK, "regularization": 0.01, "random_state": 0} | options))


@pytest.fixture(scope="module")
def fitted():
    return regressor().fit(X, Y)


# Checks of 200 rows in other containers: a choice sees what every other fit sees.
CONTAINERS = {"check_regressors_train", "check_regressor_data_not_an_array"}


@parametrize_with_checks(
    [
        PNCRegressor(),
        PNCRegressor(interval=CheapBootstrap(), network=NETWORK, regularization=1e-6),
        PNCRegressor(interval="infinitesimal_jackknife", network=NETWORK),
        PNCRegressor(engine=KernelEngine(training=GradientDescent(steps=200, rate=0.1)), standardize=True),
    ]
)
def test_scikit_learn_checks(estimator, check):
    if estimator.network == "auto" and check.func.__name__ in CONTAINERS:
        estimator.set_params(network=NETWORK, regularization=1e-3)
    check(estimator)


class TestUse:
    def test_shapes_of_predict_interval_are_those_of_mapie(self, fitted):
        y_hat, intervals = fitted.predict_interval(X_NEW, confidence_level=[0.8, 0.9, 0.95])
        assert y_hat.shape == (30,)
        assert intervals.shape == (30, 2, 3)
        assert (np.diff(intervals[:, 1] - intervals[:, 0], axis=1) > 0).all()
        assert_array_equal(fitted.predict_interval(X_NEW, 0.9)[1][:, :, 0], intervals[:, :, 1])
        two = regressor().fit(X, np.column_stack([Y, Y])).predict_interval(X_NEW)[1]
        assert two.shape == (30, 2, 2, 1)

    def test_kinds_of_interval(self, fitted):
        mean, confidence = fitted.predict_interval(X_NEW)
        _, prediction = fitted.predict_interval(X_NEW, kind="prediction")
        p = fitted.get_prediction(X_NEW)
        assert_array_equal(mean, p.mean)
        assert_array_equal(confidence[:, :, 0], p.conf_int(0.95))
        assert_array_equal(prediction[:, :, 0], p.pred_int(0.95))
        with pytest.raises(InvalidInputError, match="kind='both'"):
            fitted.predict_interval(X_NEW, kind="both")

    @pytest.mark.parametrize("level", [0, 1, 1.5, [0.9, 2.0], "95", [], [[0.9]]])
    def test_levels_outside_zero_one_are_refused(self, fitted, level):
        with pytest.raises(InvalidInputError, match="confidence_level="):
            fitted.predict_interval(X_NEW, level)

    def test_return_std_is_the_standard_error(self, fitted):
        mean, error = fitted.predict(X_NEW, return_std=True)
        p = fitted.get_prediction(X_NEW)
        assert_array_equal(mean, p.mean)
        assert_array_equal(error, p.standard_error)
        assert_allclose(error**2, p.components.data, rtol=1e-12)

    def test_prediction_intervals_hold_new_observations(self):
        X, y = load_diabetes(return_X_y=True)
        covered = []
        for seed in range(5):
            order = np.random.default_rng(seed).permutation(len(y))
            train, test = order[:342], order[342:]
            reg = regressor(random_state=seed, regularization="auto").fit(X[train], y[train])
            _, intervals = reg.predict_interval(X[test], kind="prediction")
            covered.append((intervals[:, 0, 0] <= y[test]) & (y[test] <= intervals[:, 1, 0]))
        share = np.mean(covered)
        # 500 observations: binomial sd 0.0097; four of those
        assert 0.911 <= share <= 0.989

    def test_fitted_attributes_say_what_auto_came_to(self):
        reg = PNCRegressor(random_state=0).fit(X, Y)
        assert reg.interval_ == TruthInterval(4)
        assert isinstance(reg.network_, MLP)
        assert reg.regularization_ > 0
        assert reg.network == "auto"

    def test_verbose_says_what_is_done(self, capsys):
        PNCRegressor(verbose=True, random_state=0).fit(X, Y)
        said = capsys.readouterr().out
        assert "λ = " in said
        assert "120 rows fitted on the cpu" in said
        regressor().fit(X, Y)
        assert capsys.readouterr().out == ""

    def test_clone_pipeline_grid_search(self):
        reg = PNCRegressor(interval=CheapBootstrap(replications=2), network=MLP(depth=2), random_state=0)
        assert clone(reg).get_params() == reg.get_params()
        pipeline = make_pipeline(StandardScaler(), regressor(standardize=True))
        assert cross_val_score(pipeline, X, Y, cv=3).mean() > 0.3
        grid = {"network": [MLP(bias_scale=1.0), MLP(depth=2)], "regularization": [1e-3, 0.1]}
        search = GridSearchCV(PNCRegressor(random_state=0), grid, cv=2).fit(X, Y)
        assert search.best_params_["regularization"] == 0.1
        assert search.best_estimator_.predict_interval(X_NEW)[1].shape == (30, 2, 1)

    def test_seeds(self):
        def width(seed):
            _, intervals = regressor(random_state=seed).fit(X, Y).predict_interval(X_NEW)
            return intervals[:, 1, 0] - intervals[:, 0, 0]

        assert_array_equal(width(1), width(1))
        assert not np.allclose(width(1), width(2))
        assert_array_equal(width(np.random.RandomState(1)), width(np.random.RandomState(1)))

    def test_the_seed_moves_the_interval_but_never_the_prediction(self):
        one, two = (regressor(random_state=s).fit(X, Y).predict(X_NEW) for s in (1, 2))
        assert_allclose(one, two, rtol=1e-12)


class TestNetworks:
    def test_sampled_networks_scatter_around_pnc_by_the_procedural_component(self, fitted):
        p, n = fitted.get_prediction(X_NEW), 4000
        draws = fitted.sample_networks(X_NEW, n, random_state=0)
        assert draws.shape == (n, 30)
        assert (np.abs(draws.mean(axis=0) - p.mean) < 4.5 * np.sqrt(p.components.procedural / n)).all()
        assert (np.abs(draws.var(axis=0) / p.components.procedural - 1) < 4.5 * np.sqrt(2 / n)).all()
        ensembles = fitted.sample_networks(X_NEW, n, members=5, random_state=0)
        assert (np.abs(5 * ensembles.var(axis=0) / p.components.procedural - 1) < 4.5 * np.sqrt(2 / n)).all()
        assert_array_equal(draws, fitted.sample_networks(X_NEW, n, random_state=0))

    def test_sampled_networks_of_several_outputs_and_of_batches(self):
        reg = regressor(interval="batching").fit(X, np.column_stack([Y, 2 * Y]))
        assert reg.sample_networks(X_NEW, 3, random_state=0).shape == (3, 30, 2)
        for wrong in ({"n_networks": 0}, {"members": 0.5}):
            with pytest.raises(InvalidInputError, match="must be a whole number"):
                reg.sample_networks(X_NEW, **wrong)

    def test_mean_squared_error_falls_from_single_network_to_ensemble_to_pnc(self):
        rng = np.random.default_rng(0)
        points, new = rng.uniform(-1, 1, size=(64, 2)), rng.uniform(-1, 1, size=(100, 2))
        reg = regressor(regularization=1e-6).fit(points, np.sin(3 * points[:, 0]))
        truth = np.sin(3 * new[:, 0])
        single, ensemble = (np.mean((reg.sample_networks(new, 200, members=m, random_state=1) - truth) ** 2) for m in (1, 5))
        pnc = np.mean((reg.predict(new) - truth) ** 2)
        assert pnc < ensemble < single

    def test_initial_means(self):
        zero = PNCRegressor(random_state=0, network=NETWORK, regularization=0.01).fit(X, Y)
        drawn = PNCRegressor(random_state=0, network=NETWORK, regularization=0.01, initial_mean=MonteCarloMean(draws=200)).fit(
            X, Y
        )
        difference = drawn.predict(X_NEW) - zero.predict(X_NEW)
        expected = np.sqrt(zero.get_prediction(X_NEW).components.procedural / 200)
        assert 0.3 < np.sqrt(np.mean(difference**2)) / np.sqrt(np.mean(expected**2)) < 3
        exact = PNCRegressor(random_state=0, network=NETWORK, regularization=10.0, initial_mean=lambda X: 100 * X[:, 0] + 7)
        exact.fit(X, 100 * X[:, 0] + 7)
        assert_allclose(exact.predict(X_NEW), 100 * X_NEW[:, 0] + 7, rtol=1e-10)
        with pytest.raises(InvalidInputError, match="initial_mean returned an array of shape"):
            PNCRegressor(initial_mean=lambda X: X).fit(X, Y)
        two = np.column_stack([Y, Y])
        with pytest.raises(InvalidInputError, match=r"must return finite numbers of shape \(120, 2\)"):
            PNCRegressor(initial_mean=lambda X: np.zeros((2, len(X)))).fit(X, two)
        with pytest.raises(InvalidInputError, match="initial_mean='mean'"):
            PNCRegressor(initial_mean="mean").fit(X, Y)

    def test_training_stopped_early_shrinks_towards_the_start(self):
        early = regressor(engine=KernelEngine(training=GradientDescent(steps=1, rate=1e-3))).fit(X, Y)
        assert np.ptp(early.predict(X_NEW)) < 0.05 * np.ptp(regressor().fit(X, Y).predict(X_NEW))


class TestFrames:
    FRAME = pd.DataFrame(X_NEW, columns=[f"f{i}" for i in range(10)], index=[f"row {i}" for i in range(30)])
    TRAIN = pd.DataFrame(X, columns=FRAME.columns)

    def test_pandas_in_and_out(self):
        reg = regressor().set_output(transform="pandas").fit(self.TRAIN, pd.Series(Y, name="progression"))
        mean = reg.predict(self.FRAME)
        assert isinstance(mean, pd.Series)
        assert mean.name == "progression"
        assert list(mean.index) == list(self.FRAME.index)
        _, error = reg.predict(self.FRAME, return_std=True)
        assert isinstance(error, pd.Series)
        assert isinstance(clone(reg).fit(self.TRAIN, Y).predict(self.FRAME), pd.Series)
        assert isinstance(reg.set_output(transform="default").predict(self.FRAME), np.ndarray)
        assert reg.set_output() is reg
        with pytest.raises(InvalidInputError, match="transform='arrow'"):
            reg.set_output(transform="arrow")

    def test_several_outputs_come_back_as_a_frame(self):
        targets = pd.DataFrame({"a": Y, "b": -Y})
        reg = regressor().set_output(transform="pandas").fit(self.TRAIN, targets)
        assert list(reg.predict(self.FRAME).columns) == ["a", "b"]
        assert list(reg.get_prediction(self.FRAME).summary_frame().columns.get_level_values(0).unique()) == ["a", "b"]

    def test_summary_frame_keeps_the_index(self):
        reg = regressor().fit(self.TRAIN, Y)
        assert list(reg.get_prediction(self.FRAME).summary_frame().index) == list(self.FRAME.index)
        assert list(regressor().fit(X, Y).get_prediction(X_NEW.tolist()).summary_frame().index) == list(range(30))

    def test_feature_names_are_checked(self):
        reg = regressor().fit(self.TRAIN, Y)
        assert_array_equal(reg.feature_names_in_, self.TRAIN.columns)
        with pytest.raises(ValueError, match="feature names should match"):
            reg.predict(self.FRAME.rename(columns={"f0": "g0"}))

    def test_without_pandas_the_output_says_what_to_install(self, monkeypatch):
        import sys

        reg = regressor().set_output(transform="pandas").fit(X, Y)
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(ImportError, match=r"unseed\[frames\]"):
            reg.predict(X_NEW)


class TestInput:
    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_missing_and_infinite_values_are_refused(self, fitted, value):
        broken = X.copy()
        broken[3, 2] = value
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            PNCRegressor().fit(broken, Y)
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            PNCRegressor().fit(X, np.where(np.arange(120) == 5, value, Y))
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            fitted.predict(broken)

    @pytest.mark.parametrize(
        "rows", [np.array([["a", "b"]] * 120), [["1.5", 2.0]] * 120, X.astype(str), X.astype(str).astype(object)]
    )
    def test_text_is_refused_and_numbers_that_are_written_as_text_too(self, rows):
        for frame in (rows, pd.DataFrame(rows)):
            with pytest.raises(InvalidInputError, match=r"X holds text, such as '.*': turn numbers .*astype\(float\)"):
                PNCRegressor().fit(frame, Y)
        with pytest.raises(InvalidInputError, match="y holds text, such as"):
            PNCRegressor().fit(X, Y.astype(str))
        with pytest.raises(InvalidInputError, match="y holds text, such as"):
            PNCRegressor().partial_fit(X, Y.astype(str).tolist())
        with pytest.raises(InvalidInputError, match="X holds text, such as"):
            PNCRegressor(network=NETWORK, regularization=0.1).fit(X, Y).predict(X.astype(str))

    @pytest.mark.parametrize("scale", [1e170, 1e-170, 1e-300, 3e290])
    def test_labels_of_any_scale_have_the_same_answers_in_it(self, scale, tmp_path):
        options = {"network": NETWORK, "random_state": 0}
        usual, scaled = (PNCRegressor(**options).fit(X, Y * one) for one in (1.0, scale))
        scaled.save(tmp_path / "model")
        for reg in (scaled, PNCRegressor.load(tmp_path / "model"), PNCRegressor(**options).partial_fit(X, Y * scale)):
            p, q = usual.get_prediction(X_NEW), reg.get_prediction(X_NEW)
            for name in ("mean", "standard_error"):
                assert_allclose(getattr(q, name) / scale, getattr(p, name), rtol=1e-9)
            for name in ("conf_int", "pred_int"):
                assert_allclose(getattr(q, name)() / scale, getattr(p, name)(), rtol=1e-9)
            assert_allclose(q.crps(0.0) / scale, p.crps(0.0), rtol=1e-9)
            assert_allclose(reg.predict(X_NEW, return_std=True)[1] / scale, p.standard_error, rtol=1e-9)
            assert_allclose(reg.leave_one_out().rmse / scale, usual.leave_one_out().rmse, rtol=1e-9)
            assert np.isfinite(q.simultaneous()).all()
        contrast = [reg.get_contrast(X[:2], X[2:4]).conf_int() for reg in (usual, scaled)]
        assert_allclose(contrast[1] / scale, contrast[0], rtol=1e-9)
        two = PNCRegressor(**options).fit(X, np.column_stack([Y, Y * scale])).get_prediction(X_NEW).pred_int()
        assert_allclose(two[:, 1] / scale, two[:, 0], rtol=1e-9)

    def test_features_of_any_scale_have_the_same_answers(self):
        options = {"network": NETWORK, "random_state": 0}
        scales = 10.0 ** np.linspace(-290, 290, X.shape[1])
        usual, scaled = (PNCRegressor(**options).fit(X * one, Y).predict_interval(X_NEW * one)[1] for one in (1.0, scales))
        assert_allclose(scaled, usual, rtol=1e-8)

    def test_constant_columns_and_constant_targets(self):
        flat = np.column_stack([X, np.full(120, 7.0)])
        with_flat = PNCRegressor(random_state=0, network=MLP(bias_scale=1.0)).fit(flat, Y)
        without = PNCRegressor(random_state=0, network=MLP(bias_scale=1.0)).fit(X, Y)
        assert_allclose(with_flat.predict(flat), without.predict(X), rtol=1e-9)
        constant = PNCRegressor(random_state=0).fit(X, np.full(120, 3.0))
        assert_allclose(constant.predict(X_NEW), 3.0)
        assert_allclose(constant.predict_interval(X_NEW)[1], 3.0)  # 120 of 120 were 3: another one is so with 120 / 121

    @pytest.mark.parametrize("n", [2, 5, 18])
    def test_few_equal_labels_promise_nothing_of_the_next(self, n):
        few = PNCRegressor(random_state=0).fit(X[:n], np.full(n, 0.1)).get_prediction(X_NEW)
        assert_allclose(few.mean, 0.1)
        for bounds in (few.conf_int(), few.pred_int()):
            assert_array_equal(bounds, np.tile([-np.inf, np.inf], (len(X_NEW), 1)))
        enough = PNCRegressor(random_state=0).fit(X[:19], np.full(19, 0.1)).get_prediction(X_NEW)
        assert_array_equal(enough.conf_int(), np.full((len(X_NEW), 2), 0.1))
        both = PNCRegressor(random_state=0).fit(X[:n], np.column_stack([Y[:n], np.full(n, 3.0)])).get_prediction(X_NEW)
        assert np.isinf(both.standard_error[:, 1]).all()
        assert n == 2 or np.isfinite(both.standard_error[:, 0]).all()

    def test_targets_without_features_that_vary(self):
        only_flat = PNCRegressor(random_state=0).fit(np.ones((20, 2)), np.arange(20.0))
        assert_allclose(only_flat.predict(np.ones((3, 2))), 9.5, atol=1e-4)

    def test_one_row_is_refused_and_two_are_enough(self):
        for interval in ("auto", "batching", "half_sampling", "cheap_bootstrap", "infinitesimal_jackknife"):
            with pytest.raises(InvalidInputError, match="n_samples=1"):
                PNCRegressor(interval=interval).fit(X[:1], Y[:1])
        two = PNCRegressor(random_state=0).fit(X[:2], Y[:2]).get_prediction(X_NEW)
        assert np.isfinite(two.mean).all()  # and of the truth two rows say nothing: no end, and no NaN
        for bounds in (two.conf_int(), two.pred_int(), two.simultaneous()):
            assert_array_equal(bounds, np.tile([-np.inf, np.inf], (len(X_NEW), 1)))

    @pytest.mark.parametrize("interval", ["auto", "truth", "sectioning"])
    def test_three_rows_are_enough_for_an_interval_with_ends(self, interval):
        three = PNCRegressor(interval=interval, random_state=0).fit(X[:3], Y[:3])
        assert three.interval_.batches == 3
        assert np.isfinite(three.get_prediction(X_NEW).conf_int()).all()

    def test_duplicate_rows_count_as_rows(self):
        twice = PNCRegressor(
            random_state=0, interval="infinitesimal_jackknife", network=NETWORK, regularization=0.01, standardize=False
        )
        once = clone(twice)
        assert_allclose(twice.fit(np.tile(X, (2, 1)), np.tile(Y, 2)).predict(X_NEW), once.fit(X, Y).predict(X_NEW), rtol=1e-7)
        tiny = PNCRegressor(random_state=0, network=NETWORK, regularization=1e-10).fit(np.tile(X, (2, 1)), np.tile(Y, 2))
        assert np.isfinite(tiny.predict_interval(X_NEW)[1]).all()

    def test_integers_and_single_precision(self):
        integers = np.arange(60).reshape(20, 3)
        target = np.arange(20)
        reference = regressor().fit(integers.astype(float), target.astype(float)).predict(integers.astype(float))
        assert_allclose(regressor().fit(integers, target).predict(integers), reference, rtol=1e-12)
        single = regressor().fit(X.astype(np.float32), Y.astype(np.float32))
        double = regressor().fit(X, Y)
        assert single.predict(X_NEW.astype(np.float32)).dtype == np.float64
        assert_allclose(single.predict(X_NEW.astype(np.float32)), double.predict(X_NEW), rtol=1e-4)

    def test_column_targets_keep_their_shape(self):
        reg = regressor().fit(X, Y[:, None])
        assert reg.predict(X_NEW).shape == (30, 1)
        assert_allclose(reg.predict(X_NEW)[:, 0], regressor().fit(X, Y).predict(X_NEW))

    @pytest.mark.parametrize(("scale", "make"), [(1e6, PNCRegressor), (1e-6, regressor)])
    def test_scales_of_features_do_not_matter(self, scale, make):
        plain = make(random_state=0).fit(X, Y).predict_interval(X_NEW)[1]
        assert_allclose(make(random_state=0).fit(X * scale, Y).predict_interval(X_NEW * scale)[1], plain, rtol=1e-6)

    def test_unstandardised_extremes_are_finite_or_explained(self):
        for scale in (1e6, 1e-6):
            reg = PNCRegressor(random_state=0, standardize=False).fit(X * scale, Y)
            assert np.isfinite(reg.predict_interval(X_NEW * scale)[1]).all()

    def test_initial_mean_sees_the_rows_themselves(self):
        codes = np.random.default_rng(9).integers(0, 5, size=(100, 1)).astype(float)
        seen = []
        regressor(regularization=0.1, initial_mean=lambda X: seen.append(X) or X[:, 0]).fit(codes, codes[:, 0])
        assert all(np.isin(X, codes).all() for X in seen)

    def test_numbers_that_are_too_large_are_refused(self):
        with pytest.raises(InvalidInputError, match="X has values too large to standardise"):
            PNCRegressor().fit(X * 1e304, Y)
        with pytest.raises(InvalidInputError, match="too large for float64 kernels"):
            regressor().fit(X, Y).predict(X * 1e200)

    def test_a_failed_fit_leaves_no_half_fitted_estimator(self):
        reg = PNCRegressor(interval=Batching(batches=1000))
        with pytest.raises(InvalidInputError):
            reg.fit(X, Y)
        with pytest.raises(NotFittedError):
            reg.predict(X)

    def test_a_network_that_sees_nothing_predicts_the_mean(self):
        reg = PNCRegressor(random_state=0, network=MLP(input_scale=[0.0] * 10)).fit(X, Y)
        assert_allclose(reg.predict(X_NEW), Y.mean())

    def test_answers_belong_to_the_user(self):
        reg = regressor().fit(X, Y)
        mean, _ = reg.predict_interval(X_NEW)
        mean += 1  # not frozen, and not a view of anything the estimator keeps
        assert_allclose(reg.predict(X_NEW), mean - 1)

    def test_unfitted_and_wrong_number_of_features(self):
        with pytest.raises(NotFittedError):
            PNCRegressor().predict(X)
        with pytest.raises(NotFittedError):
            PNCRegressor().sample_networks(X)
        with pytest.raises(ValueError, match="3 features, but PNCRegressor is expecting 10"):
            regressor().fit(X, Y).predict(X[:, :3])


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"engine": "gp"}, InvalidInputError, "engine='gp' is not known"),
            ({"network": "deep"}, InvalidInputError, "network='deep' is not known"),
            ({"network": lambda: None}, InvalidInputError, "engine='kernel' knows the kernels of MLP"),
            ({"network": torch.nn.Linear(10, 1)}, InvalidInputError, "give a function that makes one"),
            ({"standardize": "no"}, InvalidInputError, "standardize='no' must be True or False"),
            ({"regularization": 0, "interval": "infinitesimal_jackknife"}, InvalidInputError, "leaves no residuals"),
            ({"network": MLP(input_scale=[1.0])}, InvalidInputError, "input_scale has 1 entries for 10 features"),
            ({"regularization": -1.0}, InvalidInputError, "regularization=-1.0 must be"),
            ({"regularization": "small"}, InvalidInputError, "regularization='small' must be"),
            ({"regularization": np.inf}, InvalidInputError, "regularization=inf"),
            ({"interval": "guess"}, InvalidInputError, "interval='guess' is not known"),
            ({"interval": np.arange(3)}, InvalidInputError, "is not known; use 'auto'"),
            ({"network": np.arange(3)}, InvalidInputError, "is not known; use 'auto'"),
            ({"interval": Batching(batches=121)}, InvalidInputError, "batches=121 is more than the n_samples=120 rows"),
            ({"interval": Sectioning(batches=500)}, InvalidInputError, "batches=500"),
            ({"device": "abacus"}, InvalidInputError, "device='abacus' is not known"),
            (
                {
                    "interval": InfinitesimalJackknife(),
                    "engine": KernelEngine(training=GradientDescent(steps=1, rate=0.1)),
                },
                InvalidInputError,
                "needs converged training",
            ),
        ],
        ids=lambda value: str(value)[:40],
    )
    def test_impossible_options_are_refused_before_the_work(self, options, error, message, monkeypatch):
        monkeypatch.setattr(KernelEngine, "fit", lambda *args, **kwargs: pytest.fail("the work had started"))
        with pytest.raises(error, match=message):
            PNCRegressor(**options).fit(X, Y)

    def test_no_regularization_at_all_works_on_distinct_rows(self):
        reg = PNCRegressor(regularization=0, random_state=0, interval="half_sampling").fit(X, Y)
        assert_allclose(reg.predict(X), Y, rtol=1e-6)

    def test_numpy_scalars_are_numbers(self):
        assert regressor(regularization=np.float32(0.5)).fit(X, Y).regularization_ == 0.5

    def test_too_little_memory_is_said_before_it_is_asked_for(self, monkeypatch):
        monkeypatch.setattr(forecast, "available_bytes", lambda device: 20_000)
        monkeypatch.setattr(training, "choose", None)  # nor is a network chosen before
        with pytest.raises(NotEnoughMemoryError, match=r"interval=Batching\(batches="):
            PNCRegressor(interval=HalfSampling(), regularization=0.1).fit(X, Y)


def test_seeds_can_be_left_out_of_a_prediction():
    reg = PNCRegressor(network=MLP(bias_scale=1.0), regularization=0.1, random_state=0).fit(X, Y)
    whole, less = reg.get_prediction(X[:3]), reg.get_prediction(X[:3], seeds=False)
    assert np.isnan(less.components.procedural).all()
    assert np.isfinite(whole.components.procedural).all()
    np.testing.assert_array_equal(less.pred_int(), whole.pred_int())
    with pytest.raises(InvalidInputError, match="seeds=1 must be True or False"):
        reg.get_prediction(X[:3], seeds=1)
