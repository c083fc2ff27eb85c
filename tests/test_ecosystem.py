"""Inside the tools people already use, the numbers are those of the estimator on its own."""

import pickle

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_transformer
from sklearn.datasets import load_diabetes
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.inspection import PartialDependenceDisplay, partial_dependence, permutation_importance
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.utils.validation import has_fit_parameter

from unseed import MLP, CheapBootstrap, PNCRegressor

X, Y = load_diabetes(return_X_y=True)
X, X_NEW, Y, Y_NEW = X[:120], X[120:150], Y[:120], Y[120:150]
NAMES = [f"f{i}" for i in range(10)]
FRAME = pd.DataFrame(X, columns=NAMES)
FRAME_NEW = pd.DataFrame(X_NEW, columns=NAMES, index=[f"row {i}" for i in range(30)])
EXACT = {"rtol": 1e-10, "atol": 0}


def regressor(**options):
    return PNCRegressor(**({"network": MLP(bias_scale=1.0), "regularization": 0.3, "random_state": 0} | options))


def test_clones_and_copies_have_the_same_options_and_say_the_same():
    reg = regressor(interval=CheapBootstrap(replications=3)).fit(X, Y)
    assert clone(reg).get_params() == reg.get_params()
    assert_array_equal(clone(reg).fit(X, Y).predict(X_NEW), reg.predict(X_NEW))
    assert_array_equal(pickle.loads(pickle.dumps(reg)).predict_interval(X_NEW)[1], reg.predict_interval(X_NEW)[1])


class TestPipelines:
    def test_pipeline_is_its_steps_by_hand(self):
        pipeline = make_pipeline(MinMaxScaler(), regressor(standardize=False)).fit(X, Y)
        scaler = MinMaxScaler().fit(X)
        by_hand = regressor(standardize=False).fit(scaler.transform(X), Y)
        assert_allclose(pipeline.predict(X_NEW), by_hand.predict(scaler.transform(X_NEW)), **EXACT)
        mean, error = pipeline.predict(X_NEW, return_std=True)
        assert_allclose(error, by_hand.predict(scaler.transform(X_NEW), return_std=True)[1], **EXACT)
        _, bounds = pipeline[-1].predict_interval(pipeline[:-1].transform(X_NEW))
        assert ((bounds[:, 0, 0] < mean) & (mean < bounds[:, 1, 0])).all()

    def test_columns_of_different_kinds(self):
        frame, new = (data.assign(sex=np.where(data["f1"] > 0, "a", "b")) for data in (FRAME, FRAME_NEW))
        columns = make_column_transformer((StandardScaler(), NAMES), (OneHotEncoder(sparse_output=False), ["sex"]))
        pipeline = make_pipeline(columns, regressor()).fit(frame, Y)
        numbers = StandardScaler().fit(FRAME)

        def by_hand(data):
            kinds = np.column_stack([data["sex"] == "a", data["sex"] == "b"])
            return np.hstack([numbers.transform(data[NAMES]), kinds])

        expected = regressor().fit(by_hand(frame), Y).predict(by_hand(new))
        assert_allclose(pipeline.predict(new), expected, **EXACT)

    def test_transformed_targets(self):
        transformed = TransformedTargetRegressor(regressor(), func=np.log, inverse_func=np.exp).fit(X, Y)
        on_logarithms = regressor().fit(X, np.log(Y))
        assert_allclose(transformed.predict(X_NEW), np.exp(on_logarithms.predict(X_NEW)), **EXACT)
        # Bounds follow a monotone transformation; they are asked of the regressor inside.
        inside = transformed.regressor_.predict_interval(X_NEW)[1]
        assert_allclose(np.exp(inside), np.exp(on_logarithms.predict_interval(X_NEW)[1]), **EXACT)

    def test_pandas_between_the_steps_keeps_names_and_index(self):
        pipeline = make_pipeline(ColumnTransformer([("all", StandardScaler(), NAMES[:4])]), regressor())
        pipeline.set_output(transform="pandas").fit(FRAME, Y)
        assert list(pipeline[-1].feature_names_in_) == [f"all__{name}" for name in NAMES[:4]]
        table = pipeline[-1].get_prediction(pipeline[:-1].transform(FRAME_NEW)).summary_frame()
        assert list(table.index) == list(FRAME_NEW.index)
        assert_allclose(table["mean"], pipeline.predict(FRAME_NEW), **EXACT)
        with pytest.raises(ValueError, match="feature names should match"):
            pipeline[-1].predict(FRAME_NEW[NAMES[:4]])


