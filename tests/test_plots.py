import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch

from unseed import MLP, PNCRegressor
from unseed.errors import InvalidInputError
from unseed.plots import IntervalDisplay, RelevanceDisplay

mpl.use("Agg")
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(40, 1))
Y = np.sin(3 * X[:, 0]) + 0.1 * RNG.normal(size=40)
REG = PNCRegressor(random_state=0).fit(X, Y)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


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


def test_several_outputs_are_refused():
    reg = PNCRegressor(random_state=0).fit(X, np.column_stack([Y, Y]))
    with pytest.raises(InvalidInputError, match="2 outputs"):
        IntervalDisplay.from_estimator(reg, X)


def test_lengths_must_agree():
    for wrong in ({"y": Y[:-1]}, {"y": Y, "position": X[:-1, 0]}):
        with pytest.raises(InvalidInputError, match="39 entries for 40 predictions"):
            IntervalDisplay.from_estimator(REG, X, **wrong)


FRAME = pd.DataFrame(RNG.normal(size=(80, 3)), columns=["dose", "age", "site"])


class TestRelevance:
    def test_the_feature_that_matters_comes_first(self):
        reg = PNCRegressor(random_state=0).fit(FRAME, np.sin(3 * FRAME["age"]))
        display = RelevanceDisplay.from_estimator(reg, max_features=2)
        assert display.names[0] == "age"
        assert display.relevance[0] == 1
        assert len(display.names) == 2
        assert [label.get_text() for label in display.ax_.get_yticklabels()] == display.names

    def test_a_common_scale_is_said_to_be_one(self):
        network = MLP(input_scale=[0.5, 0.5, 0.5])
        display = RelevanceDisplay.from_estimator(PNCRegressor(network=network).fit(FRAME.to_numpy(), FRAME["age"]))
        assert display.names == ["x0", "x1", "x2"]
        assert "did not pay" in display.ax_.get_title(loc="left")

    def test_modules_have_none(self):
        reg = PNCRegressor(engine="linearized", network=lambda: torch.nn.Linear(3, 1)).fit(FRAME, FRAME["age"])
        with pytest.raises(InvalidInputError, match="a torch module has none"):
            RelevanceDisplay.from_estimator(reg)
