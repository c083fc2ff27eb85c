"""The numbers of a report, against independent computation."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from unseed import (
    MLP,
    DeepEnsembleRegressor,
    MCDropoutRegressor,
    NetworkEngine,
    PNCRegressor,
    SingleNetworkRegressor,
)
from unseed.errors import InvalidInputError
from unseed.intervals import METHODS
from unseed_app.report import features, outputs
from unseed_app.report.content import Report, build
from unseed_app.report.held_out import HeldOut
from unseed_app.report.outputs import LEVELS
from unseed_app.report.page import figure, in_short, payload_of, plain

RNG = np.random.default_rng(0)
NETWORK = MLP(bias_scale=1.0, scale_inputs=True, input_scale=[0.2, 1.0, 0.5, 0.9])
X = RNG.normal(size=(160, 4))
X[:, 3] = RNG.integers(0, 3, size=160)
Y = np.sin(2 * X[:, 1]) + 0.5 * X[:, 2] + 0.2 * X[:, 3] + 0.2 * RNG.normal(size=160)
TRAIN, NEW = slice(0, 100), slice(100, 160)
OPTIONS = {"network": NETWORK, "regularization": 1e-2, "random_state": 0}
REG = PNCRegressor(**OPTIONS).fit(X[TRAIN], Y[TRAIN])
SMALL = {"network": MLP(width=32, bias_scale=1.0), "regularization": 0.1, "random_state": 0}


def report_of(estimator, X=X[NEW], y=Y[NEW], level=0.9, **names) -> Report:
    given = {"feature_names": None, "target_names": None, "row_labels": None} | names
    return build(estimator, HeldOut.of(estimator, X, y, **given), level)


def payload(report):
    """As the page's script reads it; NaN is refused."""
    return json.loads(json.dumps(payload_of(report), default=plain, allow_nan=False))


REPORT = report_of(REG)


class TestAccuracy:
    def test_errors_are_those_of_scikit_learn(self):
        accuracy, predicted = REPORT.outputs[0].accuracy, REG.predict(X[NEW])
        assert accuracy.rmse == pytest.approx(root_mean_squared_error(Y[NEW], predicted), rel=1e-12)
        assert accuracy.mae == pytest.approx(mean_absolute_error(Y[NEW], predicted), rel=1e-12)
        assert accuracy.r_squared == pytest.approx(r2_score(Y[NEW], predicted), rel=1e-12)

    def test_share_inside_and_its_binomial_band(self):
        _, bounds = REG.predict_interval(X[NEW], 0.9, kind="prediction")
        n_inside = int(sum(low <= y <= high for (low, high), y in zip(bounds[..., 0], Y[NEW], strict=True)))
        accuracy = REPORT.outputs[0].accuracy
        exact = stats.binomtest(n_inside, 60).proportion_ci(0.95, method="exact")
        assert (accuracy.n_inside, accuracy.n_rows, accuracy.inside) == (n_inside, 60, n_inside / 60)
        assert (accuracy.inside_low, accuracy.inside_high) == pytest.approx((exact.low, exact.high), rel=1e-9)

    @pytest.mark.parametrize(("shift", "bounds"), [(0.0, (0.025 ** (1 / 60), 1.0)), (1e3, (0.0, 1 - 0.025 ** (1 / 60)))])
    def test_all_or_none_inside(self, shift, bounds):
        accuracy = report_of(REG, y=REG.predict(X[NEW]) + shift).outputs[0].accuracy
        assert (accuracy.inside_low, accuracy.inside_high) == pytest.approx(bounds)

    def test_no_r_squared_where_nothing_varies(self):
        report = report_of(REG, y=np.ones(60))
        assert report.outputs[0].accuracy.r_squared is None
        assert any(sentence.startswith("R²") for sentence in report.unknown)

    def test_calibration_level_by_level(self):
        curve = REPORT.outputs[0].coverage
        _, bounds = REG.predict_interval(X[NEW], list(LEVELS), kind="prediction")
        y = Y[NEW][:, None]
        np.testing.assert_allclose(curve.observed, ((bounds[:, 0] <= y) & (y <= bounds[:, 1])).mean(axis=0))
        for level, low, high in zip(curve.nominal, curve.low, curve.high, strict=True):
            law = stats.binom(60, level)
            assert law.cdf(60 * low - 1) < 0.025 <= law.cdf(60 * low)
            assert law.cdf(60 * high - 1) < 0.975 <= law.cdf(60 * high)

    def test_places_in_the_law_are_counted_in_bins_of_equal_chance(self):
        places = REPORT.outputs[0].places
        expected = np.histogram(REG.get_prediction(X[NEW]).cdf(Y[NEW]), bins=10, range=(0, 1))[0]
        np.testing.assert_array_equal(places.counts, expected)
        law = stats.binom(60, 0.1)
        assert law.cdf(places.low[0] - 1) < 0.025 <= law.cdf(places.low[0])
        assert law.cdf(places.high[0] - 1) < 0.975 <= law.cdf(places.high[0])

    def test_rows_of_the_training_are_judged_by_nobody(self):
        both = np.r_[0:30, 100:160]
        mixed, new = report_of(REG, X[both], Y[both]), report_of(REG, X[100:160], Y[100:160])
        assert mixed.rows.is_seen.sum() == 30
        assert vars(mixed.outputs[0].accuracy) == pytest.approx(vars(new.outputs[0].accuracy))
        np.testing.assert_array_equal(mixed.outputs[0].coverage.observed, new.outputs[0].coverage.observed)
        np.testing.assert_array_equal(mixed.outputs[0].places.counts, new.outputs[0].places.counts)
        assert any(sentence.startswith("30 of the 90 rows were in the training") for sentence in mixed.unknown)
        seen = report_of(REG, X[:30], Y[:30])
        assert seen.outputs[0].accuracy is seen.outputs[0].coverage is seen.outputs[0].places is None
        assert "accuracy" not in " ".join(in_short(seen))


