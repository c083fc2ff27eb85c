"""Networks whose training was stopped: the ridge's linear map, with less of it where training had not come to the end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from unseed._solvers.ridge import OVERFLOW
from unseed._solvers.training import GradientDescent, Stopped
from unseed.errors import SingularKernelError


class Spectrum(NamedTuple):
    """W^½ U g(μ) Uᵀ W^½ with U, μ of W^½ K W^½; where g(μ) = 1/(μ + λn) it is the inverse of K + λ n W⁻¹."""

    vectors: Tensor  # (n, n) W^½ U
    gains: Tensor  # (n,) g(μ)
    left_over: Tensor  # (n,) 1 − μ g(μ): the share of the labels not yet fitted


@dataclass(frozen=True)
class StoppedRidge:
    """Training that was stopped, by whichever of two exact ways is cheaper for the question at hand.

    Parameters move along θ − θᵇ = J(X)ᵀα, so gradient descent is α ← α − 2η (W(Kα − y)/n + λα): one product with the
    kernel for each step and label column. Many columns, many steps or a rate that may diverge go by eigenvectors.
    """

    kernel: Tensor  # (n, n)
    weights: Tensor  # (n,)
    regularization: float
    training: Stopped
    n_observations: float

    def solve(self, columns: Tensor) -> Tensor:
        """Dual weights of each label column. Shape (n, c)."""
        asked = columns.abs().amax(0) != 0  # labels s̄ = 0 have no weights, and are half of all columns
        if not self._goes_by_steps(int(asked.sum())):
            vectors, gains, _ = self.spectral
            return vectors @ (gains[:, None] * (vectors.T @ columns))
        dual = torch.zeros_like(columns)
        for column in asked.nonzero()[:, 0].tolist():
            dual[:, column] = self._descend(columns[:, column])
        return dual

    def noise_residual(self, labels: Tensor, probes: int | None = None) -> tuple[Tensor, float]:
        """Residuals and a trace that estimate the noise variance (see `WeightedRidge`), exactly whatever ``probes``."""
        left_over = self.spectral.left_over
        return labels - self.kernel @ self.solve(labels), float(left_over.square().sum())

    @cached_property
    def spectral(self) -> Spectrum:
        """What training has made of every eigenvector; made on first use."""
        if not bool(torch.isfinite(self.kernel).all()):
            raise SingularKernelError(OVERFLOW)
        root = self.weights.sqrt()
        eigenvalues, vectors = torch.linalg.eigh(root[:, None] * self.kernel * root[None, :])
        eigenvalues = eigenvalues.clamp_min(0.0)
        gains = self.training.gain(eigenvalues / self.n_observations + self.regularization) / self.n_observations
        return Spectrum(root[:, None] * vectors, gains, 1 - eigenvalues * gains)

    def _goes_by_steps(self, n_columns: int) -> bool:
        training = self.training
        if not isinstance(training, GradientDescent) or "spectral" in vars(self):
            return False
        if not training.goes_by_steps(len(self.kernel), n_columns):
            return False
        # the largest column sum of WK bounds its eigenvalues: below it no direction can diverge
        largest = (self.weights @ self.kernel.abs()).max() / self.n_observations + self.regularization
        return bool(torch.isfinite(largest)) and float(training.rate) * float(largest) <= 1

    def _descend(self, labels: Tensor) -> Tensor:
        assert isinstance(self.training, GradientDescent)
        step = 2 * float(self.training.rate)
        weights = step * self.weights / self.n_observations
        shrink, dual = 1 - step * self.regularization, torch.zeros_like(labels)
        for _ in range(self.training.steps):
            dual = torch.addcmul(shrink * dual, weights, labels - torch.mv(self.kernel, dual))
        return dual
