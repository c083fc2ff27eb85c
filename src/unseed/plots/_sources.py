"""What is drawn: predictions of an estimator, alone or at the end of a pipeline, output by output, and where points go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.pipeline import Pipeline

from unseed._checks import check_whole_number
from unseed._frames import names_of
from unseed._results import Calibration, Components, FloatArray, Prediction
from unseed.errors import InvalidInputError


def regressor_and_rows(estimator: Any, X: Any) -> tuple[Any, Any]:
    """The regressor that predicts, and the rows as it sees them: those that leave the steps before it in a pipeline."""
    if not isinstance(estimator, Pipeline):
        return estimator, X
    return estimator[-1], estimator[:-1].transform(X) if len(estimator) > 1 else X


def predicted(estimator: Any, X: Any) -> Prediction:
    """What an estimator, or the last step of a pipeline, says of the rows."""
    regressor, rows = regressor_and_rows(estimator, X)
    prediction: Prediction = regressor.get_prediction(rows)
    return prediction


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
    known, calibration = prediction.components, prediction.calibration
    parts = {name: values[:, output] for name, values in known.parts.items()}
    return replace(
        prediction,
        mean=prediction.mean[:, output],
        standard_error=prediction.standard_error[:, output],
        components=Components(known.data[:, output], known.procedural[:, output], known.noise[:, output], parts),
        calibration=calibration and Calibration(calibration.expected[:, output], calibration.scores[:, output]),
        joint_law=None,
        output_names=list(prediction.output_names[output : output + 1]),
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


def name_of(position: Any) -> str:
    """What the horizontal axis shows: the name of a series, nothing for an array."""
    return "".join(str(name) for name in names_of(position)[:1])


class Places(NamedTuple):
    """Where points go on the horizontal axis: their order, their place in that order, and what the axis is called."""

    order: npt.NDArray[np.int64]
    at: npt.NDArray[Any]
    label: str

    @classmethod
    def of(cls, mean: FloatArray, position: FloatArray | None, name: str) -> Places:
        """By position where there is one, otherwise one after the other, sorted by prediction."""
        order = np.argsort(mean if position is None else position, kind="stable")
        if position is None:
            return cls(order, np.arange(len(order)), "points, sorted by prediction")
        return cls(order, position[order], name)
