"""What is learned from and asked for in every timing, and our own way of doing it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unseed._estimators import PNCRegressor
from unseed._results import FloatArray
from unseed.intervals import CheapBootstrap
from unseed.networks import MLP

REPLICATIONS, POINTS, FEATURES, REGULARIZATION = 4, 256, 16, 1e-6
NETWORK = MLP(bias_scale=1.0, scale_inputs=True)


@dataclass(frozen=True)
class Problem:
    """Rows to learn from and points to be asked at."""

    X: FloatArray
    y: FloatArray
    X_new: FloatArray

    @classmethod
    def draw(cls, n_rows: int, n_features: int = FEATURES, n_points: int = POINTS) -> Problem:
        """Sum of sines with a tenth of noise."""
        rng = np.random.default_rng(0)
        X, X_new = rng.normal(size=(n_rows, n_features)), rng.normal(size=(n_points, n_features))
        return cls(X, np.sin(X).sum(axis=1) + 0.1 * rng.standard_normal(n_rows), X_new)


def ours() -> PNCRegressor:
    """The regressor that is timed, its network and λ given."""
    return PNCRegressor(interval=CheapBootstrap(REPLICATIONS), network=NETWORK, regularization=REGULARIZATION, random_state=0)
