import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from unseed import MLP, PNCRegressor
from unseed.errors import InvalidInputError
from unseed.plots import IntervalDisplay

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(40, 1))
Y = np.sin(3 * X[:, 0]) + 0.1 * RNG.normal(size=40)
REG = PNCRegressor(random_state=0).fit(X, Y)


def test_sorted_points_with_both_intervals():
    display = IntervalDisplay.from_estimator(REG, X, Y, level=0.9)
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == [
        "90 % prediction interval, for one new y",
        "90 % confidence interval, for the function",
        "prediction",
        "observed",
    ]
    assert display.figure_ is display.ax_.figure
    drawn = display.ax_.lines[0].get_ydata()
    assert (np.diff(drawn) >= 0).all()


def test_band_over_a_feature_on_given_axes():
    _, ax = plt.subplots()
    display = IntervalDisplay.from_predictions(REG.get_prediction(X), position=X[:, 0], ax=ax)
    assert display.ax_ is ax
    low, high = REG.get_prediction(X).conf_int().T
    vertices = ax.collections[0].get_paths()[0].vertices
    assert vertices[:, 1].min() == pytest.approx(low.min())
    assert vertices[:, 1].max() == pytest.approx(high.max())
    assert len(ax.lines) == 1


def test_band_with_observations_and_sorted_points_without():
    assert len(IntervalDisplay.from_estimator(REG, X, Y, position=X).ax_.lines) == 2
    assert len(IntervalDisplay.from_estimator(REG, X).ax_.lines) == 1


def test_several_outputs_are_drawn_one_at_a_time():
    reg = PNCRegressor(network=MLP(), regularization=0.1, random_state=0).fit(X, np.column_stack([Y, Y**2]))
    with pytest.raises(InvalidInputError, match="2 outputs"):
        IntervalDisplay.from_estimator(reg, X)
    display = IntervalDisplay.from_estimator(reg, X, Y**2, output=1)
    np.testing.assert_allclose(display.prediction.mean, reg.predict(X)[:, 1], rtol=1e-12)
    for level in (0.5, 0.9):
        np.testing.assert_array_equal(display.prediction.conf_int(level), reg.get_prediction(X).conf_int(level)[:, 1])
        np.testing.assert_array_equal(display.prediction.pred_int(level), reg.get_prediction(X).pred_int(level)[:, 1])


@pytest.mark.parametrize(("output", "message"), [(2, "not one of the 2 outputs"), (-1, "output=-1"), (True, "output=True")])
def test_outputs_that_are_not_there(output, message):
    reg = PNCRegressor(network=MLP(), regularization=0.1, random_state=0).fit(X, np.column_stack([Y, Y]))
    with pytest.raises(InvalidInputError, match=message):
        IntervalDisplay.from_estimator(reg, X, output=output)
    with pytest.raises(InvalidInputError, match="one output"):
        IntervalDisplay.from_estimator(REG, X, output=1)


def test_a_series_names_the_axis():
    display = IntervalDisplay.from_estimator(REG, X, position=pd.Series(X[:, 0], name="dose"))
    assert display.ax_.get_xlabel() == "dose"


def test_a_pipeline_is_drawn_like_its_last_step():
    pipeline = make_pipeline(StandardScaler(), PNCRegressor(network=MLP(), regularization=0.1, random_state=0)).fit(X, Y)
    by_hand = pipeline[-1].get_prediction(pipeline[0].transform(X))
    np.testing.assert_array_equal(IntervalDisplay.from_estimator(pipeline, X).prediction.mean, by_hand.mean)
    alone = make_pipeline(PNCRegressor(network=MLP(), regularization=0.1, random_state=0)).fit(X, Y)
    np.testing.assert_allclose(IntervalDisplay.from_estimator(alone, X).prediction.mean, alone.predict(X), rtol=1e-10)


def test_lines_stand_out_from_dark_axes():
    def lightness(style):
        with plt.style.context(style):
            ax = IntervalDisplay.from_estimator(REG, X, position=X).ax_
            line, ground = (np.array(to_rgb(colour)).mean() for colour in (ax.lines[0].get_color(), ax.get_facecolor()))
        return abs(line - ground)

    assert lightness("default") > 0.6
    assert lightness("dark_background") > 0.6


def test_without_matplotlib_the_text_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'unseed\[plots\]'"):
        IntervalDisplay.from_estimator(REG, X)


def test_lengths_must_agree():
    for wrong in ({"y": Y[:-1]}, {"y": Y, "position": X[:-1, 0]}):
        with pytest.raises(InvalidInputError, match="39 entries for 40 predictions"):
            IntervalDisplay.from_estimator(REG, X, **wrong)
