"""PNCClassifier as a scikit-learn user meets it."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from unseed import (
    MLP,
    AutoNetwork,
    Batching,
    CheapBootstrap,
    ClassPrediction,
    HalfSampling,
    InfinitesimalJackknife,
    LaplaceInterval,
    LinearizedEngine,
    PNCClassifier,
    PNCRegressor,
    Sectioning,
    TruthInterval,
)
from unseed.costs import Job
from unseed.errors import FewLabelsWarning, InvalidInputError, NotAvailableError
from unseed.plots import IntervalDisplay, SeedSpreadDisplay, VarianceDisplay
from unseed.report import write_report

NETWORK = MLP(bias_scale=1.0, scale_inputs=True)
RNG = np.random.default_rng(0)
X, X_NEW = RNG.normal(size=(90, 2)), RNG.normal(size=(20, 2))
TWO = np.where(RNG.random(90) < 1 / (1 + np.exp(-2 * X[:, 0])), "yes", "no")
THREE = np.array(["a", "b", "c"])[(RNG.random(90) + X[:, 1] > 0).astype(int) + (X[:, 0] > 0.5)]


def classifier(**options):
    return PNCClassifier(**({"network": NETWORK, "regularization": 0.01, "random_state": 0} | options))


@pytest.fixture(scope="module")
def two():
    return classifier().fit(X, TWO)


@pytest.fixture(scope="module")
def three():
    return classifier().fit(X, THREE)


@parametrize_with_checks([classifier()])
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewLabelsWarning)  # a few rows with a label of their own, which is what it says
        check(estimator)


class TestUse:
    def test_probabilities_and_classes(self, two, three):
        for clf, y in ((two, TWO), (three, THREE)):
            p = clf.predict_proba(X_NEW)
            assert_array_equal(clf.classes_, np.unique(y))
            assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
            assert_array_equal(clf.predict(X_NEW), clf.classes_[p.argmax(axis=1)])
            assert clf.score(X, y) > 0.6
            assert is_classifier(clf)
        assert_allclose(1 / (1 + np.exp(-two.decision_function(X_NEW))), two.predict_proba(X_NEW)[:, 1], rtol=1e-12)
        assert_allclose(1 / (1 + np.exp(-three.decision_function(X_NEW))), three.predict_proba(X_NEW), rtol=1e-10)

    def test_intervals_have_the_promised_shape_and_stay_in_the_range(self, two, three):
        for clf, k in ((two, 2), (three, 3)):
            p, bounds = clf.predict_interval(X_NEW, confidence_level=[0.8, 0.99])
            assert bounds.shape == (20, k, 2, 2)
            assert ((bounds >= 0) & (bounds <= 1)).all()
            assert ((bounds[:, :, 0] < p[:, :, None]) & (p[:, :, None] < bounds[:, :, 1])).all()
            assert (np.diff(bounds, axis=2)[..., 1] > np.diff(bounds, axis=2)[..., 0]).all()
        _, bounds = two.predict_interval(X_NEW)
        assert_allclose(bounds[:, 0, :, 0], 1 - bounds[:, 1, ::-1, 0], rtol=1e-9)

    def test_a_prediction_says_where_its_uncertainty_comes_from(self, three):
        found = three.get_prediction(X_NEW)
        assert isinstance(found, ClassPrediction)
        assert set(found.components.parts) == {"sampling", "posterior", "rival"}
        assert_allclose(sum(found.components.parts.values()), found.components.data, rtol=1e-12)
        assert_allclose(found.conf_int(0.9), three.predict_interval(X_NEW, 0.9)[1][..., 0], rtol=1e-9)
        wide, narrow = found.simultaneous(0.95), found.conf_int(0.95)
        assert (wide[..., 0] < narrow[..., 0]).all()
        assert (wide[..., 1] > narrow[..., 1]).all()
        assert found.degrees_of_freedom == np.inf
        table = found.summary_frame()
        assert list(table.columns.get_level_values(0).unique()) == ["a", "b", "c"]
        assert_allclose(table["b", "mean"], three.predict_proba(X_NEW)[:, 1], rtol=1e-9)
        assert_allclose(table["b", "mean_se"], found.standard_error[:, 1], rtol=1e-12)

    def test_a_set_has_the_most_probable_class_and_those_that_may_be(self, two, three):
        for clf in (two, three):
            kept, p = clf.predict_set(X_NEW), clf.predict_proba(X_NEW)
            assert kept[np.arange(20), p.argmax(axis=1)].all()
            assert kept.sum() > 20
            assert (clf.predict_set(X_NEW, 0.5) <= kept).all()
        bounds = two.predict_interval(X_NEW)[1][:, 1, :, 0]
        assert_array_equal(two.predict_set(X_NEW).all(axis=1), (bounds[:, 0] <= 0.5) & (bounds[:, 1] >= 0.5))

    def test_labels_of_any_kind_give_the_same_numbers(self, two):
        for labels in (TWO == "yes", np.where(TWO == "yes", 7, -3), TWO.astype(object), pd.Categorical(TWO), TWO.tolist()):
            clf = classifier().fit(X, labels)
            assert_array_equal(clf.predict_proba(X_NEW), two.predict_proba(X_NEW))
            assert clf.predict(X_NEW).dtype == clf.classes_.dtype

    def test_other_names_of_the_classes_permute_the_answers(self, three):
        other = classifier().fit(X, np.array(["c", "a", "b"])[np.searchsorted(["a", "b", "c"], THREE)])
        p, bounds = three.predict_interval(X_NEW)
        q, others = other.predict_interval(X_NEW)
        assert_allclose(q[:, [2, 0, 1]], p, atol=1e-9)
        assert_allclose(others[:, [2, 0, 1]], bounds, atol=1e-8)

    def test_names_and_index_of_frames(self, two):
        frame = pd.DataFrame(X_NEW, columns=["u", "v"], index=[f"row {i}" for i in range(20)])
        clf = classifier().fit(pd.DataFrame(X, columns=["u", "v"]), pd.Series(TWO))
        assert list(clf.get_prediction(frame).summary_frame().index) == list(frame.index)
        assert list(clf.feature_names_in_) == ["u", "v"]
        assert_allclose(clf.predict_proba(frame), two.predict_proba(X_NEW), rtol=1e-10)

    @pytest.mark.parametrize(
        "method",
        [Batching(), CheapBootstrap(), HalfSampling(), Sectioning(), InfinitesimalJackknife(), LaplaceInterval()],
        ids=str,
    )
    @pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
    def test_every_interval_method(self, method, y):
        clf = classifier(interval=method).fit(X, y)
        p, bounds = clf.predict_interval(X_NEW)
        assert ((bounds > 0) & (bounds < 1)).all()
        assert ((bounds[:, :, 0, 0] <= p + 1e-3) & (p <= bounds[:, :, 1, 0] + 1e-3)).all()
        assert clf.diagnose().findings

    def test_diagnosis_flags_points_that_are_far(self, two, three):
        for clf in (two, three):
            found = clf.diagnose(np.vstack([X[:10], [[40.0, -40.0]]]))
            assert 10 in found.far_points
            assert "gradient left by Newton's steps" in str(found)

    def test_noise_is_covered(self):
        y = RNG.permutation(TWO)
        clf = classifier(regularization="auto").fit(X, y)
        bounds, share = clf.predict_interval(X_NEW)[1][:, 1, :, 0], np.mean(y == "yes")
        assert np.mean((bounds[:, 0] <= share) & (share <= bounds[:, 1])) > 0.9
        assert any("rows left out" in one.name for one in clf.diagnose().findings)

    def test_cloned_pickled_and_in_cross_validation(self, three):
        assert clone(three).get_params() == three.get_params()
        assert_array_equal(pickle.loads(pickle.dumps(three)).predict_proba(X_NEW), three.predict_proba(X_NEW))
        assert cross_val_score(classifier(), X, THREE, cv=3).mean() > 0.5


class TestNetwork:
    def test_a_network_is_chosen_by_the_evidence(self):
        X, y = load_iris(return_X_y=True)
        clf = PNCClassifier(network=AutoNetwork(max_rows=30), random_state=0).fit(X[::3], y[::3])
        assert clf.score(X[1::3], y[1::3]) > 0.9
        assert clf.selection_.best.network == clf.network_
        best = clf.selection_.best.score
        assert all(other.score <= best for other in clf.selection_.candidates)

    def test_a_penalty_alone_is_chosen_near_the_best_of_a_grid(self):
        auto = classifier(regularization="auto").fit(X, TWO)
        assert 1e-4 < auto.regularization_ < 1
        with pytest.raises(InvalidInputError, match="criterion='leave_one_out'"):
            classifier(network=AutoNetwork(criterion="leave_one_out")).fit(X, TWO)


class TestWeights:
    def test_weights_are_repeated_rows(self):
        counts = RNG.integers(0, 3, 90)
        for y in (TWO, THREE):
            once = classifier().fit(X, y, sample_weight=counts)
            again = classifier().fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
            assert_allclose(once.predict_proba(X_NEW), again.predict_proba(X_NEW), atol=1e-9)

    def test_weights_of_classes_are_weights_of_their_rows(self):
        weights = {"yes": 3.0}
        of_class = classifier(class_weight=weights).fit(X, TWO)
        of_rows = classifier().fit(X, TWO, sample_weight=np.where(TWO == "yes", 3.0, 1.0))
        assert_allclose(of_class.predict_proba(X_NEW), of_rows.predict_proba(X_NEW), rtol=1e-12)
        balanced = classifier(class_weight="balanced").fit(X[20:], THREE[20:])
        totals = pd.Series(THREE[20:]).value_counts()
        by_hand = classifier(class_weight={c: 70 / 3 / totals[c] for c in totals.index}).fit(X[20:], THREE[20:])
        assert_allclose(balanced.predict_proba(X_NEW), by_hand.predict_proba(X_NEW), rtol=1e-9)


class TestPieces:
    def test_pieces_come_to_the_model_of_all_rows(self, three):
        clf = classifier().partial_fit(X[:10], THREE[:10], classes=["a", "b", "c"])
        for start in range(10, 90, 40):
            clf.partial_fit(X[start : start + 40], THREE[start : start + 40])
        assert clf.n_rows_ == 90
        assert_array_equal(clf.predict_interval(X_NEW)[1], three.predict_interval(X_NEW)[1])

    def test_rows_after_fit_and_after_loading(self, tmp_path, two):
        half = classifier().fit(X[:50], TWO[:50])
        half.save(tmp_path / "half")
        for clf in (half, PNCClassifier.load(tmp_path / "half")):
            whole = clf.partial_fit(X[50:], TWO[50:])
            assert_allclose(whole.predict_proba(X_NEW), two.predict_proba(X_NEW), atol=1e-9)

    def test_a_class_first_seen_later_is_refused_with_the_remedy_and_nothing_is_lost(self):
        clf = classifier().partial_fit(X, TWO)
        before = clf.predict_proba(X_NEW)
        with pytest.raises(
            InvalidInputError, match=r"y has the class 'maybe', .* partial_fit\(X, y, classes=\['no', 'yes', 'maybe'\]\)"
        ):
            clf.partial_fit(X[:3], ["yes", "maybe", "no"])
        with pytest.raises(InvalidInputError, match="are not those of the first call"):
            clf.partial_fit(X[:3], TWO[:3], classes=["no", "other"])
        assert_array_equal(clf.predict_proba(X_NEW), before)


class TestSaved:
    @pytest.mark.parametrize("y", [TWO, THREE, (THREE == "a") * 1.0, THREE == "a"], ids=["two", "three", "numbers", "truths"])
    def test_a_model_comes_back(self, tmp_path, y):
        weights = RNG.uniform(0.5, 2, 90)
        clf = classifier(class_weight={np.unique(y)[0].item(): 2.0}, regularization="auto").fit(X, y, sample_weight=weights)
        clf.save(tmp_path / "model")
        again = PNCClassifier.load(tmp_path / "model")
        assert_array_equal(again.predict_interval(X_NEW)[1], clf.predict_interval(X_NEW)[1])
        assert_array_equal(again.predict(X_NEW), clf.predict(X_NEW))
        assert again.classes_.dtype == clf.classes_.dtype
        assert str(again.diagnose()) == str(clf.diagnose())
        assert again.get_params() == clf.get_params()
        with pytest.raises(InvalidInputError, match="takes no more rows: fit it again"):
            again.partial_fit(X, y)

    def test_a_regressor_is_none(self, tmp_path, two):
        two.save(tmp_path / "model")
        with pytest.raises(InvalidInputError):
            PNCRegressor.load(tmp_path / "model")


class TestRefusals:
    """One clear sentence each."""

    @pytest.mark.parametrize(
        ("y", "words"),
        [
            (np.zeros(90), "y has only one class, .*0.0.*: a classifier needs rows of two classes"),
            (np.where(np.arange(90) == 4, None, TWO), r"y has a missing label \(NaN or None\) in row 4"),
            (np.where(np.arange(90) == 7, np.nan, TWO.astype(object)), "missing label .* in row 7"),
            (np.where(np.arange(90) % 2, 3, TWO.astype(object)), "y mixes labels of the types number and str"),
            (np.stack([TWO, TWO], axis=1), "y has 2 columns, and a classifier takes one"),
            (RNG.normal(size=90), "Unknown label type: continuous"),
        ],
    )
    def test_labels(self, y, words):
        with pytest.raises(ValueError, match=words):
            classifier().fit(X, y)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"class_weight": {"perhaps": 2.0}}, r"class_weight names the class 'perhaps', which y does not have"),
            ({"class_weight": {"yes": -1.0}}, r"class_weight gives the class 'yes' the weight -1.0; it must be positive"),
            ({"class_weight": "equal"}, "class_weight='equal' is not known"),
            (
                {"regularization": 0},
                "regularization=0 leaves loss='logistic' without a finite fit where labels can be told apart",
            ),
            ({"regularization": -1.0}, "regularization=-1.0"),
            ({"engine": LinearizedEngine(width=64)}, "use engine='kernel' instead of"),
            ({"interval": TruthInterval()}, r"interval=TruthInterval\(batches=4\) is for loss='squared'"),
            ({"interval": "best"}, "interval='best' is not known"),
            ({"solver": "landmarks"}, "a classifier holds all rows at once so far"),
            ({"network": lambda: None}, r"knows the kernels of MLP\(...\) only"),
        ],
    )
    def test_options(self, options, words):
        with pytest.raises(InvalidInputError, match=words):
            classifier(**options).fit(X, TWO)

    def test_weights(self):
        with pytest.raises(InvalidInputError, match="sample_weight is zero for every row"):
            classifier().fit(X, TWO, sample_weight=np.zeros(90))
        with pytest.raises(ValueError, match="one class"):
            classifier().fit(X, TWO, sample_weight=(TWO == "yes") * 1.0)

    def test_a_class_with_one_row_is_named(self):
        y = np.where(np.arange(90) == 3, "rare", TWO)
        with pytest.warns(FewLabelsWarning, match="the class 'rare' has one row, and all that is known of it is that row"):
            clf = classifier().fit(X, y)
        assert clf.predict_proba(X_NEW)[:, 1].max() < 0.5

    def test_what_only_networks_of_all_rows_have(self):
        with pytest.raises(InvalidInputError, match=r"diagnose\(X\) needs a network on all rows"):
            classifier(interval="batching").fit(X, TWO).diagnose(X_NEW)


class TestWherePeopleLook:
    """Where classifiers are not at home yet, one sentence says so."""

    def test_displays_reports_and_forecasts(self, two, tmp_path):
        for display in (IntervalDisplay, VarianceDisplay, SeedSpreadDisplay):
            with pytest.raises(InvalidInputError, match="displays are for regressors so far"):
                display.from_estimator(two, X_NEW)
        with pytest.raises(InvalidInputError, match="a report is for regressors so far"):
            write_report(tmp_path / "report.html", two, X_NEW)
        with pytest.raises(NotAvailableError, match="a forecast is for PNCRegressor"):
            Job.of(two, rows=100, features=2)
