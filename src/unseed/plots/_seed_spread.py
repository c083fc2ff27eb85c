"""What another seed would have moved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unseed._results import FloatArray, Prediction, check_level
from unseed.errors import InvalidInputError
from unseed.plots._display import Display, column, finish, name_of, places, regressor_and_rows, select_output

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.pipeline import Pipeline

    from unseed._estimators import PNCRegressor
    from unseed._random import RandomState


@dataclass
class SeedSpreadDisplay(Display):
    """Single networks with other seeds, trained on the same rows, around the PNC prediction and its confidence interval.

    Make one with `from_estimator` or `from_predictions`. Over a feature (``position``) networks are curves. Without it
    points are sorted by prediction, and what is drawn is each network's difference from the PNC prediction.

    Attributes
    ----------
    networks : array of shape (n_networks, n_points)
    spread : array of shape (n_points,)
        Standard deviation over seeds.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from unseed import MLP, PNCRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> reg = PNCRegressor(network=MLP(bias_scale=1), regularization=1.0, random_state=0).fit(X[:200], y[:200])
    >>> display = SeedSpreadDisplay.from_estimator(reg, X[200:230], n_networks=10, random_state=0)
    >>> display.networks.shape
    (10, 30)
    """

    prediction: Prediction
    networks: FloatArray
    level: float = 0.95
    position: FloatArray | None = None
    position_name: str = ""

    @classmethod
    def from_estimator(
        cls,
        estimator: PNCRegressor | Pipeline,
        X: Any,
        *,
        n_networks: int = 20,
        random_state: RandomState = None,
        **options: Any,
    ) -> SeedSpreadDisplay:
        """Draw networks by `PNCRegressor.sample_networks` (kernel engine) and show them.

        Parameters
        ----------
        estimator : PNCRegressor, or a pipeline that ends in one
        X : array-like of shape (n_points, n_features)
        n_networks : int
            Number of other seeds.
        random_state : int, RandomState or None
            Of the other seeds.
        **options
            Those of `from_predictions`.
        """
        regressor, rows = regressor_and_rows(estimator, X)
        if not hasattr(regressor, "sample_networks"):
            raise InvalidInputError(
                f"a {type(regressor).__name__} cannot draw networks of other seeds; use a PNCRegressor with engine='kernel', "
                "or from_predictions with networks of your own"
            )
        networks = regressor.sample_networks(rows, n_networks, random_state=random_state)
        return cls.from_predictions(regressor.get_prediction(rows), networks, **options)

    @classmethod
    def from_predictions(
        cls,
        prediction: Prediction,
        networks: npt.ArrayLike,
        *,
        level: float = 0.95,
        position: npt.ArrayLike | None = None,
        output: int | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> SeedSpreadDisplay:
        """Show networks at hand, drawn or trained.

        Parameters
        ----------
        prediction : Prediction
        networks : array-like of shape (n_networks, n_points) or (n_networks, n_points, n_outputs)
            What single networks of other seeds predict at the same points.
        level : float
            Of the confidence interval.
        position : array-like of shape (n_points,), optional
            Where each point goes on the horizontal axis: a feature's values.
        output : int, optional
            Which of several outputs to draw.
        ax : matplotlib Axes, optional
        **kwargs
            For the networks' lines or dots (`matplotlib.lines.Line2D`).
        """
        values = np.asarray(networks, dtype=float)
        if values.ndim < 2 or values.shape[1:] != prediction.mean.shape or not len(values):
            raise InvalidInputError(
                f"networks has shape {values.shape}; give one row per network, of shape {prediction.mean.shape} each"
            )
        if not np.isfinite(values).all():
            raise InvalidInputError("networks has missing or infinite entries; leave networks out that failed")
        one = select_output(prediction, output)
        single = values if values.ndim == 2 else values[..., output]
        at = column("position", position, len(one.mean))
        return cls(one, single, check_level(level), at, name_of(position)).plot(ax, **kwargs)

    @property
    def spread(self) -> FloatArray:
        """Standard deviation over seeds, around the PNC prediction. Shape (n_points,)."""
        return np.asarray(np.sqrt(np.mean((self.networks - self.prediction.mean) ** 2, axis=0)))

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> SeedSpreadDisplay:
        """Draw on the axes given, or on new ones."""
        (ax, colours), is_sorted = self._begin(ax), self.position is None
        order, at, label = places(self.prediction.mean, self.position, self.position_name)
        networks, mean = self.networks[:, order], self.prediction.mean[order]
        low, high = self.prediction.conf_int(self.level)[order].T
        origin = mean if is_sorted else np.zeros(len(at))
        band, spread = f"{100 * self.level:g} % confidence interval, for other data", np.sqrt(np.mean(self.spread**2))
        step: Any = "mid" if is_sorted else None
        ax.fill_between(at, low - origin, high - origin, step=step, color=colours.wide_band, lw=0, label=band)
        dots = {"linestyle": "none", "marker": ".", "markersize": 2.5}
        style: dict[str, Any] = {"color": colours.observed} | (dots if is_sorted else {"lw": 0.7})
        marks = ax.plot(at, (networks - origin).T, **(style | kwargs))
        marks[0].set_label(f"{len(networks)} single networks, other seeds (standard deviation {spread:.2g})")
        if is_sorted:
            ax.axhline(0, color=colours.mean, lw=1.5, label="PNC prediction, without the seed")
        else:
            ax.plot(at, mean, color=colours.mean, lw=2, label="PNC prediction, without the seed")
        ax.set(xlabel=label, ylabel="difference from the PNC prediction" if is_sorted else "y")
        finish(ax, room=0.3)
        return self
