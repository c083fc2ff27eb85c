"""Labels with outliers: a square that goes on as a straight line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from unseed._checks import check_number
from unseed._findings import Finding
from unseed.losses._loss import Loss, weighted_quantile

_TO_STANDARD_DEVIATIONS = 1.4826  # of a normal law, from its median absolute deviation


@dataclass(frozen=True)
class Huber(Loss):
    """(f − y)² up to an error of t, and 2 t |f − y| − t² beyond, so that no row pulls with a force of more than 2 t.

    Parameters
    ----------
    threshold : float
        t, in standard deviations of the noise without its outliers.
    scale : float or None
        That standard deviation; None estimates it, from the median of the errors' sizes.

    Examples
    --------
    >>> Huber(threshold=1.0, scale=1.0).value(torch.zeros(2), torch.tensor([0.5, 3.0]))
    tensor([0.2500, 5.0000])
    """

    threshold: float = 1.345
    scale: float | None = None

    name: ClassVar[str] = "huber"

    def __post_init__(self) -> None:
        check_number("threshold", self.threshold, above=0)
        if self.scale is not None:
            check_number("scale", self.scale, above=0)

    @property
    def edge(self) -> float:
        """The error t at which the line begins."""
        return self.threshold * (1.0 if self.scale is None else self.scale)

    def value(self, f: Tensor, y: Tensor) -> Tensor:
        """(f − y)², or the line."""
        size, t = (f - y).abs(), self.edge
        return torch.where(size <= t, size.square(), 2 * t * size - t**2)

    def gradient(self, f: Tensor, y: Tensor) -> Tensor:
        """2 (f − y), at most 2 t."""
        return 2 * (f - y).clamp(-self.edge, self.edge)

    def curvature(self, f: Tensor, y: Tensor) -> Tensor:
        """2, or nothing."""
        return 2.0 * ((f - y).abs() <= self.edge).to(f)

    def majorant(self, f: Tensor, y: Tensor) -> Tensor:
        """2 t/|f − y| beyond t."""
        return 2 * (self.edge / (f - y).abs().clamp_min(self.edge))

    def log_normaliser(self, labels: Tensor, dispersion: Tensor) -> Tensor:
        """Of a law with a normal middle and exponential tails."""
        t = self.edge
        middle = (torch.pi * dispersion).sqrt() * torch.erf(t / dispersion.sqrt())
        return -(middle + dispersion / t * torch.exp(-(t**2) / dispersion)).log().expand(labels.shape)

    def scaled(self, residuals: Tensor) -> Huber:
        """With the standard deviation that these errors speak for, where none was given."""
        if self.scale is not None:
            return self
        scale = _TO_STANDARD_DEVIATIONS * float(residuals.abs().median())
        return replace(self, scale=max(scale, 1e-6 * float(residuals.abs().mean()), 1e-12))

    def rescaled(self, unit: float) -> Huber:
        """The threshold in other units."""
        return self if self.scale is None else replace(self, scale=self.scale / unit)

    def report(self) -> Iterable[Finding]:
        """Where the line begins is a choice; nothing is wrong with it."""
        yield Finding(
            "error from which on rows pull no harder", self.edge, float("inf"), "", "Outliers pull with limited force."
        )

    def start(self, labels: Tensor, weights: Tensor) -> Tensor:
        """The median. Shape (k,)."""
        return weighted_quantile(labels, weights, 0.5)
