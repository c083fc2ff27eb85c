"""Differences of two points as a quantity of their own, so that every interval method has intervals for them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unseed._predictors.pnc import PNCQuery, PNCReplicates
from unseed._results import FloatArray


@dataclass(eq=False)
class ContrastQuery:
    """What PNC predictors say about f(x) − f(x'), pairs of points side by side: X of shape (n_points, 2, ...)."""

    networks: PNCReplicates
    X: FloatArray
    is_shared: bool = False

    @property
    def sizes(self) -> FloatArray:
        """Number of observations behind each replicate. Shape (n_replicates,)."""
        return self.networks.sizes

    def predict(self, X: FloatArray) -> FloatArray:
        """Shape (n_replicates, n_points, n_outputs)."""
        left, right = self._sides_of(X)
        return left.predict(left.X) - right.predict(right.X)

    def influence(self, X: FloatArray) -> FloatArray:
        """Shape (n_rows, n_points, n_outputs)."""
        left, right = self._sides_of(X)
        return left.influence(left.X) - right.influence(right.X)

    def posterior_variance(self, X: FloatArray) -> FloatArray:
        """Shape (n_points, n_outputs)."""
        left, right = self._sides_of(X)
        return left.posterior_variance(left.X, minus=right)

    def misfit_variance(self, X: FloatArray) -> FloatArray:
        """Of the difference that the structure makes. Shape (n_points, n_outputs)."""
        left, right = (self.networks.features(X[:, side]) for side in (0, 1))
        return self.networks.misfit.between(left, right)

    def rival_variance(self, X: FloatArray) -> FloatArray:
        """Shape (n_points, n_outputs)."""
        left, right = self._sides_of(X)
        return np.asarray((left.distance_to_rival() - right.distance_to_rival()) ** 2)

    def noise_variance(self) -> FloatArray:
        """Of the difference of two new observations. Shape (n_points, n_outputs)."""
        left, right = self._sides
        return np.asarray(left.noise_variance() + right.noise_variance())

    @cached_property
    def _sides(self) -> tuple[PNCQuery, PNCQuery]:
        left, right = (self.networks.at(self.X[:, side], is_shared=self.is_shared) for side in (0, 1))
        return left, right

    def _sides_of(self, X: FloatArray) -> tuple[PNCQuery, PNCQuery]:
        return self._sides if X is self.X else ContrastQuery(self.networks, X)._sides
