"""Blocks of rows, each solved alone: of a block only its rows and dual weights are kept."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unseed.kernels import PopulationKernel
from unseed.networks import MLP
from unseed.solvers import WeightedRidge


@dataclass(frozen=True)
class BlockFit:
    """An infinitely wide network trained to convergence on one block.

    Attributes
    ----------
    X : Tensor of shape (b, d)
    dual : Tensor of shape (b, n_outputs)
    squares, trace : Tensor of shape (n_outputs,), float
        Whose ratio estimates the noise variance (see `WeightedRidge.noise_moments`).
    """

    X: Tensor
    dual: Tensor
    squares: Tensor
    trace: float

    @classmethod
    def solve(cls, network: MLP, X: Tensor, labels: Tensor, regularization: float) -> BlockFit:
        """One Gram matrix, one factorisation; both are gone when this returns."""
        kernel = PopulationKernel(network)
        counts = torch.ones(len(X), dtype=X.dtype, device=X.device)
        factor = WeightedRidge.factorise(kernel.ntk_gram(kernel.profile(X)), counts, regularization)
        squares, trace = factor.noise_moments(labels)
        return cls(X, factor.solve(labels).contiguous(), squares, trace)

    def predict(self, network: MLP, X: Tensor) -> Tensor:
        """Shape (n_points, n_outputs)."""
        kernel = PopulationKernel(network)
        return kernel.ntk_cross(kernel.profile(X), kernel.profile(self.X)) @ self.dual