class TestRows:
    def test_intervals_and_sources_are_those_of_the_prediction(self):
        prediction, output = REG.get_prediction(X[NEW]), REPORT.outputs[0]
        np.testing.assert_allclose(output.mean - output.confidence, prediction.conf_int(0.9)[:, 0])
        np.testing.assert_allclose(output.mean + output.prediction, prediction.pred_int(0.9)[:, 1])
        np.testing.assert_allclose(output.seed**2, prediction.components.procedural)
        np.testing.assert_allclose(output.noise**2, prediction.components.noise)
        np.testing.assert_allclose(sum(output.parts.values()), output.standard_error**2)

    def test_far_rows_are_those_of_the_diagnosis(self):
        far = X[NEW].copy()
        far[7] += 20
        assert report_of(REG, far).far_rows == REG.diagnose(far).far_points
        assert 7 in report_of(REG, far).far_rows

    def test_draws_of_other_seeds_are_around_the_prediction(self):
        draws = REG.sample_networks(X[NEW][REPORT.rows_with_seeds], 20, random_state=0)
        expected = draws - REG.predict(X[NEW])[REPORT.rows_with_seeds]
        np.testing.assert_allclose(REPORT.outputs[0].draws, expected.T)

    def test_reasons_are_savings_by_typical_values(self):
        report, errors = REPORT, REG.predict(X[NEW], return_std=True)[1]
        assert set(report.outputs[0].reasons) == set(range(60))
        typical = np.array([sorted(column)[29] for column in X[NEW].T])
        for row, reasons in report.outputs[0].reasons.items():
            saved = []
            for feature in report.shown:
                changed = X[NEW][row : row + 1].copy()
                changed[0, feature] = typical[feature]
                saved.append(1 - REG.predict(changed, return_std=True)[1][0] / errors[row])
            expected = [(j, saved[j]) for j in np.argsort(-np.array(saved), kind="stable")[:3] if saved[j] >= 0.05]
            assert [j for j, _ in reasons] == [j for j, _ in expected]
            np.testing.assert_allclose([share for _, share in reasons], [share for _, share in expected], rtol=5e-3)


class TestFeatures:
    def test_relevance_orders_them_where_the_network_has_one(self):
        assert REPORT.shown.tolist() == [1, 3, 2, 0]
        assert "relevance" in REPORT.order_of_features

    def test_otherwise_the_range_of_the_curve_does(self):
        reg = PNCRegressor(**OPTIONS | {"network": MLP(bias_scale=1.0)}).fit(
            X[TRAIN], 5 * X[TRAIN][:, 2] + 0.1 * X[TRAIN][:, 0]
        )
        report = report_of(reg)
        assert report.shown[0] == 2
        assert "how far each moves" in report.order_of_features

    def test_bands_are_predictions_at_typical_rows(self):
        band = REPORT.outputs[0].bands[0]
        points = np.tile([sorted(column)[29] for column in X[NEW].T], (len(band.values), 1))
        points[:, 1] = band.values
        mean, bounds = REG.predict_interval(points, 0.9)
        np.testing.assert_allclose(band.mean, mean)
        np.testing.assert_allclose(np.stack([band.low, band.high], axis=1), bounds[..., 0])
        assert (band.values[0], band.values[-1]) == (X[NEW][:, 1].min(), X[NEW][:, 1].max())
        assert band.histogram.sum() == 60

    def test_few_values_are_shown_one_by_one(self):
        band = REPORT.outputs[0].bands[1]
        assert band.is_discrete
        assert band.values.tolist() == [0, 1, 2]

    def test_a_constant_feature_is_left_out(self):
        constant = X[NEW].copy()
        constant[:, 1] = 1.0
        assert 1 not in report_of(REG, constant).shown

    def test_many_training_rows_limit_what_is_asked(self):
        reg = PNCRegressor(**OPTIONS).fit(X[TRAIN], Y[TRAIN])
        reg.n_rows_ = 1_000_000
        many = np.tile(X[NEW], (5, 1))
        report = report_of(reg, many, y=None)
        assert len(report.outputs[0].reasons) == 150
        assert any("the 150 least certain rows" in sentence for sentence in report.unknown)