class TestModelSelection:
    FOLDS = KFold(3)

    def test_cross_validation_is_the_folds_by_hand(self):
        by_hand = [
            r2_score(Y[test], regressor().fit(X[train], Y[train]).predict(X[test])) for train, test in self.FOLDS.split(X)
        ]
        assert_allclose(cross_val_score(regressor(), X, Y, cv=self.FOLDS), by_hand, **EXACT)

    def test_grid_search_finds_what_the_scores_say(self):
        grid = {"regularization": [1e-3, 0.3, 100.0], "network": [MLP(bias_scale=1.0), MLP(activation="erf", depth=2)]}
        search = GridSearchCV(regressor(), grid, cv=self.FOLDS).fit(X, Y)
        scores = [cross_val_score(regressor(**options), X, Y, cv=self.FOLDS).mean() for options in search.cv_results_["params"]]
        assert_allclose(search.cv_results_["mean_test_score"], scores, **EXACT)
        best = search.cv_results_["params"][int(np.argmax(scores))]
        assert search.best_params_ == best
        assert_allclose(search.predict(X_NEW), regressor(**best).fit(X, Y).predict(X_NEW), **EXACT)

    def test_halving_search_ends_with_all_rows_and_one_candidate(self):
        grid = {"pncregressor__regularization": [1e-3, 1e-2, 0.3, 100.0]}
        pipeline = make_pipeline(StandardScaler(), regressor())
        search = HalvingGridSearchCV(pipeline, grid, cv=self.FOLDS, factor=2, min_resources=30, random_state=0).fit(X, Y)
        assert search.n_resources_ == [30, 60, 120]
        assert search.n_candidates_ == [4, 2, 1]
        best = clone(pipeline).set_params(**search.best_params_).fit(X, Y)
        assert_allclose(search.predict(X_NEW), best.predict(X_NEW), **EXACT)
        assert search.best_params_["pncregressor__regularization"] != 100.0


class TestWeights:
    """Rows cannot be weighted; scikit-learn is told so, and nobody's weights are silently ignored."""

    def test_fit_has_none(self):
        assert not has_fit_parameter(PNCRegressor(), "sample_weight")
        for estimator, name in (
            (regressor(), "sample_weight"),
            (make_pipeline(StandardScaler(), regressor()), "pncregressor__sample_weight"),
            (TransformedTargetRegressor(regressor(), func=np.log, inverse_func=np.exp), "sample_weight"),
        ):
            with pytest.raises(TypeError, match="sample_weight"):
                estimator.fit(X, Y, **{name: np.ones(len(Y))})

    def test_they_cannot_be_routed_either(self):
        with config_context(enable_metadata_routing=True), pytest.raises(AttributeError, match="set_fit_request"):
            regressor().set_fit_request(sample_weight=True)

    def test_scores_can_be_weighted(self):
        reg, weights = regressor().fit(X, Y), np.linspace(0, 1, len(Y_NEW))
        expected = r2_score(Y_NEW, reg.predict(X_NEW), sample_weight=weights)
        assert reg.score(X_NEW, Y_NEW, sample_weight=weights) == pytest.approx(expected, rel=1e-12)


