"""How good the predictions were where the answer is known, and whether intervals held what they promise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unseed._results import FloatArray, Prediction
from unseed.plots._coverage import binomial_band

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_CHANCE = 0.95  # level of the binomial bands


@dataclass(frozen=True)
class Accuracy:
    """Errors of the predictions, in units of y, and the share of observations inside the prediction interval.

    ``r_squared`` is None where the observations do not vary. ``inside_low`` and ``inside_high`` are the Clopper–Pearson
    bounds of the share.
    """

    rmse: float
    mae: float
    r_squared: float | None
    n_inside: int
    n_rows: int
    inside_low: float
    inside_high: float

    @property
    def inside(self) -> float:
        """Share of observations inside."""
        return self.n_inside / self.n_rows

    @classmethod
    def of(cls, mean: FloatArray, observed: FloatArray, is_inside: FloatArray) -> Accuracy:
        """From predictions, observations and which of these are inside, all of shape (n_rows,)."""
        from scipy.stats import binomtest

        errors, spread = observed - mean, float(np.sum((observed - observed.mean()) ** 2))
        n_inside, n = int(is_inside.sum()), len(mean)
        band = binomtest(n_inside, n).proportion_ci(_CHANCE, method="exact")
        return cls(
            rmse=float(np.sqrt(np.mean(errors**2))),
            mae=float(np.abs(errors).mean()),
            r_squared=1 - float(np.sum(errors**2)) / spread if spread > 0 else None,
            n_inside=n_inside,
            n_rows=n,
            inside_low=float(band.low),
            inside_high=float(band.high),
        )


@dataclass(frozen=True)
class CoverageCurve:
    """Share of observations inside prediction intervals of several levels, and what chance alone would allow.

    ``low`` and ``high`` bound the share that perfectly calibrated intervals would have in 95 of 100 such samples.
    """

    nominal: FloatArray
    observed: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, prediction: Prediction, observed: FloatArray) -> CoverageCurve:
        """From predictions of one output, and what was observed; both of shape (n_rows,)."""
        shares = np.array([inside(observed, prediction.pred_int(level)).mean() for level in LEVELS])
        return cls(np.array(LEVELS), shares, *binomial_band(LEVELS, len(observed), _CHANCE).T)


def inside(observed: FloatArray, bounds: FloatArray) -> FloatArray:
    """Whether observations lie in intervals whose last axis is lower, upper."""
    return np.asarray((bounds[..., 0] <= observed) & (observed <= bounds[..., 1]))
