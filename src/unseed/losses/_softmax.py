"""Several classes: labels are rows of zeros with a one at the class, f the logits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from unseed.losses._loss import Loss


@dataclass(frozen=True)
class Softmax(Loss):
    """−Σ y_c log p_c with p = softmax(f); classes are the last axis, and their terms are given one by one.

    Every difference of two logits has the penalty that the logarithm of the odds has for two classes alone: for two classes
    this is `Logistic`.

    Examples
    --------
    >>> Softmax().inverse_link(torch.zeros(2))
    tensor([0.5000, 0.5000])
    """

    name: ClassVar[str] = "softmax"
    dispersion: ClassVar[float | None] = 1.0
    is_joint: ClassVar[bool] = True

    def value(self, f: Tensor, y: Tensor) -> Tensor:
        """−y_c log p_c."""
        return -y * torch.log_softmax(f, -1)

    def gradient(self, f: Tensor, y: Tensor) -> Tensor:
        """Probabilities less y, where the labels of a row sum to one."""
        return torch.softmax(f, -1) * y.sum(-1, keepdim=True) - y

    def curvature(self, f: Tensor, y: Tensor) -> Tensor:
        """Terms p (1 − p), the diagonal of diag p − p pᵀ."""
        p = torch.softmax(f, -1)
        return p * (1 - p) * y.sum(-1, keepdim=True)

    def link(self, mean: Tensor) -> Tensor:
        """Logarithms of the probabilities."""
        return mean.log()

    def inverse_link(self, f: Tensor) -> Tensor:
        """Probabilities of the classes."""
        return torch.softmax(f, -1)

    def law(self, f: Tensor, dispersion: Tensor) -> torch.distributions.Distribution:
        """A class, as a row with a single one."""
        return torch.distributions.OneHotCategorical(logits=f)

    def log_normaliser(self, labels: Tensor, dispersion: Tensor) -> Tensor:
        """None: the likelihood is complete."""
        return torch.zeros_like(labels)

    def legal(self, labels: Tensor) -> Tensor:
        """From 0 to 1."""
        return (labels >= 0) & (labels <= 1)

    def start(self, labels: Tensor, weights: Tensor) -> Tensor:
        """Logarithms of the classes' shares, at least half a label each. Shape (k,)."""
        return ((weights @ labels) / weights.sum()).clamp_min(0.5 / float(weights.sum())).log()
