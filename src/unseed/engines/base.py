"""The one question every engine answers, and the answer's shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from unseed.networks import MLP
from unseed.resampling import Plan


@dataclass(frozen=True)
class Task:
    """What to train on.

    Attributes
    ----------
    X : Tensor of shape (n_rows, n_features), float64
    labels : Tensor of shape (n_rows, n_columns), float64
        Several label columns are trained in one solve.
    network : MLP
    regularization : float
        λ_n of the paper's loss.
    """

    X: Tensor
    labels: Tensor
    network: MLP
    regularization: float


class Trained(Protocol):
    """Networks trained on every replicate of a plan, started at the function zero."""

    def predict(self, X: Tensor) -> Tensor:
        """Prediction of every replicate for every label column. Shape (n_replicates, n_points, n_columns)."""
        ...

    def influence(self, X: Tensor) -> Tensor:
        """Influence of every row on the full-data prediction. Shape (n_rows, n_points, n_columns)."""
        ...

    def procedural_covariance(self, X: Tensor) -> Tensor:
        """Covariance over seeds of a single network's predictions. Shape (n_points, n_points)."""
        ...

    def procedural_variance(self, X: Tensor) -> Tensor:
        """Diagonal of `procedural_covariance`. Shape (n_points,)."""
        ...

    def noise_variance(self) -> Tensor:
        """Variance of the labels around the function. Shape (n_columns,)."""
        ...


class Engine(Protocol):
    """A way to train networks: infinitely wide in closed form, linearised, or for real."""

    @property
    def offers_influence(self) -> bool:
        """Whether `Trained.influence` is defined for these settings."""
        ...

    def fit(self, task: Task, plan: Plan, *, n_jobs: int | None) -> Trained:
        """Train on every replicate of the plan."""
        ...
