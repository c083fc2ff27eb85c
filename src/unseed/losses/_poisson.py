"""Counts, f the logarithm of their rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from unseed.losses._loss import Loss


class _Counts(torch.distributions.Poisson):
    """Poisson's law with its distribution function."""

    def cdf(self, value: Tensor) -> Tensor:
        k = value.floor()
        return torch.where(k < 0, 0.0, torch.special.gammaincc(k.clamp_min(0) + 1, self.rate))


@dataclass(frozen=True)
class Poisson(Loss):
    """exp f − y f, minus the log-likelihood of a count whose rate is exp f.

    Examples
    --------
    >>> Poisson().legal(torch.tensor([0.0, 2.0, 1.5, -1.0]))
    tensor([ True,  True, False, False])
    """

    name: ClassVar[str] = "poisson"
    dispersion: ClassVar[float | None] = 1.0

    def value(self, f: Tensor, y: Tensor) -> Tensor:
        """The cost exp f − y f."""
        return torch.exp(f) - y * f

    def gradient(self, f: Tensor, y: Tensor) -> Tensor:
        """The rate less y."""
        return torch.exp(f) - y

    def curvature(self, f: Tensor, y: Tensor) -> Tensor:
        """The rate."""
        return torch.exp(f)

    def link(self, mean: Tensor) -> Tensor:
        """Logarithm of the rate."""
        return mean.log()

    def inverse_link(self, f: Tensor) -> Tensor:
        """The rate."""
        return torch.exp(f)

    def law(self, f: Tensor, dispersion: Tensor) -> torch.distributions.Distribution:
        """Poisson's."""
        return _Counts(torch.exp(f), validate_args=False)

    def log_normaliser(self, labels: Tensor, dispersion: Tensor) -> Tensor:
        """−log y!."""
        return -torch.lgamma(labels + 1)

    def legal(self, labels: Tensor) -> Tensor:
        """Whole numbers from 0."""
        return (labels >= 0) & (labels == labels.floor()) & torch.isfinite(labels)

    def start(self, labels: Tensor, weights: Tensor) -> Tensor:
        """Logarithm of the mean, that of half a count in all where there is none. Shape (k,)."""
        return ((weights @ labels) / weights.sum()).clamp_min(0.5 / float(weights.sum())).log()
