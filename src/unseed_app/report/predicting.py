"""Predictions at many rows, a piece at a time, so that whoever waits sees how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from unseed._results import Calibration, Components, FloatArray, Prediction
from unseed_app.report.held_out import HeldOut

_ROWS_AT_A_TIME, _MOST_WORK = 1000, 1e11


def n_pieces(rows: HeldOut) -> int:
    """How often `predict_all` reports."""
    return -(-len(rows.X) // _ROWS_AT_A_TIME)


def asks_for_seeds(estimator: Any, rows: HeldOut) -> bool:
    """Whether what other seeds would change can be told in seconds: each row costs the square of the training rows."""
    return len(rows.X) * getattr(estimator, "n_rows_", 0) ** 2 <= _MOST_WORK


def predict_all(estimator: Any, rows: HeldOut, step: Callable[[], None]) -> Prediction:
    """Everything about the predictions at all rows; ``step`` is called after each piece."""
    seeds, pieces = asks_for_seeds(estimator, rows), []
    for start in range(0, len(rows.X), _ROWS_AT_A_TIME):
        chosen = np.arange(start, min(start + _ROWS_AT_A_TIME, len(rows.X)))
        pieces.append(estimator.get_prediction(rows.taken(chosen), seeds=seeds))
        step()
    return pieces[0] if len(pieces) == 1 else _joined(pieces)


def _joined(pieces: list[Prediction]) -> Prediction:
    """One prediction for all rows; how errors of different pieces go together is not known."""
    first = pieces[0]
    every = [piece.components for piece in pieces]
    components = Components(
        _end_to_end(one.data for one in every),
        _end_to_end(one.procedural for one in every),
        _end_to_end(one.noise for one in every),
        {name: _end_to_end(one.parts[name] for one in every) for name in first.components.parts},
    )
    calibration = None
    if first.calibration is not None:
        expected = _end_to_end(piece.calibration.expected for piece in pieces if piece.calibration is not None)
        calibration = Calibration(expected, first.calibration.scores)
    return Prediction(
        _end_to_end(piece.mean for piece in pieces),
        _end_to_end(piece.standard_error for piece in pieces),
        first.degrees_of_freedom,
        components,
        calibration,
        output_names=first.output_names,
    )


def _end_to_end(arrays: Iterable[FloatArray]) -> FloatArray:
    return np.concatenate(list(arrays))
