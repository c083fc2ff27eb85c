"""What people look at, in colours that are safe for colour-blind readers and differ in lightness for grey prints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from unseed.errors import InvalidInputError
from unseed.networks import MLP
from unseed.results import FloatArray, Prediction

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from unseed.estimators import PNCRegressor

MEAN, BAND, WIDE_BAND, OBSERVED = "#0b3c5d", "#56a3d9", "#d5e6f3", "#d55e00"


@dataclass
class IntervalDisplay:
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
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure | SubFigure = field(init=False, repr=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: PNCRegressor,
        X: Any,
        y: npt.ArrayLike | None = None,
        *,
        level: float = 0.95,
        position: npt.ArrayLike | None = None,
        ax: Axes | None = None,
    ) -> IntervalDisplay:
        """Predict at X and draw; ``y``, where known, is drawn as points."""
        return cls.from_predictions(estimator.get_prediction(X), y, level=level, position=position, ax=ax)

    @classmethod
    def from_predictions(
        cls,
        prediction: Prediction,
        y: npt.ArrayLike | None = None,
        *,
        level: float = 0.95,
        position: npt.ArrayLike | None = None,
        ax: Axes | None = None,
    ) -> IntervalDisplay:
        """Draw predictions at hand.

        Parameters
        ----------
        prediction : Prediction
            Of one output.
        y : array-like of shape (n_points,), optional
            Observed values.
        level : float
        position : array-like of shape (n_points,), optional
            Where each point goes on the horizontal axis: a feature's values give a continuous band. Without it the
            points are sorted by prediction.
        ax : matplotlib Axes, optional
        """
        if prediction.mean.ndim != 1:
            raise InvalidInputError(f"the prediction has {prediction.mean.shape[1]} outputs; draw them one at a time")
        n_points = len(prediction.mean)
        display = cls(prediction, level, _column("position", position, n_points), _column("y", y, n_points))
        return display.plot(ax)

    def plot(self, ax: Axes | None = None) -> IntervalDisplay:
        """Draw on the axes given, or on new ones."""
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
        if self.position is None:
            self._draw_sorted(ax)
        else:
            self._draw_band(ax, self.position)
        ax.set_ylabel("y")
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, loc="upper left")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_sorted(self, ax: Axes) -> None:
        order = np.argsort(self.prediction.mean, kind="stable")
        place = np.arange(len(order))
        confidence, observation = (
            self.prediction.conf_int(self.level)[order],
            self.prediction.pred_int(self.level)[order],
        )
        percent = f"{100 * self.level:g} %"
        ax.vlines(place, *observation.T, color=WIDE_BAND, lw=3, label=f"{percent} prediction interval, for one new y")
        ax.vlines(place, *confidence.T, color=BAND, lw=3, label=f"{percent} confidence interval, for the function")
        ax.plot(place, self.prediction.mean[order], ".", color=MEAN, ms=4, label="prediction")
        if self.observed is not None:
            ax.plot(place, self.observed[order], "x", color=OBSERVED, ms=4, label="observed")
        ax.set_xlabel("points, sorted by prediction")

    def _draw_band(self, ax: Axes, position: FloatArray) -> None:
        order = np.argsort(position, kind="stable")
        at, (low, high) = position[order], self.prediction.conf_int(self.level)[order].T
        ax.fill_between(at, low, high, color=BAND, alpha=0.5, lw=0, label=f"{100 * self.level:g} % confidence band")
        ax.plot(at, self.prediction.mean[order], color=MEAN, label="prediction")
        if self.observed is not None:
            ax.plot(position, self.observed, "x", color=OBSERVED, ms=4, label="observed")


@dataclass
class RelevanceDisplay:
    """How much each feature moves the chosen network: its relevance, largest first.

    A relevance is the feature's factor in the first layer, on standardised features, relative to the largest.
    Make one with `from_estimator`.

    Attributes
    ----------
    names : list of str
    relevance : array of shape (n_features,)
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from unseed import PNCRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> display = RelevanceDisplay.from_estimator(PNCRegressor(random_state=0).fit(X[:100], y[:100]))
    >>> display.ax_.get_xlabel()
    'relevance'
    """

    names: list[str]
    relevance: FloatArray
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure | SubFigure = field(init=False, repr=False)

    @classmethod
    def from_estimator(cls, estimator: PNCRegressor, *, max_features: int = 20, ax: Axes | None = None) -> RelevanceDisplay:
        """Draw the relevances of a fitted estimator, at most ``max_features`` of them."""
        check_is_fitted(estimator, "is_fitted_")
        network = estimator.network_
        if not isinstance(network, MLP):
            raise InvalidInputError("relevances are those of an MLP; a torch module has none")
        factors = np.array(network.first_layer_factors(estimator.n_features_in_))
        names = getattr(estimator, "feature_names_in_", None)
        named = [str(name) for name in names] if names is not None else [f"x{i}" for i in range(len(factors))]
        order = np.argsort(-factors, kind="stable")[:max_features]
        largest = max(factors.max(), np.finfo(np.float64).tiny)
        return cls([named[i] for i in order], factors[order] / largest).plot(ax)

    def plot(self, ax: Axes | None = None) -> RelevanceDisplay:
        """Draw on the axes given, or on new ones."""
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots(figsize=(6, 0.8 + 0.28 * len(self.names)), layout="constrained")
        place = np.arange(len(self.names))[::-1]
        ax.barh(place, self.relevance, color=BAND, height=0.65)
        ax.set_yticks(place, self.names)
        ax.set_xlabel("relevance")
        if len(self.names) > 1 and np.ptp(self.relevance) == 0:
            ax.set_title("one scale for all features: relevances of their own did not pay", loc="left", fontsize="small")
        ax.set_xlim(0, 1.02)
        ax.spines[["top", "right"]].set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _column(name: str, values: npt.ArrayLike | None, n_points: int) -> FloatArray | None:
    if values is None:
        return None
    column = np.asarray(values, dtype=float).ravel()
    if len(column) != n_points:
        raise InvalidInputError(f"{name} has {len(column)} entries for {n_points} predictions; give one for each")
    return column
