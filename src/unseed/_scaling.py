"""Units: X and y as the user has them, and as the network sees them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.preprocessing import StandardScaler

from unseed._results import FloatArray
from unseed.errors import InvalidInputError


@dataclass(frozen=True)
class Scaling:
    """Shift and scale of every feature and output; constant columns are only shifted."""

    x_mean: FloatArray
    x_scale: FloatArray
    y_mean: FloatArray
    y_scale: FloatArray

    @classmethod
    def fit(cls, X: FloatArray, y: FloatArray, *, active: bool) -> Scaling:
        """Mean and standard deviation of X (n, ...) and y (n, k), or zeros and ones when not active."""
        if not active:
            return cls(np.zeros(X.shape[1:]), np.ones(X.shape[1:]), np.zeros(y.shape[1]), np.ones(y.shape[1]))
        columns = X.reshape(len(X), -1)
        of_x, of_y = StandardScaler().fit(columns), StandardScaler().fit(y)
        for name, scaler in (("X", of_x), ("y", of_y)):
            if not np.isfinite(scaler.scale_).all():
                raise InvalidInputError(f"{name} has values too large to standardise in float64; scale them down")
        shape = X.shape[1:]
        return cls(of_x.mean_.reshape(shape), of_x.scale_.reshape(shape), of_y.mean_, of_y.scale_)

    def to_network(self, X: FloatArray) -> FloatArray:
        """Features in the network's units."""
        return (X - self.x_mean) / self.x_scale

    def from_network(self, inputs: FloatArray) -> FloatArray:
        """Features in the user's units, to within rounding."""
        return inputs * self.x_scale + self.x_mean

    def to_labels(self, y: FloatArray) -> FloatArray:
        """Labels in the network's units."""
        return (y - self.y_mean) / self.y_scale

    def from_labels(self, labels: FloatArray) -> FloatArray:
        """Predictions in the user's units."""
        return labels * self.y_scale + self.y_mean
