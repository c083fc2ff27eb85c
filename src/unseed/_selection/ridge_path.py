"""Choosing the regularisation by the closed-form leave-one-out error, without looking at any truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from unseed._random import Streams
from unseed._results import FloatArray
from unseed.kernels import PopulationKernel
from unseed.networks import MLP

MAX_ROWS = 400
"""Above this many rows, the leave-one-out error is that of a random subset of them."""

_RIDGES = np.logspace(-10, 1, 34)  # relative to the mean diagonal of the kernel


@dataclass(frozen=True)
class RidgePath:
    """Leave-one-out error of kernel ridge regression at any ridge, from one eigendecomposition.

    The error at row i is α_i / (A⁻¹)_ii with A = K + ridge · I and α = A⁻¹ y: exactly what refitting without row i and
    predicting y_i would give.
    """

    eigenvalues: Tensor  # (n,)
    vectors: Tensor  # (n, n)
    projected: Tensor  # (n, n_outputs) labels in the eigenbasis

    @classmethod
    def of(cls, kernel: Tensor, labels: Tensor) -> RidgePath:
        """Diagonalise once."""
        eigenvalues, vectors = torch.linalg.eigh(kernel)
        return cls(eigenvalues.clamp_min(0.0), vectors, vectors.T @ labels)

    def errors(self, ridges: npt.ArrayLike) -> Tensor:
        """Leave-one-out residuals at several ridges. Shape (n_ridges, n, n_outputs)."""
        ridge = torch.as_tensor(np.atleast_1d(ridges), dtype=self.eigenvalues.dtype, device=self.eigenvalues.device)
        inverse = 1 / (self.eigenvalues[:, None] + ridge)  # (n, n_ridges)
        scaled = inverse[:, :, None] * self.projected[:, None, :]  # (n, n_ridges, n_outputs)
        weights = (self.vectors @ scaled.flatten(1)).reshape(scaled.shape)
        return (weights / (self.vectors.square() @ inverse)[:, :, None]).permute(1, 0, 2)

    def mean_square(self, ridges: npt.ArrayLike) -> FloatArray:
        """Mean squared leave-one-out residual over rows and outputs. Shape (n_ridges,)."""
        return self.errors(ridges).square().mean(dim=(1, 2)).cpu().numpy()


def choose_regularization(X: Tensor, labels: Tensor, network: MLP, streams: Streams) -> float:
    """λ_n with the smallest leave-one-out error.

    What is carried from a subset to all rows is the ridge λn, the noise-to-signal ratio of the labels, which does not
    depend on how many rows there are.
    """
    n_rows = len(X)
    if n_rows > MAX_ROWS:
        rows = torch.from_numpy(np.sort(streams.generator("selection").permutation(n_rows)[:MAX_ROWS])).to(X.device)
        X, labels = X[rows], labels[rows]
    kernel = PopulationKernel(network)
    matrix = kernel.ntk_gram(kernel.profile(X))
    scale = float(matrix.diagonal().mean())
    if scale == 0:  # a network that sees nothing of X predicts its mean at every ridge
        return 1.0 / n_rows
    path, ridges = RidgePath.of(matrix, labels), scale * _RIDGES
    scores = path.mean_square(ridges)
    best = int(np.argmin(scores))
    bracket = np.log(ridges[max(best - 1, 0)]), np.log(ridges[min(best + 1, len(ridges) - 1)])
    refined = minimize_scalar(
        lambda log_ridge: path.mean_square(np.exp(log_ridge)).item(), bounds=bracket, method="bounded", options={"xatol": 0.01}
    )
    return float(np.exp(refined.x) if refined.fun < scores[best] else ridges[best]) / n_rows
