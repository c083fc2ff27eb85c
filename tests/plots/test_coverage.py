import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from unseed import MLP, PNCRegressor, Prediction
from unseed._results import Components
from unseed.errors import InvalidInputError
from unseed.plots import CoverageDisplay
from unseed.plots._intervals import binomial_band

RNG = np.random.default_rng(0)


def gaussian_prediction(n_points, noise=1.0, error=0.5, n_outputs=None):
    """The law is known: y has variance error² + noise, the function error²."""
    shape = (n_points,) if n_outputs is None else (n_points, n_outputs)
    variance = np.full(shape, error**2)
    return Prediction(
        np.zeros(shape), np.full(shape, error), np.inf, Components(variance, np.zeros(shape), np.full(shape, noise))
    )


def legend_of(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


class TestBand:
    @pytest.mark.parametrize("n_points", [7, 40, 200])
    @pytest.mark.parametrize("level", [0.1, 0.5, 0.95])
    def test_a_share_is_inside_exactly_if_its_clopper_pearson_interval_holds_the_level(self, n_points, level):
        low, high = binomial_band(level, n_points)[0]
        for count in range(n_points + 1):
            interval = stats.binomtest(count, n_points).proportion_ci(0.95, method="exact")
            assert (interval.low <= level <= interval.high) == (low <= count / n_points <= high)

    def test_it_holds_at_least_as_often_as_it_says(self):
        levels = np.linspace(0.05, 0.95, 19)
        counts = np.round(50 * binomial_band(levels, 50, 0.9)).astype(int)
        held = stats.binom.cdf(counts[:, 1], 50, levels) - stats.binom.cdf(counts[:, 0] - 1, 50, levels)
        assert held.min() >= 0.9


class TestShares:
    def test_by_hand(self):
        y = np.array([0.0, 0.5, -1.0, 3.0])
        display = CoverageDisplay.from_predictions(gaussian_prediction(4, noise=0.75), y, levels=[0.95, 0.5, 0.6])
        assert_allclose(display.levels, [0.5, 0.6, 0.95])
        # The standard deviation of a new y is 1: half widths 0.674, 0.842 and 1.96.
        assert_allclose(display.shares[:, 0], [0.5, 0.5, 0.75])

    def test_the_drawn_line_is_the_shares_and_the_band_is_around_the_diagonal(self):
        y = RNG.normal(scale=np.sqrt(1.25), size=300)
        _, ax = plt.subplots()
        display = CoverageDisplay.from_predictions(gaussian_prediction(300), y[:, None], ax=ax, color="red")
        assert display.ax_ is ax
        assert display.figure_ is ax.figure
        assert_allclose(ax.lines[-1].get_xydata(), np.column_stack([display.levels, display.shares[:, 0]]))
        assert ax.lines[-1].get_color() == "red"
        band = binomial_band(display.levels, 300).T
        assert ((band[0] <= display.shares[:, 0]) & (display.shares[:, 0] <= band[1])).all()
        assert ax.collections[0].get_paths()[0].contains_point((0.5, binomial_band(0.5, 300)[0, 1] - 1e-6))
        assert not ax.collections[0].get_paths()[0].contains_point((0.5, binomial_band(0.5, 300)[0, 1] + 1e-2))
        assert legend_of(display) == ["95 % range for 300 points", "as promised", "observed"]

    def test_intervals_for_the_function_have_no_binomial_band(self):
        prediction = gaussian_prediction(400)
        display = CoverageDisplay.from_predictions(prediction, RNG.normal(scale=0.5, size=400), kind="confidence")
        assert np.abs(display.shares[:, 0] - display.levels).max() < 0.09  # Kolmogorov: 1.63 / √400 at 1 %, rounded up
        assert not display.ax_.collections
        assert legend_of(display)[0] == "no band: errors of one fit go together"

    def test_every_output_has_its_own_look_and_name(self):
        frame = pd.DataFrame(RNG.normal(size=(60, 2)), columns=["a", "b"])
        targets = pd.DataFrame({"left": frame["a"], "right": frame["b"] + RNG.normal(size=60)})
        reg = PNCRegressor(network=MLP(bias_scale=1.0), regularization=0.1, random_state=0).fit(frame[:40], targets[:40])
        display = CoverageDisplay.from_estimator(reg, frame[40:], targets[40:], levels=[0.5, 0.9])
        bounds = reg.predict_interval(frame[40:], [0.5, 0.9], kind="prediction")[1]
        values = targets[40:].to_numpy()[..., None]
        assert_allclose(display.shares, ((bounds[:, :, 0] <= values) & (values <= bounds[:, :, 1])).mean(axis=0).T)
        assert legend_of(display)[2:] == ["observed: left", "observed: right"]
        first, second = display.ax_.lines[1:]
        assert first.get_linestyle() != second.get_linestyle()
        assert first.get_marker() != second.get_marker()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kind": "both"}, "kind='both'"),
        ({"levels": [0.5, 1.0]}, "levels=1.0"),
        ({"levels": []}, "levels is empty"),
        ({"band_level": 95}, "band_level=95"),
        ({"y": np.zeros(4)}, r"y has shape \(4,\) and the prediction \(5,\)"),
        ({"y": [0, 1, 2, 3, np.nan]}, "1 missing"),
    ],
)
def test_what_cannot_be_drawn_is_refused(wrong, message):
    with pytest.raises(InvalidInputError, match=message):
        CoverageDisplay.from_predictions(gaussian_prediction(5), **({"y": np.zeros(5)} | wrong))


def test_outputs_must_agree():
    with pytest.raises(InvalidInputError, match=r"\(10,\) and the prediction \(5, 2\)"):
        CoverageDisplay.from_predictions(gaussian_prediction(5, n_outputs=2), np.zeros(10))
