import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from unseed import MLP, PNCRegressor, Prediction, SingleNetworkRegressor
from unseed._results import Components
from unseed.errors import InvalidInputError
from unseed.plots import VarianceDisplay

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(60, 2))
Y = np.sin(3 * X[:, 0]) + 0.1 * RNG.normal(size=60)
NETWORK = MLP(bias_scale=1.0)
REG = PNCRegressor(network=NETWORK, regularization=0.05, random_state=0).fit(X, Y)


def legend_of(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def tops_of(display):
    """Highest point of every area."""
    return [area.get_paths()[0].vertices[:, 1].max() for area in display.ax_.collections]


def test_the_stack_is_data_then_noise_then_procedural():
    parts = REG.get_prediction(X).components
    display = VarianceDisplay.from_estimator(REG, X)
    assert list(display.variances) == ["data", "noise", "procedural"]
    assert_allclose(display.variances["procedural"][:, 0], parts.procedural)
    stack = np.cumsum([parts.data, parts.noise, parts.procedural], axis=0)
    assert_allclose(tops_of(display), stack.max(axis=1))
    assert display.ax_.get_ylim()[0] == 0
    assert display.ax_.get_xlabel() == "points, sorted by prediction"


def test_the_picture_says_that_procedural_variance_is_taken_out():
    display = VarianceDisplay.from_estimator(REG, X)
    assert "PNC has taken it out" in legend_of(display)[2]
    data, noise, procedural = display.ax_.collections
    assert procedural.get_hatch() is not None
    assert len(procedural.get_facecolor()) == 0 or procedural.get_facecolor()[0, 3] == 0
    assert data.get_hatch() is noise.get_hatch() is None


def test_over_a_feature():
    position = pd.Series(X[:, 1], name="dose")
    display = VarianceDisplay.from_predictions(REG.get_prediction(X), position=position, alpha=0.5)
    assert display.ax_.get_xlabel() == "dose"
    assert display.ax_.collections[0].get_alpha() == 0.5
    edge = display.ax_.lines[0].get_xydata()
    order = np.argsort(X[:, 1])
    total = sum(values[:, 0] for values in display.variances.values())
    assert_allclose(edge, np.column_stack([X[order, 1], total[order]]))


def test_averages_of_several_outputs_are_in_units_of_data_and_noise():
    reg = PNCRegressor(network=NETWORK, regularization=0.05, random_state=0).fit(X, np.column_stack([Y, 100 * Y**2]))
    parts = reg.get_prediction(X).components
    display = VarianceDisplay.from_estimator(reg, X, average=True)
    data, noise, procedural = ([bar.get_width() for bar in bars] for bars in display.ax_.containers)
    assert_allclose(np.add(data, noise), 1)
    assert_allclose(procedural, parts.procedural.mean(axis=0) / (parts.data + parts.noise).mean(axis=0))
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["y0", "y1"]
    second = VarianceDisplay.from_estimator(reg, X, output=1)
    assert_allclose(second.variances["noise"][:, 0], parts.noise[:, 1])
    with pytest.raises(InvalidInputError, match="2 outputs"):
        VarianceDisplay.from_estimator(reg, X)


def test_what_is_not_known_is_left_out_and_said_so():
    rows = RNG.uniform(-1, 1, size=(100, 2))
    summed = PNCRegressor(solver="landmarks", network=NETWORK, regularization=0.05, random_state=0)
    summed.fit(rows, np.sin(3 * rows[:, 0]) + 0.1 * RNG.normal(size=100))
    display = VarianceDisplay.from_estimator(summed, X)
    assert display.missing == ["procedural"]
    assert len(display.ax_.collections) == 2
    assert legend_of(display)[2] == "procedural: not known for these predictions, left out"
    averages = np.array([values.mean() for values in display.variances.values()])
    bars = VarianceDisplay.from_estimator(summed, X, average=True).ax_.containers
    assert_allclose([bar[0].get_width() for bar in bars], averages / averages.sum())


def test_nothing_known_is_refused():
    unknown = np.full(3, np.nan)
    with pytest.raises(InvalidInputError, match="nothing to draw"):
        VarianceDisplay.from_predictions(Prediction(np.zeros(3), unknown, np.inf, Components(unknown, unknown, unknown)))


def test_estimators_that_keep_the_seed_are_refused():
    single = SingleNetworkRegressor(engine="linearized", network=MLP(width=32), regularization=0.1, random_state=0).fit(X, Y)
    with pytest.raises(InvalidInputError, match="still in the predictions of a SingleNetworkRegressor"):
        VarianceDisplay.from_estimator(single, X)


@pytest.mark.parametrize("wrong", [{"position": X[:, 0]}, {"output": 0}])
def test_an_average_has_no_points(wrong):
    with pytest.raises(InvalidInputError, match="leave position and output out"):
        VarianceDisplay.from_estimator(REG, X, average=True, **wrong)
