"""Gradient descent on the dual weights, step by step: for few steps less work than an eigendecomposition."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from unseed._solvers.spectral import SpectralFilter
from unseed._solvers.training import GradientDescent, Stopped


@dataclass(frozen=True)
class StoppedRidge:
    """Training that was stopped, by whichever of two exact ways is cheaper for the question at hand.

    Parameters move along θ − θᵇ = J(X)ᵀα, so gradient descent is α ← α − 2η (W(Kα − y)/n + λα): one product with the
    kernel for each step and label column. Many columns, many steps or a rate that may diverge go to `SpectralFilter`.
    """

    kernel: Tensor  # (n, n)
    counts: Tensor  # (n,)
    regularization: float
    training: Stopped
    n_observations: float

    def solve(self, columns: Tensor) -> Tensor:
        """Dual weights of each label column. Shape (n, c)."""
        asked = columns.abs().amax(0) != 0  # labels s̄ = 0 have no weights, and are half of all columns
        if not self._iterates(int(asked.sum())):
            return self.spectral.solve(columns)
        dual = torch.zeros_like(columns)
        for column in asked.nonzero()[:, 0].tolist():
            dual[:, column] = self._descend(columns[:, column])
        return dual

    def noise_moments(self, labels: Tensor) -> tuple[Tensor, float]:
        """Sum of squares and trace whose ratio estimates the noise variance (see `WeightedRidge`)."""
        return self.spectral.noise_moments(labels)

    @cached_property
    def spectral(self) -> SpectralFilter:
        """The same map by eigenvectors; made on first use."""
        return SpectralFilter.factorise(self.kernel, self.counts, self.regularization, self.training, self.n_observations)

    def _iterates(self, n_columns: int) -> bool:
        training = self.training
        if not isinstance(training, GradientDescent) or "spectral" in vars(self):
            return False
        if not training.goes_by_steps(len(self.kernel), n_columns):
            return False
        # the largest column sum of WK bounds its eigenvalues: below it no direction can diverge
        largest = (self.counts @ self.kernel.abs()).max() / self.n_observations + self.regularization
        return bool(torch.isfinite(largest)) and float(training.rate) * float(largest) <= 1

    def _descend(self, labels: Tensor) -> Tensor:
        assert isinstance(self.training, GradientDescent)
        step = 2 * float(self.training.rate)
        weights = step * self.counts / self.n_observations
        shrink, dual = 1 - step * self.regularization, torch.zeros_like(labels)
        for _ in range(self.training.steps):
            dual = torch.addcmul(shrink * dual, weights, labels - torch.mv(self.kernel, dual))
        return dual
