"""A quantile of the labels instead of their mean."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from unseed._checks import check_number, check_share
from unseed._findings import Finding
from unseed.errors import NotAvailableError
from unseed.losses._loss import Loss, logistic_majorant, weighted_quantile

_NORMAL = 1.349  # standard deviations of a normal law between its quartiles


@dataclass(frozen=True)
class Quantile(Loss):
    """q r + h log(1 + exp −r/h) for the error r = y − f: q r above and (q − 1) r below, with a corner that is smooth over h.

    Parameters
    ----------
    level : float
        q; 0.5 is the median.
    smoothing : float or None
        h, in units of y; None takes two fifths of the errors' standard deviation over the fifth root of their number. The
        estimate is the quantile of labels that were blurred by so much, which `diagnose` reports.
    spread : float or None
        φ of the evidence and the posterior; None takes q (1 − q) over the density of the errors at zero. That law which the
        loss is the likelihood of would have less of it for errors that are not its own, and fit noise.

    Examples
    --------
    >>> Quantile(level=0.9, smoothing=1e-3).value(torch.zeros(2), torch.tensor([1.0, -1.0]))
    tensor([0.9000, 0.1000])
    """

    level: float = 0.5
    smoothing: float | None = None
    spread: float | None = None

    name: ClassVar[str] = "quantile"

    def __post_init__(self) -> None:
        check_share("level", self.level)
        if self.smoothing is not None:
            check_number("smoothing", self.smoothing, above=0)
        if self.spread is not None:
            check_number("spread", self.spread, above=0)

    @property
    def dispersion(self) -> float | None:  # type: ignore[override]  # what is known of it comes with the errors
        """The spread."""
        return self.spread

    @property
    def width(self) -> float:
        """Over which the corner is smooth."""
        return 0.1 if self.smoothing is None else self.smoothing

    def value(self, f: Tensor, y: Tensor) -> Tensor:
        """The cost q r + h log(1 + exp −r/h)."""
        r = (y - f) / self.width
        return self.width * (self.level * r + torch.logaddexp(torch.zeros_like(r), -r))

    def gradient(self, f: Tensor, y: Tensor) -> Tensor:
        """The share of labels below, less q."""
        return torch.sigmoid((f - y) / self.width) - self.level

    def curvature(self, f: Tensor, y: Tensor) -> Tensor:
        """Density of the errors at zero, as a kernel of width h has it."""
        r = (y - f) / self.width
        return torch.sigmoid(r) * torch.sigmoid(-r) / self.width

    def law(self, f: Tensor, dispersion: Tensor) -> torch.distributions.Distribution:
        """None: a quantile says nothing of the rest."""
        raise NotAvailableError(
            "loss='quantile' knows a quantile of y, not its law: for an interval of new observations use the quantiles at both "
            "of its ends, or loss='squared'"
        )

    def majorant(self, f: Tensor, y: Tensor) -> Tensor:
        """That of the smooth corner."""
        return logistic_majorant((y - f) / self.width) / self.width

    def log_normaliser(self, labels: Tensor, dispersion: Tensor) -> Tensor:
        """−log h B(q h/φ, (1 − q) h/φ)."""
        ratio = self.width / dispersion
        beta = torch.lgamma(self.level * ratio) + torch.lgamma((1 - self.level) * ratio) - torch.lgamma(ratio)
        return -(beta + math.log(self.width)).expand(labels.shape)

    def scaled(self, residuals: Tensor) -> Quantile:
        """With a width and a dispersion for these errors, where none were given."""
        if self.smoothing is None:
            return replace(self, smoothing=self._width_for(residuals)).scaled(residuals)
        if self.spread is not None:
            return self
        zeros = torch.zeros_like(residuals)
        pull, bend = self.gradient(zeros, residuals).square().mean(), self.curvature(zeros, residuals).mean()
        return replace(self, spread=max(float(pull / bend), 1e-12))

    def _width_for(self, residuals: Tensor) -> float:
        low, high = torch.quantile(residuals, torch.tensor([0.25, 0.75]).to(residuals))
        spread = max(float(high - low) / _NORMAL, 1e-6 * float(residuals.abs().mean()), 1e-12)
        return 0.4 * spread * float(len(residuals) ** -0.2)

    def rescaled(self, unit: float) -> Quantile:
        """The width in other units."""
        given = {name: value for name, value in (("smoothing", self.smoothing), ("spread", self.spread)) if value is not None}
        return replace(self, **{name: value / unit for name, value in given.items()})

    def report(self) -> Iterable[Finding]:
        """How far the corner of the loss is smooth."""
        yield Finding(
            "width over which the quantile is smoothed", self.width, float("inf"), "", "The quantile is a smoothed one."
        )

    def start(self, labels: Tensor, weights: Tensor) -> Tensor:
        """The quantile of all labels. Shape (k,)."""
        return weighted_quantile(labels, weights, self.level)
