import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from unseed import MLP, PNCRegressor, SingleNetworkRegressor
from unseed.errors import InvalidInputError, NotAvailableError
from unseed.plots import SeedSpreadDisplay

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(50, 3))
Y = np.sin(3 * X[:, 0]) + 0.1 * RNG.normal(size=50)
NETWORK = MLP(bias_scale=1.0)
REG = PNCRegressor(network=NETWORK, regularization=0.05, random_state=0).fit(X, Y)
NEW = RNG.uniform(-1, 1, size=(12, 3))


def legend_of(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_the_networks_are_those_of_the_estimator():
    display = SeedSpreadDisplay.from_estimator(REG, NEW, n_networks=7, random_state=3)
    assert_array_equal(display.networks, REG.sample_networks(NEW, 7, random_state=3))
    assert "7 single networks" in legend_of(display)[1]


def test_sorted_points_show_differences_from_the_pnc_prediction():
    display = SeedSpreadDisplay.from_estimator(REG, NEW, n_networks=3, random_state=0, level=0.9)
    order = np.argsort(REG.predict(NEW))
    first = display.ax_.lines[0].get_xydata()
    assert_allclose(first, np.column_stack([np.arange(12), (display.networks[0] - REG.predict(NEW))[order]]))
    half_width = np.diff(REG.get_prediction(NEW).conf_int(0.9))[:, 0] / 2
    assert display.ax_.collections[0].get_paths()[0].vertices[:, 1].max() == pytest.approx(half_width.max())
    assert legend_of(display)[0] == "90 % confidence interval, for other data"


def test_curves_over_a_feature():
    display = SeedSpreadDisplay.from_estimator(REG, NEW, n_networks=4, random_state=0, position=NEW[:, 0], alpha=0.3)
    *networks, mean = display.ax_.lines
    order = np.argsort(NEW[:, 0])
    assert len(networks) == 4
    assert networks[0].get_alpha() == 0.3
    assert_allclose([line.get_ydata() for line in networks], display.networks[:, order])
    assert_allclose(mean.get_xydata(), np.column_stack([NEW[order, 0], REG.predict(NEW)[order]]))


def test_the_spread_is_the_procedural_standard_deviation():
    display = SeedSpreadDisplay.from_estimator(REG, NEW, n_networks=4000, random_state=0)
    expected = np.sqrt(REG.get_prediction(NEW).components.procedural)
    assert_allclose(display.spread, expected, rtol=4.5 / np.sqrt(2 * 4000))  # standard error of a standard deviation


def test_networks_of_ones_own_and_several_outputs():
    reg = PNCRegressor(network=NETWORK, regularization=0.05, random_state=0).fit(X, np.column_stack([Y, -Y]))
    networks = reg.sample_networks(NEW, 5, random_state=0)
    display = SeedSpreadDisplay.from_predictions(reg.get_prediction(NEW), networks, output=1)
    assert_array_equal(display.networks, networks[..., 1])
    assert_allclose(display.prediction.mean, reg.predict(NEW)[:, 1], rtol=1e-10)
    with pytest.raises(InvalidInputError, match="2 outputs"):
        SeedSpreadDisplay.from_predictions(reg.get_prediction(NEW), networks)


def test_at_the_end_of_a_pipeline():
    pipeline = make_pipeline(StandardScaler(), PNCRegressor(network=NETWORK, regularization=0.05, random_state=0)).fit(X, Y)
    display = SeedSpreadDisplay.from_estimator(pipeline, NEW, n_networks=2, random_state=0)
    assert_array_equal(display.networks, pipeline[-1].sample_networks(pipeline[0].transform(NEW), 2, random_state=0))


@pytest.mark.parametrize(
    ("networks", "message"),
    [
        (np.zeros((3, 11)), r"shape \(3, 11\); give one row per network, of shape \(12,\)"),
        (np.zeros(12), r"shape \(12,\)"),
        (np.zeros((0, 12)), r"shape \(0, 12\)"),
        (np.full((2, 12), np.nan), "missing or infinite"),
    ],
)
def test_networks_that_do_not_fit(networks, message):
    with pytest.raises(InvalidInputError, match=message):
        SeedSpreadDisplay.from_predictions(REG.get_prediction(NEW), networks)


def test_estimators_without_a_closed_form_say_what_to_do():
    linearized = PNCRegressor(engine="linearized", network=MLP(width=32), regularization=0.1, random_state=0).fit(X, Y)
    with pytest.raises(NotAvailableError, match="engine='kernel'"):
        SeedSpreadDisplay.from_estimator(linearized, NEW)
    single = SingleNetworkRegressor(engine="linearized", network=MLP(width=32), regularization=0.1, random_state=0).fit(X, Y)
    with pytest.raises(InvalidInputError, match="SingleNetworkRegressor cannot draw networks"):
        SeedSpreadDisplay.from_estimator(single, NEW)
