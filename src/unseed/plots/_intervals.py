"""Predictions with the intervals around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from unseed._results import FloatArray, Prediction
from unseed.plots._display import Display, column, finish, name_of, places, predicted, select_output

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.pipeline import Pipeline

    from unseed._estimators.regressor import IntervalRegressor


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
        return cls.from_predictions(predicted(estimator, X), y, **options)

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
        at, observed = column("position", position, n_points), column("y", y, n_points)
        return cls(prediction, level, at, observed, name_of(position)).plot(ax)

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
