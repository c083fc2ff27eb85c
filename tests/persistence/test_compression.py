"""Smaller models: what they change is what they say they change."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from unseed import (
    MLP,
    GradientFlow,
    KernelEngine,
    MonteCarloMean,
    PNCRegressor,
    read_document,
)
from unseed._persistence.codec import narrow
from unseed.errors import InvalidInputError, NotAvailableError

RNG = np.random.default_rng(0)
X, X_NEW = RNG.normal(size=(240, 2)), RNG.normal(size=(15, 2))
Y = 100 * np.column_stack([np.sin(X[:, 0]) + 0.1 * RNG.normal(size=240), X[:, 1] ** 2 + 0.3 * RNG.normal(size=240)])
SMOOTH = MLP(activation="erf", bias_scale=1.0, weight_std=0.6)
ROUGH = MLP(bias_scale=1.0)


def fitted(y=Y[:, 0], **options):
    return PNCRegressor(**{"network": SMOOTH, "regularization": 1e-4, "random_state": 0} | options).fit(X, y)


def true_change(reg, small):
    """Of prediction and standard error, at the points that the report is about, by public questions alone."""
    points = np.concatenate([reg._replicates.checked.X, reg._probe])
    (m, s), (m_small, s_small) = (one.predict(points, return_std=True) for one in (reg, small))
    return m_small - m, s_small - s


def assert_report_is_true(reg, small):
    report = small.compression_
    for change, largest, rms in zip(
        true_change(reg, small),
        (report.largest_change, report.largest_error_change),
        (report.rms_change, report.rms_error_change),
        strict=True,
    ):
        columns = change.reshape(len(change), -1)
        assert_allclose(largest, np.abs(columns).max(axis=0), rtol=1e-12, atol=0)
        assert_allclose(rms, np.sqrt((columns**2).mean(axis=0)), rtol=1e-12, atol=0)
    assert report.bytes_before == reg.size_in_bytes()
    assert report.bytes_after == small.size_in_bytes()


@pytest.mark.parametrize("options", [{"dtype": "float32"}, {"anchors": 60}, {"anchors": 60, "dtype": "float32"}], ids=str)
@pytest.mark.parametrize("interval", ["auto", "sectioning", "batching", "cheap_bootstrap", "half_sampling"])
def test_the_report_is_true_and_the_small_model_is_saved_exactly(interval, options, tmp_path):
    reg = fitted(interval=interval)
    small = reg.compress(**options)
    assert_report_is_true(reg, small)
    small.save(tmp_path / "model")
    loaded = PNCRegressor.load(tmp_path / "model")
    one, two = small.get_prediction(X_NEW), loaded.get_prediction(X_NEW)
    for ask in ("conf_int", "pred_int", "simultaneous"):
        assert_array_equal(getattr(one, ask)(), getattr(two, ask)())
    assert_array_equal(one.components.procedural, two.components.procedural)
    assert loaded.compression_ == small.compression_
    assert str(loaded.diagnose()) == str(small.diagnose())
    assert_array_equal(small.get_contrast(X_NEW, X_NEW[::-1]).conf_int(), loaded.get_contrast(X_NEW, X_NEW[::-1]).conf_int())


@pytest.mark.parametrize("network", [SMOOTH, ROUGH], ids=str)
@pytest.mark.parametrize("regularization", [1e-2, 1e-9])
def test_float32_moves_the_function_no_more_than_the_data(network, regularization):
    reg = fitted(network=network, regularization=regularization, interval="cheap_bootstrap")
    small = reg.compress(dtype="float32")
    # weights that nearly cancel would lose four digits or more if they were rounded; the data are moved by 6e-8 of them
    assert max(small.compression_.largest_change) < 1e-4 * Y[:, 0].std()
    assert small.size_in_bytes() < 0.75 * reg.size_in_bytes()


def test_float32_halves_what_is_not_weights(tmp_path):
    wide = RNG.normal(size=(200, 40))
    reg = PNCRegressor(network=SMOOTH, regularization=0.1, random_state=0).fit(wide, Y[:200, 0])
    assert reg.compress(dtype="float32").size_in_bytes() < 0.53 * reg.size_in_bytes()
    assert narrow(np.array([1e300])).dtype == np.float64  # what does not fit stays as it is


def test_more_anchors_bring_less_error():
    reg = fitted(network=ROUGH, y=Y)
    reports = [reg.compress(anchors=m).compression_ for m in (10, 60, 200)]
    for name in ("rms_change", "rms_error_change"):
        errors = np.array([getattr(report, name) for report in reports])
        assert (np.diff(errors, axis=0) < 0).all()
    assert [report.n_anchors for report in reports] == [10, 60, 200]
    assert reports[0].n_rows == 240


def test_smooth_functions_need_few_anchors_and_no_more_are_taken():
    reg = fitted(y=Y, network=MLP(activation="sin", bias_scale=1.2, weight_std=0.1), regularization=1e-6)
    small = reg.compress(anchors=200)
    assert small.compression_.n_anchors < 150
    spread = Y.std(axis=0)
    assert (np.array(small.compression_.largest_change) < 1e-4 * spread).all()
    one, two = reg.get_prediction(X_NEW), small.get_prediction(X_NEW)
    assert_allclose(two.standard_error, one.standard_error, rtol=1e-3)
    assert_allclose(two.pred_int(), one.pred_int(), rtol=0, atol=1e-3 * spread.max())
    contrasts = [r.get_contrast(X_NEW, X_NEW[::-1]).standard_error for r in (reg, small)]
    assert_allclose(contrasts[1][:7], contrasts[0][:7], rtol=1e-3)  # the eighth is a point less itself


def test_all_rows_but_one_are_nearly_the_whole_model():
    reg = fitted(network=ROUGH, regularization=1e-2)
    one, two = reg.get_prediction(X_NEW), reg.compress(anchors=239).get_prediction(X_NEW)
    assert_allclose(two.mean, one.mean, rtol=0, atol=2e-3 * Y[:, 0].std())
    assert_allclose(two.standard_error, one.standard_error, rtol=0.02)


def test_what_anchors_take_away_is_said():
    small = fitted().compress(anchors=30)
    assert np.isnan(small.get_prediction(X_NEW).components.procedural).all()
    with pytest.raises(NotAvailableError, match="cut to anchors"):
        small.sample_networks(X_NEW, 2)
    with pytest.raises(InvalidInputError, match="whole models"):
        small.compress(anchors=10)
    with pytest.raises(InvalidInputError, match=r"InfinitesimalJackknife.* needs all rows"):
        fitted(interval="infinitesimal_jackknife").compress(anchors=10)
    assert max(fitted(interval="infinitesimal_jackknife").compress(dtype="float32").compression_.largest_error_change) < 1e-3


def test_the_whole_model_stays_as_it_is():
    reg = fitted()
    before = reg.predict_interval(X_NEW)[1]
    small = reg.compress(anchors=20, dtype="float32")
    assert_array_equal(reg.predict_interval(X_NEW)[1], before)
    assert not hasattr(reg, "compression_")
    assert not hasattr(small.fit(X, Y[:, 0]), "compression_")


@pytest.mark.parametrize(
    "options",
    [
        {"initial_mean": MonteCarloMean(draws=3)},
        {"engine": KernelEngine(training=GradientFlow(time=100.0)), "interval": "auto"},
    ],
    ids=["drawn mean", "stopped training"],
)
def test_other_fits(options, tmp_path):
    reg = fitted(**options)
    for small in (reg.compress(anchors=50), reg.compress(dtype="float32")):
        assert_report_is_true(reg, small)
        small.save(tmp_path / "model", extra={"table.json": {"a": 1}})
        assert_array_equal(PNCRegressor.load(tmp_path / "model").predict_interval(X_NEW)[1], small.predict_interval(X_NEW)[1])
        assert read_document(tmp_path / "model", "table.json") == {"a": 1}


def test_a_rival_is_compressed_too():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(40, 2))
    reg = PNCRegressor(random_state=0).fit(x, x[:, 0] + 0.5 * rng.normal(size=40))
    assert reg._replicates.rival is not None  # otherwise this test says nothing
    for small in (reg.compress(anchors=30), reg.compress(dtype="float32")):
        one, two = (r.get_prediction(x).components.parts["rival"] for r in (reg, small))
        assert_allclose(two, one, rtol=0, atol=0.01 * one.max())


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"dtype": "float16"}, "dtype='float16'"),
        ({"anchors": 0}, "anchors=0"),
        ({"anchors": 240}, "less than the 240 rows"),
        ({"anchors": 2.5}, "anchors=2.5"),
    ],
)
def test_options_that_cannot_be(options, match):
    with pytest.raises(InvalidInputError, match=match):
        fitted().compress(**options)


def test_other_engines_are_refused():
    with pytest.raises(InvalidInputError, match=r"engine='kernel'.*LinearizedReplicates"):
        fitted(engine="linearized", network=MLP(width=8)).compress(dtype="float32")
