"""The procedural-noise-correcting predictor: base network minus auxiliary network plus s̄ (Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from unseed.engines import Engine, Task, Trained
from unseed.networks import InitialMean
from unseed.resampling import Plan
from unseed.results import FloatArray


@dataclass(frozen=True)
class PNCReplicates:
    """PNC predictions of every replicate of a plan, NumPy out."""

    trained: Trained
    initial_mean: InitialMean
    plan: Plan
    n_outputs: int
    device: torch.device

    @property
    def sizes(self) -> FloatArray:
        """Number of observations behind each replicate. Shape (n_replicates,)."""
        return self.plan.sizes.astype(np.float64)

    def predict(self, X: FloatArray) -> FloatArray:
        """PNC prediction of every replicate. Shape (n_replicates, n_points, n_outputs)."""
        points = self._tensor(X)
        return (self.trained.predict(points) + self.initial_mean(points, self.n_outputs)).cpu().numpy()

    def influence(self, X: FloatArray) -> FloatArray:
        """Influence of every row on the full-data PNC prediction. Shape (n_rows, n_points, n_outputs)."""
        return self.trained.influence(self._tensor(X)).cpu().numpy()

    def procedural_variance(self, X: FloatArray) -> FloatArray:
        """Variance over seeds of a single network, which PNC takes out. Shape (n_points,)."""
        return self.trained.procedural_variance(self._tensor(X)).cpu().numpy()

    def procedural_covariance(self, X: FloatArray) -> FloatArray:
        """Covariance over seeds of a single network's predictions. Shape (n_points, n_points)."""
        return self.trained.procedural_covariance(self._tensor(X)).cpu().numpy()

    def noise_variance(self) -> FloatArray:
        """Variance of the observations around the function. Shape (n_outputs,)."""
        return self.trained.noise_variance().cpu().numpy()

    def _tensor(self, X: FloatArray) -> Tensor:
        return torch.tensor(X, dtype=torch.float64, device=self.device)


def fit_pnc(
    engine: Engine, task: Task, plan: Plan, initial_mean: InitialMean, *, n_jobs: int | None = None
) -> PNCReplicates:
    """Train base and auxiliary network of every replicate, on the same rows and from the same start.

    These engines are linear in the labels and start at the function zero, so the difference of a network trained on y
    (Algorithm 1, step 1) and one trained on s̄ (step 2) is the network trained on y − s̄: one solve does both.
    """
    n_outputs = task.labels.shape[1]
    shifted = replace(task, labels=task.labels - initial_mean(task.X, n_outputs))
    trained = engine.fit(shifted, plan, n_jobs=n_jobs)
    return PNCReplicates(trained, initial_mean, plan, n_outputs, task.X.device)