@pytest.mark.parametrize("interval", sorted(METHODS))
def test_every_interval_method(interval):
    report = report_of(PNCRegressor(**OPTIONS, interval=interval).fit(X[TRAIN], Y[TRAIN]))
    payload(report)
    assert report.outputs[0].seed is not None
    assert report.findings
    bias_is_named = any("that bias is not" in sentence for sentence in report.unknown)
    assert bias_is_named != METHODS[interval].uses_posterior
    assert (report.far_rows is None) == (interval == "batching")


@pytest.mark.parametrize(
    ("estimator", "spread", "knows_seed"),
    [
        (DeepEnsembleRegressor(members=2, **SMALL), "members", True),
        (DeepEnsembleRegressor(members=2, interval="sectioning", engine="linearized", **SMALL), "data", True),
        (SingleNetworkRegressor(**SMALL), "data", False),
        (MCDropoutRegressor(steps=20, passes=20, **SMALL), "dropout", False),
    ],
    ids=["members", "resampled ensemble", "single", "dropout"],
)
def test_other_estimators_leave_out_what_they_do_not_know(estimator, spread, knows_seed):
    report = report_of(estimator.fit(X[TRAIN], Y[TRAIN]))
    payload(report)
    assert report.wording.spread == spread
    assert (report.outputs[0].seed is not None) == knows_seed
    assert any(sentence.startswith("What another seed would change") for sentence in report.unknown) != knows_seed
    assert any("has no diagnosis" in sentence for sentence in report.unknown)
    assert report.outputs[0].draws is None


def test_several_outputs_have_each_their_own():
    both = np.column_stack([Y, 3 * X[:, 0]])
    report = report_of(PNCRegressor(**OPTIONS).fit(X[TRAIN], both[TRAIN]), y=both[NEW], target_names=["a", "b"])
    assert [output.name for output in report.outputs] == ["a", "b"]
    assert report.outputs[1].accuracy.rmse != report.outputs[0].accuracy.rmse
    assert report.outputs[1].bands[0].mean.shape == report.outputs[0].bands[0].mean.shape
    assert report.outputs[1].draws.shape == (12, 20)


def test_without_observations_nothing_is_said_of_accuracy():
    report = report_of(REG, y=None)
    assert report.outputs[0].accuracy is None
    assert report.outputs[0].coverage is None
    assert "no observed values were given" in report.unknown[0]


def test_rows_that_are_no_lines_of_features():
    images = X[:, :, None]
    factory = lambda: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))  # noqa: E731
    reg = PNCRegressor(engine="linearized", network=factory, regularization=0.1, random_state=0).fit(images[TRAIN], Y[TRAIN])
    report = report_of(reg, images[NEW])
    payload(report)
    assert len(report.shown) == 0
    assert any("not lines of features" in sentence for sentence in report.unknown)


CITIES = np.eye(3)[X[:, 3].astype(int)]  # the fourth feature as three columns of 0 and 1
CATEGORIES = {"city": {"at Oslo": "Oslo", "at Bern": "Bern", "at Rome": "Rome"}}  # not in the order of the columns


