"""Where the uncertainty comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unseed._estimators import BlockwisePNCRegressor, PNCRegressor
from unseed._results import FloatArray, Prediction
from unseed.errors import InvalidInputError
from unseed.plots._display import (
    Display,
    Palette,
    column,
    finish,
    name_of,
    output_names,
    places,
    regressor_and_rows,
    select_output,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.pipeline import Pipeline

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
    def from_estimator(
        cls, estimator: PNCRegressor | BlockwisePNCRegressor | Pipeline, X: Any, **options: Any
    ) -> VarianceDisplay:
        """Predict at X and draw. Options are those of `from_predictions`."""
        regressor, rows = regressor_and_rows(estimator, X)
        if not isinstance(regressor, (PNCRegressor, BlockwisePNCRegressor)):
            raise InvalidInputError(
                f"the seed's variance is still in the predictions of a {type(regressor).__name__}, so its sources do not add "
                "up; draw those of a PNCRegressor or BlockwisePNCRegressor"
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
        missing, at = [name for name in sources if name not in known], column("position", position, n_points)
        names, place = output_names(prediction), name_of(position)
        return cls(known, missing, prediction.mean, names, at, place, average).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> VarianceDisplay:
        """Draw on the axes given, or on new ones."""
        n_bars = len(self.names)
        if self.average:
            ax, colours = self._begin(ax, height=2.2 + 0.6 * n_bars)
            self._draw_averages(ax, colours, kwargs)
        else:
            ax, colours = self._begin(ax)
            self._draw_points(ax, colours, kwargs)
        for name in self.missing:
            ax.plot([], [], " ", label=f"{name}: not known for these predictions, left out")
        finish(ax, room=1 / (1.7 + 0.6 * n_bars) if self.average else 0.3)  # an inch, on axes of our own
        return self

    def _draw_points(self, ax: Axes, colours: Palette, kwargs: dict[str, Any]) -> None:
        order, at, label = places(self.mean, self.position, self.position_name)
        step: Any = "mid" if self.position is None else None
        base = np.zeros(len(order))
        for name, values in self.variances.items():
            top = base + values[order, 0]
            ax.fill_between(at, base, top, step=step, label=_LABELS[name], **(_style(name, colours) | kwargs))
            base = top
        if "procedural" in self.variances:  # hatching has no edge of its own
            ax.plot(at, base, color=colours.observed, lw=0.8, drawstyle="default" if step is None else "steps-mid")
        ax.set(xlabel=label, ylabel="variance")
        ax.margins(x=0.01)
        ax.set_ylim(bottom=0)

    def _draw_averages(self, ax: Axes, colours: Palette, kwargs: dict[str, Any]) -> None:
        averages = {name: values.mean(axis=0) for name, values in self.variances.items()}
        in_a_new_y = [name for name in averages if name != "procedural"]
        unit = np.maximum(sum(averages[name] for name in in_a_new_y), np.finfo(np.float64).tiny)
        place, base = np.arange(len(self.names))[::-1], np.zeros(len(self.names))
        for name, values in averages.items():
            width = values / unit
            ax.barh(place, width, left=base, height=0.6, label=_LABELS[name], **(_style(name, colours) | kwargs))
            base = base + width
        ax.set_yticks(place, self.names)
        ax.set_xlabel(f"average variance over {len(self.mean)} points, relative to {' + '.join(in_a_new_y)}")


def _style(name: str, colours: Palette) -> dict[str, Any]:
    if name == "procedural":  # hatched, not filled: it is not there
        return {"facecolor": "none", "edgecolor": colours.observed, "hatch": "////", "linewidth": 0}
    return {"facecolor": colours.band if name == "data" else colours.wide_band, "linewidth": 0}
