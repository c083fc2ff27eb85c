"""Probabilities of classes, with intervals that were made of log-odds and never leave the range from 0 to 1."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unseed._frames import pandas_for
from unseed._results import Components, FloatArray, Prediction, check_level

if TYPE_CHECKING:
    import pandas as pd


def probabilities(log_odds: FloatArray) -> FloatArray:
    """1/(1 + exp −x), without overflow."""
    from scipy.special import expit

    return np.asarray(expit(log_odds))


@dataclass(frozen=True)
class ClassPrediction:
    """Probabilities of all classes, with everything needed to draw intervals at any level.

    Attributes
    ----------
    log_odds : Prediction
        Of the second class against the first, (n_points,), or of each of several against all others, (n_points, n_classes).
    classes : array of shape (n_classes,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from unseed import PNCClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> found = PNCClassifier(random_state=0).fit(X[50:], y[50:]).get_prediction(X[48:52])
    >>> found.conf_int(0.95).shape
    (4, 2, 2)
    """

    log_odds: Prediction
    classes: npt.NDArray[Any] = field(repr=False)

    @property
    def mean(self) -> FloatArray:
        """Probabilities. Shape (n_points, n_classes)."""
        found = self._of_all(probabilities(self.log_odds.mean))
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    @property
    def standard_error(self) -> FloatArray:
        """Of the probabilities, to first order. Shape (n_points, n_classes)."""
        p = probabilities(self.log_odds.mean)
        error = p * (1 - p) * self.log_odds.standard_error
        return error if error.ndim > 1 else np.stack([error, error], axis=1)

    @property
    def degrees_of_freedom(self) -> float:
        """Of the t quantile that multiplies standard errors of log-odds."""
        return self.log_odds.degrees_of_freedom

    @property
    def components(self) -> Components:
        """Variances of the log-odds, by source."""
        return self.log_odds.components

    def conf_int(self, level: float = 0.95) -> FloatArray:
        """Pointwise confidence intervals. Shape (n_points, n_classes, 2)."""
        return self._bounds(self.log_odds.conf_int(level))

    def simultaneous(self, level: float = 0.95) -> FloatArray:
        """Bands that cover the probabilities of all classes at all these points at once. Shape (n_points, n_classes, 2)."""
        several = 1 if self.log_odds.mean.ndim == 1 else len(self.classes)  # Bonferroni's for classes; two have one band
        return self._bounds(self.log_odds.simultaneous(1 - (1 - check_level(level)) / several))

    def predict_set(self, level: float = 0.95) -> npt.NDArray[np.bool_]:
        """Classes that may be the most probable one: none is certainly more probable. Shape (n_points, n_classes)."""
        bounds = self.conf_int(level)
        return np.asarray(bounds[..., 1] >= bounds[..., 0].max(axis=1, keepdims=True))

    def summary_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Table of pandas, one row per point; columns have two levels, class and quantity."""
        pandas = pandas_for("summary_frame")
        bounds, mean, error = self.conf_int(level), self.mean, self.standard_error
        index = self.log_odds.index if self.log_odds.index is not None else pandas.RangeIndex(len(mean))
        parts = [
            pandas.DataFrame(
                {
                    "mean": mean[:, c],
                    "mean_se": error[:, c],
                    "mean_ci_lower": bounds[:, c, 0],
                    "mean_ci_upper": bounds[:, c, 1],
                },
                index=index,
            )
            for c in range(len(self.classes))
        ]
        frame: pd.DataFrame = pandas.concat(parts, axis=1, keys=list(self.classes))
        return frame

    def _of_all(self, second: FloatArray) -> FloatArray:
        return second if second.ndim > 1 else np.stack([1 - second, second], axis=1)

    def _bounds(self, log_odds: FloatArray) -> FloatArray:
        if log_odds.ndim > 2:
            return probabilities(log_odds)
        return probabilities(np.stack([-log_odds[:, ::-1], log_odds], axis=1))