class TestCategories:
    TABLE = pd.DataFrame(np.column_stack([X[:, :3], CITIES]), columns=["a", "b", "c", "at Bern", "at Oslo", "at Rome"])
    REG = PNCRegressor(network=MLP(bias_scale=1.0), regularization=1e-2, random_state=0).fit(TABLE[TRAIN], Y[TRAIN])

    def report(self, **changes):
        return report_of(self.REG, **{"X": self.TABLE[NEW], "categories": CATEGORIES} | changes)

    def test_columns_of_a_category_are_one_feature(self):
        report = self.report()
        assert [feature.name for feature in report.rows.features] == ["a", "b", "c", "city"]
        drawn = payload(report)
        city = drawn["features"].index("city")
        assert drawn["levels"][city] == ["Oslo", "Bern", "Rome"]
        codes = {"at Oslo": 0, "at Bern": 1, "at Rome": 2}
        assert drawn["x"][city] == [codes[name] for name in self.TABLE[NEW].iloc[:, 3:].idxmax(axis=1)]

    def test_the_band_goes_through_rows_that_can_be(self):
        report = self.report()
        band = next(band for band in report.outputs[0].bands if report.rows.features[report.shown[band.feature]].name == "city")
        medians = np.quantile(X[NEW][:, :3], 0.5, axis=0, method="closest_observation")
        points = [[*medians, 0, 1, 0], [*medians, 1, 0, 0], [*medians, 0, 0, 1]]
        mean, bounds = self.REG.predict_interval(pd.DataFrame(points, columns=self.TABLE.columns), 0.9)
        np.testing.assert_allclose(band.mean, mean, rtol=1e-9)
        np.testing.assert_allclose(np.column_stack([band.low, band.high]), bounds[..., 0], rtol=1e-9)
        assert band.is_discrete

    def test_a_typical_row_is_of_the_most_frequent_level(self):
        rows = self.report().rows
        assert rows.rows_with(rows.typical[None])[0, 3:].tolist() == np.eye(3)[CITIES[NEW].sum(axis=0).argmax()].tolist()

    def test_relevance_is_that_of_the_most_relevant_column(self):
        network = MLP(bias_scale=1.0, input_scale=[0.3, 0.5, 0.2, 0.1, 0.9, 0.1])
        reg = PNCRegressor(network=network, regularization=1e-2, random_state=0).fit(self.TABLE[TRAIN], Y[TRAIN])
        report = report_of(reg, X=self.TABLE[NEW], categories=CATEGORIES)
        assert [report.rows.features[j].name for j in report.shown] == ["city", "b", "a", "c"]

    @pytest.mark.parametrize(
        ("categories", "message"),
        [
            ({"city": {"at Paris": "Paris"}}, "names the column 'at Paris', which X does not have"),
            ({"city": {"at Bern": "Bern", "at Rome": "Rome"}}, "one of which is 1 in every row"),
            ({"city": {"a": "A", "b": "B"}}, "columns of 0 and 1"),
            ({"city": {}}, "columns of 0 and 1"),
        ],
    )
    def test_what_is_no_category_is_refused(self, categories, message):
        with pytest.raises(InvalidInputError, match=message):
            self.report(categories=categories)


def test_pieces_of_many_rows_give_the_same_numbers(monkeypatch):
    monkeypatch.setattr(outputs, "_ROWS_AT_A_TIME", 7)
    pieces, whole = report_of(REG).outputs[0], REPORT.outputs[0]
    for name in ("mean", "standard_error", "confidence", "prediction", "seed", "noise"):
        np.testing.assert_allclose(getattr(pieces, name), getattr(whole, name), rtol=1e-9)
    np.testing.assert_allclose(pieces.coverage.observed, whole.coverage.observed)
    assert pieces.parts.keys() == whole.parts.keys()
    normal = PNCRegressor(calibration="normal", **OPTIONS).fit(X[TRAIN], Y[TRAIN])
    assert len(report_of(normal).outputs[0].mean) == 60  # without a calibration


def test_seeds_are_not_asked_for_where_that_takes_long(monkeypatch):
    monkeypatch.setattr(outputs, "_MOST_WORK", 60 * 100**2 - 1)
    report = report_of(REG)
    assert report.outputs[0].seed is None
    assert any("a report about fewer of them has it" in sentence for sentence in report.unknown)
    np.testing.assert_array_equal(report.outputs[0].confidence, REPORT.outputs[0].confidence)


def test_very_many_features_are_ordered_without_a_curve_for_each(monkeypatch):
    wide = np.column_stack([np.random.default_rng(1).normal(size=(160, 520)), 60 * X[:, 1]])
    reg = PNCRegressor(network=MLP(bias_scale=1.0), regularization=1e-2, random_state=0, standardize=False)
    reg.fit(wide[TRAIN], X[TRAIN, 1])
    asked = []
    predict = PNCRegressor.predict

    def counting(self, points, return_std=False):
        asked.append(np.size(points))
        return predict(self, points, return_std)

    monkeypatch.setattr(PNCRegressor, "predict", counting)
    monkeypatch.setattr(features, "_NUMBERS_AT_A_TIME", 12 * 5 * wide.shape[1])
    report = report_of(reg, wide[NEW])
    assert report.shown[0] == 520
    assert report.order_of_features == "how closely each goes along with the prediction"
    assert len(report.outputs[0].reasons) == 5  # rows, of 12 features each
    assert max(asked) <= wide[NEW].size


