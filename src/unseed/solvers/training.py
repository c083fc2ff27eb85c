"""How long a linearised network is trained: the factor each direction of the kernel has been fitted by.

For loss (1/n)Σ(f − y)² + λ‖θ − θᵇ‖², a direction with kernel eigenvalue μ has curvature v = μ/n + λ. Trained for
ever it is fitted by 1/v; stopped early by ``gain(v)`` < 1/v.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from unseed.errors import InvalidInputError


def _check_positive(owner: str, name: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
        raise InvalidInputError(f"{owner}({name}={value!r}): {name} must be a finite number > 0")


@dataclass(frozen=True)
class Converged:
    """Training until nothing changes any more, t → ∞: the setting of all the paper's theorems."""


@dataclass(frozen=True)
class GradientFlow:
    """Gradient flow θ' = −rate · ∇loss, stopped at ``time``.

    Examples
    --------
    >>> GradientFlow(time=10.0, rate=0.1)
    GradientFlow(time=10.0, rate=0.1)
    """

    time: float
    rate: float = 1.0

    def __post_init__(self) -> None:
        if self.time != 0:
            _check_positive("GradientFlow", "time", self.time)
        _check_positive("GradientFlow", "rate", self.rate)

    def gain(self, curvature: Tensor) -> Tensor:
        """(1 − exp(−2 rate time v)) / v, continued to v = 0."""
        span = 2 * self.rate * self.time
        return torch.where(curvature > 0, -torch.expm1(-span * curvature) / curvature, span)


@dataclass(frozen=True)
class GradientDescent:
    """A number of full-batch gradient steps of fixed rate.

    Examples
    --------
    >>> GradientDescent(steps=80, rate=0.01)
    GradientDescent(steps=80, rate=0.01)
    """

    steps: int
    rate: float

    def __post_init__(self) -> None:
        if isinstance(self.steps, bool) or not isinstance(self.steps, int) or self.steps < 0:
            raise InvalidInputError(f"GradientDescent(steps={self.steps!r}): steps must be a whole number >= 0")
        _check_positive("GradientDescent", "rate", self.rate)

    def gain(self, curvature: Tensor) -> Tensor:
        """(1 − (1 − 2 rate v)^steps) / v, continued to v = 0; a rate that would diverge is refused."""
        step = 2 * self.rate * curvature
        largest = float(curvature.max())
        if self.rate * largest > 1:
            raise InvalidInputError(
                f"rate={self.rate:g} diverges: the largest curvature of the loss is {2 * largest:.3g}; "
                f"use a rate of at most {1 / largest:.3g}"
            )
        slow = -torch.expm1(self.steps * torch.log1p(-step.clamp_max(0.5)))
        fitted = torch.where(step < 0.5, slow, 1 - (1 - step) ** self.steps)
        return torch.where(curvature > 0, fitted / curvature, 2 * self.rate * self.steps)


Stopped = GradientFlow | GradientDescent
Training = Converged | Stopped