class TestInspection:
    def test_partial_dependence_is_an_average_of_predictions(self):
        reg = regressor().fit(FRAME, Y)
        curve = partial_dependence(reg, FRAME, ["f2"], grid_resolution=5, kind="both")
        for value, average, each in zip(curve["grid_values"][0], curve["average"][0], curve["individual"][0].T, strict=True):
            moved = reg.predict(FRAME.assign(f2=value))
            assert_allclose(each, moved, **EXACT)
            assert average == pytest.approx(moved.mean(), rel=1e-10)

    @pytest.mark.parametrize("output", ["default", "pandas"])
    def test_partial_dependence_drawn(self, output):
        mpl.use("Agg")
        reg = regressor().set_output(transform=output).fit(FRAME, Y)
        display = PartialDependenceDisplay.from_estimator(reg, FRAME, ["f2"], grid_resolution=5)
        curve = partial_dependence(reg, FRAME, ["f2"], grid_resolution=5)
        assert_allclose(display.lines_[0, 0].get_xydata(), np.column_stack([curve["grid_values"][0], curve["average"][0]]))
        plt.close("all")

    def test_permutation_importance_sees_what_matters(self):
        rng = np.random.default_rng(0)
        rows = np.column_stack([rng.normal(size=(80, 2)), np.ones(80)])
        reg = regressor(regularization=1e-3).fit(rows, np.sin(rows[:, 1]))
        drops = permutation_importance(reg, rows, np.sin(rows[:, 1]), n_repeats=3, random_state=0)
        assert drops.importances_mean[1] > 1
        assert np.abs(drops.importances[0]).max() < 0.05 * drops.importances_mean[1]
        assert_array_equal(drops.importances[2], 0)  # a constant column has nothing to permute


@pytest.fixture
def polars():
    return pytest.importorskip("polars", reason="polars frames as input: pip install polars")


@pytest.fixture
def train(polars):
    return polars.DataFrame(X, schema=NAMES)


@pytest.fixture
def new(polars):
    return polars.DataFrame(X_NEW, schema=NAMES)


class TestPolars:
    def test_frames_and_series_are_the_same_as_arrays(self, polars, train, new):
        reg, plain = regressor().fit(train, polars.Series("progression", Y)), regressor().fit(X, Y)
        assert list(reg.feature_names_in_) == NAMES
        assert_allclose(reg.predict(new), plain.predict(X_NEW), **EXACT)
        assert_allclose(reg.predict_interval(new)[1], plain.predict_interval(X_NEW)[1], **EXACT)
        table = reg.get_prediction(new).summary_frame()
        assert list(table.index) == list(range(30))
        with pytest.raises(ValueError, match="feature names should match"):
            reg.predict(new.rename({"f0": "g0"}))

    def test_names_of_targets_are_kept(self, polars, train, new):
        targets = polars.DataFrame({"up": Y, "down": -Y})
        table = regressor().fit(train, targets).get_prediction(new).summary_frame()
        assert list(table.columns.get_level_values(0).unique()) == ["up", "down"]
        assert_allclose(table["up", "mean"], -table["down", "mean"], rtol=1e-8)

    @pytest.mark.parametrize(("name", "kept"), [("progression", "progression"), ("", None)])
    def test_a_series_without_a_name_has_none(self, polars, train, new, name, kept):
        reg = regressor().set_output(transform="pandas").fit(train, polars.Series(name, Y))
        assert reg.predict(new).name == kept

    def test_polars_between_the_steps(self, train, new):
        pipeline = make_pipeline(StandardScaler(), regressor()).set_output(transform="polars").fit(train, Y)
        assert list(pipeline[-1].feature_names_in_) == NAMES
        expected = make_pipeline(StandardScaler(), regressor()).fit(X, Y).predict(X_NEW)
        assert_allclose(pipeline.predict(new), expected, **EXACT)


def conformal_quantile(scores, level=0.9):
    """The ⌈(n + 1) · level⌉-th smallest, along the last axis."""
    return np.sort(scores, axis=-1)[..., int(np.ceil((scores.shape[-1] + 1) * level)) - 1]


