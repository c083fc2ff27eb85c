"""The square: labels with normal errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from unseed.losses._loss import Loss


@dataclass(frozen=True)
class Squared(Loss):
    """(f − y)², the loss of the paper.

    Examples
    --------
    >>> Squared().value(torch.tensor(1.0), torch.tensor(3.0))
    tensor(4.)
    """

    name: ClassVar[str] = "squared"

    def value(self, f: Tensor, y: Tensor) -> Tensor:
        """(f − y)²."""
        return (f - y).square()

    def gradient(self, f: Tensor, y: Tensor) -> Tensor:
        """2 (f − y)."""
        return 2 * (f - y)

    def curvature(self, f: Tensor, y: Tensor) -> Tensor:
        """2, whatever f and y."""
        return torch.full_like(f, 2.0)