class TestNames:
    def test_of_data_frames(self):
        frame = pd.DataFrame(X, columns=list("abcd"), index=[f"r{i}" for i in range(160)])
        reg = PNCRegressor(**OPTIONS).fit(frame[TRAIN], pd.Series(Y[TRAIN], name="dose"))
        report = report_of(reg, frame[NEW], pd.Series(Y[NEW], name="dose"))
        assert report.rows.feature_names == ("a", "b", "c", "d")
        assert report.rows.target_names == ("dose",)
        assert report.rows.row_labels[0] == "r100"

    def test_of_the_fit_where_rows_have_none(self):
        reg = PNCRegressor(**OPTIONS).fit(pd.DataFrame(X[TRAIN], columns=list("abcd")), Y[TRAIN])
        with pytest.warns(UserWarning, match="valid feature names"):
            assert report_of(reg).rows.feature_names == ("a", "b", "c", "d")

    def test_lists_will_do(self):
        assert report_of(REG, X[NEW].tolist(), Y[NEW].tolist()).outputs[0].accuracy == REPORT.outputs[0].accuracy

    def test_they_fit_one_line(self):
        report = report_of(REG, feature_names=["a\n\x00b", "\ud800", "", "x" * 500])
        assert report.rows.feature_names[:3] == ("a  b", "?", "x2")
        assert len(report.rows.feature_names[3]) == 200

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ({"feature_names": ["a"]}, "feature_names has 1 entries and 4 are needed"),
            ({"target_names": ["a", "b"]}, "target_names has 2 entries and 1 are needed"),
            ({"row_labels": ["a"]}, "row_labels has 1 entries and 60 are needed"),
            ({"y": Y[:5]}, "y has shape"),
            ({"y": np.full(60, np.nan)}, "y has missing or infinite values"),
            ({"y": ["a"] * 60}, "y must hold numbers only"),
            ({"X": [["a"] * 4]}, "X must hold numbers only"),
            ({"X": X[0]}, "as a table of rows"),
            ({"X": X[:0]}, "at least one row"),
        ],
    )
    def test_what_does_not_fit_is_named(self, wrong, message):
        with pytest.raises(InvalidInputError, match=message):
            report_of(REG, **wrong)


class TestWords:
    def test_every_finding_has_them(self):
        trained = PNCRegressor(engine=NetworkEngine(width=32), network=MLP(bias_scale=1.0), regularization=0.1, random_state=0)
        found = [REG.diagnose(X[NEW]), trained.fit(X[:40], Y[:40]).diagnose()]
        findings = [finding for one in found for finding in one.findings]
        assert all(finding.if_it_holds and finding.if_not and finding.advice for finding in findings)

    def test_what_does_not_hold_comes_first(self):
        far = X[NEW] + 30
        holds = [finding.holds for finding in report_of(REG, far).findings]
        assert holds == sorted(holds)
        assert not holds[0]

    def test_reproduction_names_all_that_matters(self):
        made = build(
            REG, HeldOut.of(REG, X, None, feature_names=None, target_names=None, row_labels=None), 0.9, "a.csv"
        ).reproduction
        assert made.constructor.startswith("PNCRegressor(")
        assert "input_scale" in made.constructor
        assert (made.chosen, made.seed, made.source) == ("", "random_state=0", "a.csv")
        assert {"unseed", "Python", "torch", "numpy"} <= {name for name, _ in made.versions}

    def test_chosen_networks_can_be_given_next_time(self):
        reg = PNCRegressor(random_state=0).fit(X[:60], Y[:60])
        made = report_of(reg).reproduction
        again = eval(f"PNCRegressor({made.chosen}, random_state=0)", {"MLP": MLP, "PNCRegressor": PNCRegressor})
        np.testing.assert_allclose(again.fit(X[:60], Y[:60]).predict(X[NEW]), reg.predict(X[NEW]), rtol=1e-9)


def test_the_payload_has_six_digits():
    drawn = payload(REPORT)
    np.testing.assert_allclose(drawn["outputs"][0]["mean"], REPORT.outputs[0].mean, rtol=5e-6)
    assert max(len(str(abs(value))) for value in drawn["x"][0]) <= 10


@pytest.mark.parametrize(("value", "text"), [(0.0, "0"), (1234567.0, "1,234,567"), (1e-9, "1.00e−09"), (-2.5, "−2.50")])
def test_figures_as_people_read_them(value, text):
    assert figure(value) == text
