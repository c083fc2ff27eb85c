"""What an estimator says at all rows, output by output, and how good that was where the answer is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unseed._results import FloatArray, Prediction
from unseed.plots._display import combined, select_output
from unseed.plots._intervals import binomial_band, shares_inside
from unseed_app.report.features import Band, Features, Reason
from unseed_app.report.held_out import Indices

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_BINS = 10
_CHANCE = 0.95  # level of the binomial bands
_ROWS_AT_A_TIME, _MOST_WORK = 1000, 1e11


@dataclass(frozen=True)
class Accuracy:
    """Errors of the predictions, in units of y, and the share of observations inside the prediction interval."""

    rmse: float
    mae: float
    r_squared: float | None  # None where the observations do not vary
    n_inside: int
    n_rows: int
    inside_low: float  # Clopper–Pearson bounds of the share
    inside_high: float

    @property
    def inside(self) -> float:
        """Share of observations inside."""
        return self.n_inside / self.n_rows

    @classmethod
    def of(cls, prediction: Prediction, observed: FloatArray, level: float) -> Accuracy:
        """Of predictions of one output, given what was observed, of shape (n_rows,)."""
        from scipy.stats import binomtest

        errors, spread, n_rows = observed - prediction.mean, float(np.sum((observed - observed.mean()) ** 2)), len(observed)
        n_inside = round(float(shares_inside(prediction, observed, [level])[0, 0]) * n_rows)
        band = binomtest(n_inside, n_rows).proportion_ci(_CHANCE, method="exact")
        rmse, mae = float(np.sqrt(np.mean(errors**2))), float(np.abs(errors).mean())
        r_squared = 1 - float(np.sum(errors**2)) / spread if spread > 0 else None
        return cls(rmse, mae, r_squared, n_inside, n_rows, float(band.low), float(band.high))


@dataclass(frozen=True)
class CoverageCurve:
    """Share of observations inside prediction intervals of several levels, and what chance alone would allow."""

    nominal: FloatArray
    observed: FloatArray
    low: FloatArray  # bounds of the share that perfectly calibrated intervals would have in 95 of 100 such samples
    high: FloatArray


@dataclass(frozen=True)
class Places:
    """How many observations are where in their laws, from least to greatest, in bins of equal chance."""

    counts: FloatArray
    low: FloatArray  # what chance allows a bin in 95 of 100 such samples
    high: FloatArray

    @classmethod
    def of(cls, prediction: Prediction, observed: FloatArray) -> Places:
        """Of predictions of one output, given what was observed, of shape (n_rows,).

        Where a value has a chance of its own, as counts have, it is spread evenly over that.
        """
        below, up_to = prediction.cdf(np.nextafter(observed, -np.inf))[:, None], prediction.cdf(observed)[:, None]
        edges = np.linspace(0.0, 1.0, _BINS + 1)
        spread = np.clip((edges - below) / np.maximum(up_to - below, 1e-9), 0.0, 1.0)
        counts = np.diff(spread, axis=1).sum(axis=0)
        low, high = len(observed) * binomial_band((1 / _BINS,), len(observed), _CHANCE)[0]
        return cls(counts, np.full(_BINS, low), np.full(_BINS, high))


@dataclass(frozen=True)
class Output:
    """One output at every row; arrays have shape (n_rows,), and what is not known is None."""

    name: str
    mean: FloatArray
    standard_error: FloatArray
    confidence: FloatArray  # half widths of the two intervals
    prediction: FloatArray | None
    seed: FloatArray | None  # standard deviations over seeds, and of an observation
    noise: FloatArray | None
    parts: Mapping[str, FloatArray]  # variances that the squared standard error is the sum of, but for those that are zero
    observed: FloatArray | None
    accuracy: Accuracy | None
    coverage: CoverageCurve | None
    places: Places | None
    bands: tuple[Band, ...]
    reasons: Mapping[int, tuple[Reason, ...]]  # by row
    draws: FloatArray | None  # single networks of other seeds less ours, (n_rows_with_seeds, n_seeds)

    @classmethod
    def of(cls, k: int, whole: Prediction, draws: FloatArray | None, features: Features) -> Output:
        """The k-th output of a prediction."""
        rows, level, one = features.rows, features.level, select_output(whole, k)
        observed = None if rows.y is None else rows.y[:, k]
        prediction = _known(np.diff(one.pred_int(level))[:, 0] / 2)
        new = np.flatnonzero(~rows.is_seen)
        accuracy = coverage = places = None
        if observed is not None and len(new):  # what the training has seen says nothing of what it promises of new rows
            judged, answers = combined([one], lambda arrays: arrays[0][new]), observed[new]
            accuracy = Accuracy.of(judged, answers, level)
            if prediction is not None:
                band = binomial_band(LEVELS, len(new), _CHANCE).T
                coverage = CoverageCurve(np.array(LEVELS), shares_inside(judged, answers, LEVELS)[:, 0], *band)
                places = Places.of(judged, answers)
        return cls(
            name=rows.target_names[k],
            mean=one.mean,
            standard_error=one.standard_error,
            confidence=np.diff(one.conf_int(level))[:, 0] / 2,
            prediction=prediction,
            seed=_known(np.sqrt(np.maximum(one.components.procedural, 0))),
            noise=_known(np.sqrt(np.maximum(one.components.noise, 0))),
            parts={name: values for name, values in one.components.parts.items() if values.any()},
            observed=observed,
            accuracy=accuracy,
            coverage=coverage,
            places=places,
            bands=tuple(band[k] for band in features.bands),
            reasons=features.reasons(k),
            draws=None if draws is None else draws[..., k],
        )


def _known(values: FloatArray) -> FloatArray | None:
    return values if np.isfinite(values).all() else None


def n_pieces(n_rows: int) -> int:
    """How often `predict_in_pieces` reports."""
    return -(-n_rows // _ROWS_AT_A_TIME)


def asks_for_seeds(estimator: Any, n_rows: int) -> bool:
    """Whether what other seeds would change can be told in seconds: each row costs the square of the training rows."""
    return bool(n_rows * estimator.n_rows_**2 <= _MOST_WORK)


def predict_in_pieces(
    estimator: Any, rows: Callable[[Indices], Any], n_rows: int, step: Callable[[], None], *, seeds: bool
) -> Prediction:
    """Everything about the predictions at all rows, which ``rows`` gives by number; ``step`` is called after each piece."""
    pieces = []
    for piece in np.array_split(np.arange(n_rows), range(_ROWS_AT_A_TIME, n_rows, _ROWS_AT_A_TIME)):
        pieces.append(estimator.get_prediction(rows(piece), seeds=seeds))
        step()
    return pieces[0] if len(pieces) == 1 else replace(combined(pieces, np.concatenate), index=None)
