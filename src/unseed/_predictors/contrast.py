"""Differences of two points as a quantity of their own, so that every interval method has intervals for them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unseed._predictors.pnc import PNCReplicates
from unseed._results import FloatArray


@dataclass(frozen=True)
class ContrastReplicates:
    """Replicates of f(x) − f(x'): pairs of points side by side, X of shape (n_points, 2, ...)."""

    replicates: PNCReplicates

    @property
    def sizes(self) -> FloatArray:
        """Number of observations behind each replicate. Shape (n_replicates,)."""
        return self.replicates.sizes

    def misfit_variance(self, X: FloatArray) -> FloatArray:
        """Of the difference that the structure makes. Shape (n_points, n_outputs)."""
        return self.replicates.misfit.between(*(self.replicates.features(X[:, side]) for side in (0, 1)))

    def predict(self, X: FloatArray) -> FloatArray:
        """Shape (n_replicates, n_points, n_outputs)."""
        return self.replicates.predict(X[:, 0]) - self.replicates.predict(X[:, 1])

    def influence(self, X: FloatArray) -> FloatArray:
        """Shape (n_rows, n_points, n_outputs)."""
        return self.replicates.influence(X[:, 0]) - self.replicates.influence(X[:, 1])

    def posterior_variance(self, X: FloatArray) -> FloatArray:
        """Shape (n_points, n_outputs)."""
        return self.replicates.posterior_variance(X[:, 0], minus=X[:, 1])

    def rival_variance(self, X: FloatArray) -> FloatArray:
        """Shape (n_points, n_outputs)."""
        return (self.replicates.distance_to_rival(X[:, 0]) - self.replicates.distance_to_rival(X[:, 1])) ** 2

    def noise_at(self, X: FloatArray) -> FloatArray:
        """Of the difference of two new observations. Shape (n_points, n_outputs)."""
        return np.asarray(self.replicates.noise_at(X[:, 0]) + self.replicates.noise_at(X[:, 1]))
