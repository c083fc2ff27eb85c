"""Predictions at many rows, a piece at a time, so that whoever waits sees how far it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from unseed._results import Components, FloatArray, Prediction

_ROWS_AT_A_TIME, _MOST_WORK = 1000, 1e11


def n_pieces(n_rows: int) -> int:
    """How often `predict_in_pieces` reports."""
    return -(-n_rows // _ROWS_AT_A_TIME)


def asks_for_seeds(estimator: Any, n_rows: int) -> bool:
    """Whether what other seeds would change can be told in seconds: each row costs the square of the training rows."""
    return n_rows * getattr(estimator, "n_rows_", 0) ** 2 <= _MOST_WORK


def predict_in_pieces(
    estimator: Any, rows: Callable[[npt.NDArray[np.intp]], Any], n_rows: int, step: Callable[[], None], *, seeds: bool
) -> Prediction:
    """Everything about the predictions at all rows, which ``rows`` gives by number; ``step`` is called after each piece."""
    pieces = []
    for piece in np.array_split(np.arange(n_rows), range(_ROWS_AT_A_TIME, n_rows, _ROWS_AT_A_TIME)):
        pieces.append(estimator.get_prediction(rows(piece), seeds=seeds))
        step()
    return pieces[0] if len(pieces) == 1 else _joined(pieces)


def _joined(pieces: list[Prediction]) -> Prediction:
    """One prediction for all rows; how errors of different pieces go together is not known."""
    first, components = pieces[0], [piece.components for piece in pieces]
    calibration = None
    if first.calibration is not None:
        calibration = replace(first.calibration, expected=_end_to_end([piece.calibration for piece in pieces], "expected"))
    return replace(
        first,
        mean=_end_to_end(pieces, "mean"),
        standard_error=_end_to_end(pieces, "standard_error"),
        components=Components(
            _end_to_end(components, "data"),
            _end_to_end(components, "procedural"),
            _end_to_end(components, "noise"),
            {name: np.concatenate([one.parts[name] for one in components]) for name in first.components.parts},
        ),
        calibration=calibration,
        joint_law=None,
        index=None,
    )


def _end_to_end(pieces: Sequence[Any], name: str) -> FloatArray:
    return np.concatenate([getattr(piece, name) for piece in pieces])
