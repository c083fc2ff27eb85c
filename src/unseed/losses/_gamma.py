"""Positive amounts whose spread grows with their mean, f the logarithm of the mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from unseed.losses._loss import Loss


@dataclass(frozen=True)
class Gamma(Loss):
    """f + y exp −f, minus the log-likelihood of a gamma law of mean exp f; the dispersion is its squared relative spread.

    Examples
    --------
    >>> Gamma().legal(torch.tensor([0.0, 2.0]))
    tensor([False,  True])
    """

    name: ClassVar[str] = "gamma"

    def value(self, f: Tensor, y: Tensor) -> Tensor:
        """The cost f + y exp −f."""
        return f + y * torch.exp(-f)

    def gradient(self, f: Tensor, y: Tensor) -> Tensor:
        """1 − y exp −f."""
        return 1 - y * torch.exp(-f)

    def curvature(self, f: Tensor, y: Tensor) -> Tensor:
        """The curvature y exp −f."""
        return y * torch.exp(-f)

    def link(self, mean: Tensor) -> Tensor:
        """Logarithm of the mean."""
        return mean.log()

    def inverse_link(self, f: Tensor) -> Tensor:
        """The mean."""
        return torch.exp(f)

    def law(self, f: Tensor, dispersion: Tensor) -> torch.distributions.Distribution:
        """The gamma law of that mean."""
        return torch.distributions.Gamma(1 / dispersion, torch.exp(-f) / dispersion, validate_args=False)

    def log_normaliser(self, labels: Tensor, dispersion: Tensor) -> Tensor:
        """ν log ν − log Γ(ν) + (ν − 1) log y with ν = 1/φ."""
        shape = 1 / dispersion
        return shape * shape.log() - torch.lgamma(shape) + (shape - 1) * labels.log()

    def legal(self, labels: Tensor) -> Tensor:
        """Positive."""
        return (labels > 0) & torch.isfinite(labels)