@pytest.fixture
def conformal():
    return pytest.importorskip("mapie.regression", reason="conformal prediction around an estimator: pip install mapie")


class TestMapie:
    FIT, CALIBRATE = slice(0, 70), slice(70, 120)

    def test_split_conformal_scaled_by_the_standard_error(self, conformal):
        inner = regressor().fit(X[self.FIT], Y[self.FIT])
        outer = conformal.SplitConformalRegressor(inner, 0.9, conformity_score="std_normalized", prefit=True)
        mean, bounds = outer.conformalize(X[self.CALIBRATE], Y[self.CALIBRATE]).predict_interval(X_NEW)
        calibrated, sizes = inner.predict(X[self.CALIBRATE], return_std=True)
        scores = np.abs(Y[self.CALIBRATE] - calibrated) / sizes
        expected, error = inner.predict(X_NEW, return_std=True)
        assert_allclose(mean, expected, **EXACT)
        assert_allclose(bounds[:, 1, 0], expected + conformal_quantile(scores) * error, **EXACT)
        below = (expected - bounds[:, 0, 0]) / error  # one of the scores as well, the same at all points
        assert_allclose(below, below[0], **EXACT)
        assert np.abs(scores - below[0]).min() < 1e-10

    def test_split_conformal_scaled_by_a_second_regressor(self, conformal):
        from mapie.conformity_scores import ResidualNormalisedScore

        inner = regressor().fit(X[self.FIT], Y[self.FIT])
        score = ResidualNormalisedScore(residual_estimator=regressor(), split_size=0.4, random_state=0)
        outer = conformal.SplitConformalRegressor(inner, 0.9, conformity_score=score, prefit=True)
        _, bounds = outer.conformalize(X[self.CALIBRATE], Y[self.CALIBRATE]).predict_interval(X_NEW)
        half_width = (bounds[:, 1, 0] - bounds[:, 0, 0]) / 2
        ratio = half_width / np.exp(score.residual_estimator_.predict(X_NEW))
        assert isinstance(score.residual_estimator_, PNCRegressor)
        assert_allclose(ratio, ratio[0], rtol=1e-8)

    def test_cross_conformal(self, conformal):
        folds = KFold(4)
        outer = conformal.CrossConformalRegressor(regressor(), 0.9, method="base", cv=folds)
        _, bounds = outer.fit_conformalize(X, Y).predict_interval(X_NEW)
        expected = regressor().fit(X, Y).predict(X_NEW)
        quantile = conformal_quantile(np.abs(Y - cross_val_predict(regressor(), X, Y, cv=folds)))
        assert_allclose(bounds[:, 1, 0] - expected, quantile, rtol=1e-8)
        assert_allclose(expected - bounds[:, 0, 0], quantile, rtol=1e-8)

    def test_jackknife_after_bootstrap(self, conformal):
        from mapie.subsample import Subsample

        resamples = Subsample(n_resamplings=20, random_state=0)
        outer = conformal.JackknifeAfterBootstrapRegressor(regressor(), 0.9, resampling=resamples)
        _, bounds = outer.fit_conformalize(X, Y).predict_interval(X_NEW)
        fitted = [(regressor().fit(X[rows], Y[rows]), left_out) for rows, left_out in resamples.split(X)]
        without = np.zeros((len(fitted), len(X)), dtype=bool)  # which networks did not see which row
        for seen, (_, left_out) in zip(without, fitted, strict=True):
            seen[left_out] = True
        weights = without / without.sum(axis=0)
        residuals = np.abs(Y - np.sum(weights * [reg.predict(X) for reg, _ in fitted], axis=0))
        new = np.stack([reg.predict(X_NEW) for reg, _ in fitted], axis=1) @ weights  # (new points, rows)
        assert_allclose(bounds[:, 1, 0], conformal_quantile(new + residuals), **EXACT)
        assert_allclose(bounds[:, 0, 0], -conformal_quantile(residuals - new), **EXACT)
