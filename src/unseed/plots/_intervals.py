"""Predictions with the intervals around them, and how often these hold beside how often they say they do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from unseed._results import FloatArray, Prediction, check_level
from unseed.errors import InvalidInputError
from unseed.plots._display import Display, column, finish, output_names, places, positions, regressor_and_rows, select_output

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.pipeline import Pipeline

    from unseed._estimators.regressor import IntervalRegressor

Kind = Literal["prediction", "confidence"]

LEVELS = tuple(float(level) for level in np.round(np.linspace(0.05, 0.95, 19), 2))
"""Nominal levels that are looked at where none are given."""

_WHAT_IS_INSIDE = {
    "prediction": "share of y inside the prediction interval",
    "confidence": "share of points with f inside the confidence interval",
}


@dataclass
class IntervalDisplay(Display):
    """Predictions with their intervals, points sorted by prediction or by one feature.

    Make one with `from_estimator` or `from_predictions`.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from unseed import PNCRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> reg = PNCRegressor(random_state=0).fit(X[:200], y[:200])
    >>> display = IntervalDisplay.from_estimator(reg, X[200:230], y[200:230])
    >>> display.ax_.get_ylabel()
    'y'
    """

    prediction: Prediction
    level: float
    position: FloatArray | None = None
    observed: FloatArray | None = None
    position_name: str = ""

    @classmethod
    def from_estimator(
        cls, estimator: IntervalRegressor | Pipeline, X: Any, y: npt.ArrayLike | None = None, **options: Any
    ) -> IntervalDisplay:
        """Predict at X and draw; ``y``, where known, is drawn as points. Options are those of `from_predictions`."""
        regressor, rows = regressor_and_rows(estimator, X)
        return cls.from_predictions(regressor.get_prediction(rows), y, **options)

    @classmethod
    def from_predictions(
        cls,
        prediction: Prediction,
        y: npt.ArrayLike | None = None,
        *,
        level: float = 0.95,
        position: npt.ArrayLike | None = None,
        output: int | None = None,
        ax: Axes | None = None,
    ) -> IntervalDisplay:
        """Draw predictions at hand.

        Parameters
        ----------
        prediction : Prediction
        y : array-like of shape (n_points,), optional
            Observed values.
        level : float
        position : array-like of shape (n_points,), optional
            Where each point goes on the horizontal axis: a feature's values give a continuous band. Without it the
            points are sorted by prediction.
        output : int, optional
            Which of several outputs to draw; ``y`` is that output's.
        ax : matplotlib Axes, optional
        """
        prediction, n_points = select_output(prediction, output), len(prediction.mean)
        at, name = positions(position, n_points)
        return cls(prediction, level, at, column("y", y, n_points), name).plot(ax)

    def plot(self, ax: Axes | None = None) -> IntervalDisplay:
        """Draw on the axes given, or on new ones."""
        (ax, colours), percent = self._begin(ax), f"{100 * self.level:g} %"
        order, at, label = places(self.prediction.mean, self.position, self.position_name)
        low, high = self.prediction.conf_int(self.level)[order].T
        if self.position is None:
            wide, for_one = self.prediction.pred_int(self.level)[order].T, "prediction interval, for one new y"
            ax.vlines(at, *wide, color=colours.wide_band, lw=3, label=f"{percent} {for_one}")
            ax.vlines(at, low, high, color=colours.band, lw=3, label=f"{percent} confidence interval, for the function")
        else:
            ax.fill_between(at, low, high, color=colours.band, alpha=0.5, lw=0, label=f"{percent} confidence band")
        line = "." if self.position is None else "-"
        ax.plot(at, self.prediction.mean[order], line, ms=4, color=colours.mean, label="prediction")
        if self.observed is not None:
            ax.plot(at, self.observed[order], "x", color=colours.observed, ms=4, label="observed")
        ax.set(xlabel=label, ylabel="y")
        finish(ax)
        return self


def binomial_band(levels: npt.ArrayLike, n_points: int, band_level: float = 0.95) -> FloatArray:
    """Shares of n independent points that are in keeping with each nominal level, by the exact binomial law.

    A share is inside exactly if its Clopper–Pearson interval contains the nominal level.

    Returns
    -------
    array of shape (n_levels, 2)

    Examples
    --------
    >>> binomial_band([0.5, 0.95], 100)
    array([[0.4 , 0.6 ],
           [0.9 , 0.99]])
    """
    from scipy.stats import binom

    nominal, tail = np.atleast_1d(np.asarray(levels, dtype=float)), (1 - band_level) / 2
    counts = [binom.ppf(tail, n_points, nominal), binom.ppf(1 - tail, n_points, nominal)]
    return np.stack(counts, axis=-1) / n_points


def shares_inside(
    prediction: Prediction, y: FloatArray, levels: Sequence[float] | FloatArray, kind: Kind = "prediction"
) -> FloatArray:
    """Share of points that the intervals hold. Shape (n_levels, n_outputs)."""
    bounds = [(prediction.pred_int if kind == "prediction" else prediction.conf_int)(level) for level in levels]
    inside = [(one[..., 0] <= y) & (y <= one[..., 1]) for one in bounds]
    return np.asarray(np.reshape(inside, (len(bounds), len(y), -1)).mean(axis=1))


@dataclass
class CoverageDisplay(Display):
    """Nominal level against the share of held-out points that the intervals really held: on the diagonal they keep their word.

    Make one with `from_estimator` or `from_predictions`. Around the diagonal is the range where the share should be for
    so many independent points, level by level. It knows of the luck of the held-out rows alone, not of that of the
    training rows.

    Attributes
    ----------
    levels : array of shape (n_levels,)
    shares : array of shape (n_levels, n_outputs)
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from unseed import MLP, PNCRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> reg = PNCRegressor(network=MLP(bias_scale=1), regularization=1.0, random_state=0).fit(X[:200], y[:200])
    >>> display = CoverageDisplay.from_estimator(reg, X[200:], y[200:], levels=[0.5, 0.9])
    >>> display.shares.shape
    (2, 1)
    """

    levels: FloatArray
    shares: FloatArray
    n_points: int
    names: Sequence[str] = ("y",)
    kind: Kind = "prediction"
    band_level: float = 0.95

    @classmethod
    def from_estimator(
        cls, estimator: IntervalRegressor | Pipeline, X: Any, y: npt.ArrayLike, **options: Any
    ) -> CoverageDisplay:
        """Predict at held-out rows and count. Options are those of `from_predictions`."""
        regressor, rows = regressor_and_rows(estimator, X)
        return cls.from_predictions(regressor.get_prediction(rows), y, **options)

    @classmethod
    def from_predictions(
        cls,
        prediction: Prediction,
        y: npt.ArrayLike,
        *,
        kind: Kind = "prediction",
        levels: Sequence[float] = LEVELS,
        band_level: float = 0.95,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> CoverageDisplay:
        """Count how many points the intervals at hand hold.

        Parameters
        ----------
        prediction : Prediction
        y : array-like, shape of the mean
            Observations that training did not see; with ``kind="confidence"`` the true function at the points, as a
            simulation knows it.
        kind : {"prediction", "confidence"}
            Prediction intervals against observations, or confidence intervals against the function. The latter have
            no band: errors of one fitted function at neighbouring points go together, and no binomial law holds.
        levels : sequence of float
            Nominal levels.
        band_level : float
            Level of the band around the diagonal.
        ax : matplotlib Axes, optional
        **kwargs
            For the lines of the shares (`matplotlib.lines.Line2D`).
        """
        if kind not in _WHAT_IS_INSIDE:
            raise InvalidInputError(f"kind={kind!r} is not known; use 'prediction' or 'confidence'")
        nominal = np.array(sorted(check_level(level, "levels") for level in levels))
        if not len(nominal):
            raise InvalidInputError("levels is empty; give at least one level, such as 0.95")
        observed = _like_the_mean(y, prediction)
        shares, band_level = shares_inside(prediction, observed, nominal, kind), check_level(band_level, "band_level")
        return cls(nominal, shares, len(observed), output_names(prediction), kind, band_level).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> CoverageDisplay:
        """Draw on the axes given, or on new ones."""
        ax, colours = self._begin(ax, 5.2, 5.0)
        if self.kind == "prediction":
            grid = np.linspace(0, 1, 501)
            label = f"{100 * self.band_level:g} % range for {self.n_points} points"
            band = binomial_band(grid, self.n_points, self.band_level).T
            ax.fill_between(grid, *band, color=colours.wide_band, lw=0, label=label)
        else:
            ax.plot([], [], " ", label="no band: errors of one fit go together")
        ax.plot([0, 1], [0, 1], "--", color=colours.aside, lw=1, label="as promised")
        looks = zip(cycle(colours.outputs), cycle(("-", "--", "-.", ":")), cycle(("o", "s", "^", "D", "v")), strict=False)
        for name, shares, (colour, line, marker) in zip(self.names, self.shares.T, looks, strict=False):
            label = "observed" if len(self.names) == 1 else f"observed: {name}"
            style: dict[str, Any] = {"color": colour, "linestyle": line, "marker": marker, "markersize": 4, "label": label}
            ax.plot(self.levels, shares, **(style | {"clip_on": False} | kwargs))  # a share of 1 is at the edge
        ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="nominal level", ylabel=_WHAT_IS_INSIDE[self.kind])
        finish(ax, "best")
        return self


def _like_the_mean(y: npt.ArrayLike, prediction: Prediction) -> FloatArray:
    values = np.asarray(y, dtype=float)
    if values.size == prediction.mean.size and prediction.mean.ndim == 1:
        values = values.reshape(prediction.mean.shape)  # a column for a single output is welcome
    if values.shape != prediction.mean.shape or not len(values):
        raise InvalidInputError(f"y has shape {values.shape} and the prediction {prediction.mean.shape}; give one y for each")
    broken = int(np.sum(~np.isfinite(values)))
    if broken:
        raise InvalidInputError(f"y has {broken} missing or infinite entries; leave these points out of X and y")
    return values
