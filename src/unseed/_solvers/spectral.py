"""Networks whose training was stopped: the same linear map, one gain per eigenvector of the kernel."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unseed._solvers.ridge import OVERFLOW
from unseed._solvers.training import Stopped
from unseed.errors import SingularKernelError


@dataclass(frozen=True)
class SpectralFilter:
    """The map from labels to dual weights, W^½ U g(μ) Uᵀ W^½, with U, μ of W^½ K W^½.

    With g(μ) = 1/(μ + λn) it is the inverse of K + λ n W⁻¹.
    """

    vectors: Tensor  # (n, n) W^½ U
    gains: Tensor  # (n,) g(μ)
    left_over: Tensor  # (n,) 1 − μ g(μ): the share of the labels not yet fitted

    @classmethod
    def factorise(
        cls, kernel: Tensor, counts: Tensor, regularization: float, training: Stopped, n_observations: float | None = None
    ) -> SpectralFilter:
        """Diagonalise and filter; arguments as for `WeightedRidge.factorise`."""
        if not bool(torch.isfinite(kernel).all()):
            raise SingularKernelError(OVERFLOW)
        root, n = counts.sqrt(), counts.sum() if n_observations is None else n_observations
        eigenvalues, vectors = torch.linalg.eigh(root[:, None] * kernel * root[None, :])
        eigenvalues = eigenvalues.clamp_min(0.0)
        gains = training.gain(eigenvalues / n + regularization) / n
        return cls(root[:, None] * vectors, gains, 1 - eigenvalues * gains)

    def solve(self, columns: Tensor) -> Tensor:
        """Dual weights of each label column. Shape (n, c)."""
        return self.vectors @ (self.gains[:, None] * (self.vectors.T @ columns))

    def noise_moments(self, labels: Tensor) -> tuple[Tensor, float]:
        """Sum of squares and trace whose ratio estimates the noise variance (see `WeightedRidge`)."""
        unfitted = self.left_over[:, None] * (self.vectors.T @ labels)
        return unfitted.square().sum(0), float(self.left_over.square().sum())
