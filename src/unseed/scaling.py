"""Units: X and y as the user has them, and as the network sees them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from unseed.errors import InvalidInputError
from unseed.results import FloatArray


@dataclass(frozen=True)
class Scaling:
    """Shift and scale of every feature and output; constant columns are only shifted."""

    x_mean: FloatArray
    x_scale: FloatArray
    y_mean: FloatArray
    y_scale: FloatArray

    @classmethod
    def fit(cls, X: FloatArray, y: FloatArray, *, active: bool) -> Scaling:
        """Mean and standard deviation of X (n, d) and y (n, k), or zeros and ones when not active."""
        if not active:
            return cls(np.zeros(X.shape[1]), np.ones(X.shape[1]), np.zeros(y.shape[1]), np.ones(y.shape[1]))
        of_x, of_y = StandardScaler().fit(X), StandardScaler().fit(y)
        return cls(of_x.mean_, of_x.scale_, of_y.mean_, of_y.scale_)

    def to_network(self, X: FloatArray) -> FloatArray:
        """Features in the network's units."""
        return (X - self.x_mean) / self.x_scale

    def to_labels(self, y: FloatArray) -> FloatArray:
        """Labels in the network's units."""
        return (y - self.y_mean) / self.y_scale

    def from_labels(self, labels: FloatArray) -> FloatArray:
        """Predictions in the user's units."""
        return labels * self.y_scale + self.y_mean

    def mean_of_network(self, function: Callable[[FloatArray], npt.ArrayLike]) -> GivenMean:
        """A user's function of X, in units of y, as s̄ of the network."""
        return GivenMean(function, self)


@dataclass(frozen=True)
class GivenMean:
    """s̄ given by the user as a function of X in the user's units."""

    function: Callable[[FloatArray], npt.ArrayLike]
    scaling: Scaling

    def __call__(self, X: Tensor, n_outputs: int) -> Tensor:
        """s̄ at the network's inputs, in the network's units. Shape (n_rows, n_outputs)."""
        original = X.cpu().numpy() * self.scaling.x_scale + self.scaling.x_mean
        values = np.asarray(self.function(original), dtype=np.float64)
        if values.size != len(X) * n_outputs or not np.isfinite(values).all():
            raise InvalidInputError(
                f"initial_mean returned an array of shape {values.shape} for {len(X)} rows; it must return one finite "
                f"number per row and output ({n_outputs})"
            )
        return torch.tensor(self.scaling.to_labels(values.reshape(len(X), n_outputs)), device=X.device)
