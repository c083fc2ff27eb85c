"""Two classes: labels 0 and 1, f the logarithm of their odds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from unseed.losses._loss import Loss, logistic_majorant


@dataclass(frozen=True)
class Logistic(Loss):
    """log(1 + exp f) − y f, minus the log-likelihood of a label that is 1 with probability 1/(1 + exp −f).

    Labels between 0 and 1 are shares.

    Examples
    --------
    >>> Logistic().inverse_link(torch.tensor(0.0))
    tensor(0.5000)
    """

    name: ClassVar[str] = "logistic"
    dispersion: ClassVar[float | None] = 1.0

    def value(self, f: Tensor, y: Tensor) -> Tensor:
        """log(1 + exp f) − y f."""
        return torch.logaddexp(torch.zeros_like(f), f) - y * f

    def gradient(self, f: Tensor, y: Tensor) -> Tensor:
        """The probability less y."""
        return torch.sigmoid(f) - y

    def curvature(self, f: Tensor, y: Tensor) -> Tensor:
        """Variance of the label, p (1 − p)."""
        return torch.sigmoid(f) * torch.sigmoid(-f)

    def majorant(self, f: Tensor, y: Tensor) -> Tensor:
        """Of log(1 + exp f)."""
        return logistic_majorant(f)

    def link(self, mean: Tensor) -> Tensor:
        """Log-odds, log p/(1 − p)."""
        return torch.logit(mean)

    def inverse_link(self, f: Tensor) -> Tensor:
        """The probability of a 1."""
        return torch.sigmoid(f)

    def law(self, f: Tensor, dispersion: Tensor) -> torch.distributions.Distribution:
        """Bernoulli's."""
        return torch.distributions.Bernoulli(logits=f)

    def log_normaliser(self, labels: Tensor, dispersion: Tensor) -> Tensor:
        """None: the likelihood is complete."""
        return torch.zeros_like(labels)

    def legal(self, labels: Tensor) -> Tensor:
        """From 0 to 1."""
        return (labels >= 0) & (labels <= 1)

    def start(self, labels: Tensor, weights: Tensor) -> Tensor:
        """Log-odds of the mean, those of half a label more where there are none of a kind. Shape (k,)."""
        margin = 0.5 / float(weights.sum())
        return self.link(((weights @ labels) / weights.sum()).clamp(min(margin, 0.5), max(1 - margin, 0.5)))
