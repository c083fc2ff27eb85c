"""What every display shares: axes, colours on light and dark, outputs, where points go, rows behind a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from unseed._checks import check_whole_number
from unseed._frames import names_of
from unseed._results import Components, FloatArray, Prediction
from unseed.errors import InvalidInputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


class Palette(NamedTuple):
    """Colours by what they stand for; neighbours differ in lightness, so that a grey print keeps them apart."""

    mean: str
    band: str
    wide_band: str
    observed: str
    aside: str  # what is there for comparison
    outputs: tuple[str, ...]  # one for each output, in turn

    @classmethod
    def on(cls, ax: Axes) -> Palette:
        """Colours that stand out from these axes' background."""
        from matplotlib.colors import to_rgb

        red, green, blue = to_rgb(ax.get_facecolor())
        return ON_LIGHT if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else ON_DARK


ON_LIGHT = Palette("#0b3c5d", "#56a3d9", "#d5e6f3", "#d55e00", "#8a8a8a", ("#0b3c5d", "#d55e00", "#6db6e3", "#b07aa1"))
ON_DARK = Palette("#f4f9fd", "#56a3d9", "#2a4a63", "#f5a04c", "#9a9a9a", ("#f4f9fd", "#f5a04c", "#56a3d9", "#c594b5"))


@dataclass
class Display:
    """What was drawn, as in scikit-learn: a display keeps its data, the axes and the figure."""

    ax_: Axes = field(init=False, repr=False)
    figure_: Figure | SubFigure = field(init=False, repr=False)

    def _begin(self, ax: Axes | None, width: float = 8.0, height: float = 4.5) -> tuple[Axes, Palette]:
        """The axes given, or new ones of so many inches, and colours for them."""
        if ax is None:
            try:
                import matplotlib.pyplot as plt
            except ImportError as missing:
                raise ImportError("plots need matplotlib; install it with: pip install 'unseed[plots]'") from missing
            ax = plt.subplots(figsize=(width, height), layout="constrained")[1]
        self.ax_, self.figure_ = ax, ax.figure
        return ax, Palette.on(ax)


def finish(ax: Axes, legend_at: Literal["upper left", "best"] | None = "upper left", room: float = 0.0) -> None:
    """Open frame and a legend without a box, with that share of the height left free above everything drawn."""
    low, high = ax.get_ylim()
    if room:
        ax.set_ylim(low, low + (high - low) / (1 - room))
    ax.spines[["top", "right"]].set_visible(False)
    if legend_at:
        ax.legend(frameon=False, loc=legend_at)


def regressor_and_rows(estimator: Any, X: Any) -> tuple[Any, Any]:
    """The regressor that predicts, and the rows as it sees them: those that leave the steps before it in a pipeline."""
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    if is_classifier(last):
        raise InvalidInputError(
            f"displays are for regressors so far; the intervals of a {type(last).__name__} are get_prediction(X).conf_int()"
        )
    if not isinstance(estimator, Pipeline):
        return estimator, X
    return estimator[-1], estimator[:-1].transform(X) if len(estimator) > 1 else X


def select_output(prediction: Prediction, output: int | None) -> Prediction:
    """Predictions of one output, as if it had been fitted alone."""
    if prediction.mean.ndim == 1:
        if output not in (None, 0):
            raise InvalidInputError(f"output={output!r}: the prediction has one output; leave output out")
        return prediction
    n_outputs = prediction.mean.shape[1]
    if output is None:
        raise InvalidInputError(f"the prediction has {n_outputs} outputs; draw them one at a time, with output=0 and so on")
    if check_whole_number("output", output, at_least=0) >= n_outputs:
        raise InvalidInputError(f"output={output} is not one of the {n_outputs} outputs; they are counted from 0")
    one = combined([prediction], lambda arrays: arrays[0][:, output])
    calibration = one.calibration and replace(one.calibration, scores=one.calibration.scores[:, output])
    return replace(one, calibration=calibration, output_names=list(prediction.output_names[output : output + 1]))


def combined(predictions: Sequence[Prediction], how: Callable[[list[FloatArray]], FloatArray]) -> Prediction:
    """A prediction whose arrays are made of those of others; how errors go together at its points is not known."""

    def all_of(name: str) -> FloatArray:
        return how([attrgetter(name)(prediction) for prediction in predictions])

    first, made_on = predictions[0], [cast(Any, one).on_link for one in predictions if hasattr(one, "on_link")]
    if made_on:  # the scale of a link, from which they are mapped anew
        asked = cast(Any, first)
        return cast(Prediction, asked.of(combined(made_on, how), asked.loss, asked.dispersion))
    parts = {name: how([one.components.parts[name] for one in predictions]) for name in first.components.parts}
    return replace(
        first,
        mean=all_of("mean"),
        standard_error=all_of("standard_error"),
        components=Components(all_of("components.data"), all_of("components.procedural"), all_of("components.noise"), parts),
        calibration=first.calibration and replace(first.calibration, expected=all_of("calibration.expected")),
        joint_law=None,
    )


def output_names(prediction: Prediction) -> list[str]:
    """Names of the outputs: those of the user's frame, or y, or y0, y1 and so on."""
    if prediction.output_names:
        return [str(name) for name in prediction.output_names]
    return ["y"] if prediction.mean.ndim == 1 else [f"y{i}" for i in range(prediction.mean.shape[1])]


def column(name: str, values: npt.ArrayLike | None, n_points: int) -> FloatArray | None:
    """One number for each point, or None where nothing was given."""
    if values is None:
        return None
    numbers = np.asarray(values, dtype=float).ravel()
    if len(numbers) != n_points:
        raise InvalidInputError(f"{name} has {len(numbers)} entries for {n_points} predictions; give one for each")
    return numbers


def positions(position: Any, n_points: int) -> tuple[FloatArray | None, str]:
    """Where points go on the horizontal axis, and what it shows: the name of a series, nothing for an array."""
    return column("position", position, n_points), "".join(str(name) for name in names_of(position)[:1])


def places(mean: FloatArray, position: FloatArray | None, name: str) -> tuple[npt.NDArray[np.intp], npt.NDArray[Any], str]:
    """Order of the points on the horizontal axis, where they go in that order, and what the axis is called.

    By position where there is one, otherwise one after the other, sorted by prediction.
    """
    order = np.argsort(mean if position is None else position, kind="stable")
    if position is None:
        return order, np.arange(len(order)), "points, sorted by prediction"
    return order, position[order], name
