"""Where the uncertainty comes from: variance by source, and what another seed would have moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unseed._estimators import PNCRegressor
from unseed._results import FloatArray, Prediction, check_level
from unseed.errors import InvalidInputError
from unseed.plots._display import Display, finish, output_names, places, positions, regressor_and_rows, select_output

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.pipeline import Pipeline

    from unseed._random import RandomState

_LABELS = {
    "data": "data: what the rows leave open (confidence interval)",
    "noise": "noise: one new y scatters around the function",
    "procedural": "procedural: another seed would move a single network;\nPNC has taken it out, no interval contains it",
}
"""In the order of the stack: what a new y's variance is made of, then what it is spared."""


@dataclass
class VarianceDisplay(Display):
    """Variance by source: data, noise and, hatched on top, the procedural variance that PNC has taken out.

    Make one with `from_estimator` or `from_predictions`. The filled areas add up to the variance of a new y around the PNC
    prediction. The hatched one is not part of it: a single network of another seed *would* have that variance as well.

    Attributes
    ----------
    variances : mapping from str to array of shape (n_points, n_outputs)
        Sources that are known, in the order of the stack.
    missing : list of str
        Sources that are not known for these predictions and are left out.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from unseed import MLP, PNCRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> reg = PNCRegressor(network=MLP(bias_scale=1), regularization=1.0, random_state=0).fit(X[:200], y[:200])
    >>> display = VarianceDisplay.from_estimator(reg, X[200:])
    >>> list(display.variances)
    ['data', 'noise', 'procedural']
    """

    variances: Mapping[str, FloatArray]
    missing: Sequence[str]
    mean: FloatArray
    names: Sequence[str] = ("y",)
    position: FloatArray | None = None
    position_name: str = ""
    average: bool = False

    @classmethod
    def from_estimator(cls, estimator: PNCRegressor | Pipeline, X: Any, **options: Any) -> VarianceDisplay:
        """Predict at X and draw. Options are those of `from_predictions`."""
        regressor, rows = regressor_and_rows(estimator, X)
        if not isinstance(regressor, PNCRegressor):
            raise InvalidInputError(
                f"the seed's variance is still in the predictions of a {type(regressor).__name__}, so its sources do not add "
                "up; draw those of a PNCRegressor"
            )
        return cls.from_predictions(regressor.get_prediction(rows), **options)

    @classmethod
    def from_predictions(
        cls,
        prediction: Prediction,
        *,
        position: npt.ArrayLike | None = None,
        average: bool = False,
        output: int | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> VarianceDisplay:
        """Draw predictions at hand.

        Parameters
        ----------
        prediction : Prediction
            Of a PNC regressor.
        position : array-like of shape (n_points,), optional
            Where each point goes on the horizontal axis: a feature's values. Without it the points are sorted by prediction.
        average : bool
            One bar for each output instead of one stack for each point: the points' average, in units of data + noise.
        output : int, optional
            Which of several outputs to draw point by point.
        ax : matplotlib Axes, optional
        **kwargs
            For the filled areas or bars, such as ``alpha``.
        """
        if average and (position is not None or output is not None):
            raise InvalidInputError("average=True has one bar for each output; leave position and output out")
        if not average:
            prediction = select_output(prediction, output)
        n_points = len(prediction.mean)
        sources = {name: getattr(prediction.components, name).reshape(n_points, -1) for name in _LABELS}
        known = {name: values for name, values in sources.items() if np.isfinite(values).all()}
        if "data" not in known and "noise" not in known:
            raise InvalidInputError("neither data nor noise variance of this prediction is known; there is nothing to draw")
        missing, names = [name for name in sources if name not in known], output_names(prediction)
        return cls(known, missing, prediction.mean, names, *positions(position, n_points), average).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> VarianceDisplay:
        """Draw on the axes given, or on new ones."""
        ax, colours = self._begin(ax, height=2.2 + 0.6 * len(self.names) if self.average else 4.5)
        styles: dict[str, dict[str, Any]] = {
            "data": {"facecolor": colours.band},
            "noise": {"facecolor": colours.wide_band},
            "procedural": {"facecolor": "none", "edgecolor": colours.observed, "hatch": "////"},  # not filled: it is not there
        }
        styles = {name: {"linewidth": 0, "label": _LABELS[name]} | style | kwargs for name, style in styles.items()}
        if self.average:
            self._draw_averages(ax, styles)
        else:
            self._draw_points(ax, styles, colours.observed)
        for name in self.missing:
            ax.plot([], [], " ", label=f"{name}: not known for these predictions, left out")
        finish(ax, room=1 / (1.7 + 0.6 * len(self.names)) if self.average else 0.3)  # an inch, on axes of our own
        return self

    def _draw_points(self, ax: Axes, styles: Mapping[str, Any], edge: str) -> None:
        order, at, label = places(self.mean, self.position, self.position_name)
        step: Any = "mid" if self.position is None else None
        base = np.zeros(len(order))
        for name, values in self.variances.items():
            top = base + values[order, 0]
            ax.fill_between(at, base, top, step=step, **styles[name])
            base = top
        if "procedural" in self.variances:  # hatching has no edge of its own
            ax.plot(at, base, color=edge, lw=0.8, drawstyle="default" if step is None else "steps-mid")
        ax.set(xlabel=label, ylabel="variance")
        ax.margins(x=0.01)
        ax.set_ylim(bottom=0)

    def _draw_averages(self, ax: Axes, styles: Mapping[str, Any]) -> None:
        averages = {name: values.mean(axis=0) for name, values in self.variances.items()}
        in_a_new_y = [name for name in averages if name != "procedural"]
        unit = np.maximum(sum(averages[name] for name in in_a_new_y), np.finfo(np.float64).tiny)
        place, base = np.arange(len(self.names))[::-1], np.zeros(len(self.names))
        for name, values in averages.items():
            width = values / unit
            ax.barh(place, width, left=base, height=0.6, **styles[name])
            base = base + width
        ax.set_yticks(place, self.names)
        ax.set_xlabel(f"average variance over {len(self.mean)} points, relative to {' + '.join(in_a_new_y)}")


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
        return cls(one, single, check_level(level), *positions(position, len(one.mean))).plot(ax, **kwargs)

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
        band = f"{100 * self.level:g} % confidence interval, for other data"
        step: Any = "mid" if is_sorted else None
        ax.fill_between(at, low - origin, high - origin, step=step, color=colours.wide_band, lw=0, label=band)
        style: dict[str, Any] = {"linestyle": "none", "marker": ".", "markersize": 2.5} if is_sorted else {"lw": 0.7}
        marks = ax.plot(at, (networks - origin).T, **({"color": colours.observed} | style | kwargs))
        spread = np.sqrt(np.mean(self.spread**2))
        marks[0].set_label(f"{len(networks)} single networks, other seeds (standard deviation {spread:.2g})")
        line: dict[str, Any] = {"color": colours.mean, "label": "PNC prediction, without the seed"}
        if is_sorted:
            ax.axhline(0, lw=1.5, **line)
        else:
            ax.plot(at, mean, lw=2, **line)
        ax.set(xlabel=label, ylabel="difference from the PNC prediction" if is_sorted else "y")
        finish(ax, room=0.3)
        return self
