import builtins

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

from unseed import Components, Prediction
from unseed.errors import InvalidInputError


def prediction(shape=(4,), df=3.0, **options):
    rng = np.random.default_rng(0)
    mean, se = rng.normal(size=shape), rng.uniform(1, 2, size=shape)
    return Prediction(mean, se, df, Components(se**2, 0 * se, 0 * se + 4.0), **options)


def test_confidence_interval_is_a_t_interval():
    p = prediction()
    assert_allclose(np.diff(p.conf_int(0.9))[:, 0], 2 * stats.t.ppf(0.95, 3) * p.standard_error, rtol=1e-14)
    assert_allclose(p.conf_int(0.9).mean(axis=1), p.mean)


def test_infinite_degrees_of_freedom_are_the_normal_law():
    p = prediction(df=np.inf)
    assert_allclose(np.diff(p.conf_int(0.95))[:, 0], 2 * stats.norm.ppf(0.975) * p.standard_error, rtol=1e-14)


def test_prediction_interval_is_that_of_a_sum_of_students_and_a_normal_law():
    p = prediction()
    for i, error in enumerate(p.standard_error):
        reach = np.diff(p.pred_int(0.95))[i, 0] / 2
        inside = integrate.quad(
            lambda t, error=error, reach=reach: 2 * stats.t.pdf(t, 3) * stats.norm.cdf((reach - error * t) / 2.0), 0, np.inf
        )
        below = integrate.quad(
            lambda t, error=error, reach=reach: 2 * stats.t.pdf(t, 3) * stats.norm.cdf((reach + error * t) / 2.0), 0, np.inf
        )
        assert_allclose((inside[0] + below[0]) / 2, 0.975, rtol=1e-7)
    assert (p.pred_int(0.999)[:, 1] > p.conf_int(0.999)[:, 1]).all()


def test_levels_close_to_one_keep_their_digits():
    assert np.isfinite(prediction().conf_int(1 - 1e-15)).all()


@pytest.mark.parametrize("level", [0, 1, -0.1, 1.5, 95, np.nan, "0.95", True, [0.9]])
def test_levels_outside_zero_one_are_refused(level):
    with pytest.raises(InvalidInputError, match=r"is not a confidence level; give a number strictly between 0 and 1"):
        prediction().conf_int(level)


def test_results_are_frozen():
    p = prediction()
    with pytest.raises(ValueError, match="read-only"):
        p.mean[0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        p.components.noise[0] = 1.0
    with pytest.raises(AttributeError):
        p.mean = np.zeros(4)


def test_summary_frame_has_the_columns_of_statsmodels_and_the_index():
    frame = prediction(index=pd.Index(list("abcd"))).summary_frame(0.9)
    assert list(frame.columns) == ["mean", "mean_se", "mean_ci_lower", "mean_ci_upper", "obs_ci_lower", "obs_ci_upper"]
    assert list(frame.index) == list("abcd")
    assert (frame.obs_ci_lower < frame.mean_ci_lower).all()
    assert (frame.obs_ci_upper > frame.mean_ci_upper).all()


def test_summary_frame_of_several_outputs_has_two_column_levels():
    named = prediction((4, 2), output_names=["heat", "cool"]).summary_frame()
    assert list(named.columns.get_level_values(0).unique()) == ["heat", "cool"]
    p = prediction((4, 2))
    assert_allclose(p.summary_frame()["y1"]["mean"], p.mean[:, 1])


def test_summary_frame_without_pandas_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def no_pandas(name, *args, **kwargs):
        if name == "pandas":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_pandas)
    with pytest.raises(ImportError, match=r"pip install 'unseed\[frames\]'"):
        prediction().summary_frame()
