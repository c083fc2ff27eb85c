"""The Gaussian moments c_σ E[σ(u)σ(v)] and c_σ E[σ'(u)σ'(v)] that the kernel recursion needs, as questions to an activation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from unseed._expectations._geometry import Angles, outer
from unseed._expectations._scratch import Scratch


class Points(NamedTuple):
    """What one layer knows of each point alone: the variance of its pre-activation, and what the pairs need beside it."""

    variance: Tensor  # (n,)
    power: Tensor  # (n,) c_σ E[σ(u)²]
    slope: Tensor  # (n,) c_σ E[σ'(u)²]
    features: Tensor  # (n, ...), its own for every activation

    def mapped(self, function: Callable[[Tensor], Tensor]) -> Points:
        """The same for what a function takes of every tensor, such as some of the points."""
        return Points(*map(function, self))


class Moments(NamedTuple):
    """Moments of a pair of pre-activations.

    ``gap`` is 1 - (value / its largest possible modulus): what a layer above needs, and None where there is none.
    """

    value: Tensor
    derivative: Tensor
    gap: Tensor | None


class OfPairs(Protocol):
    """Moments of every pair, in scratch memory or in that of ``angles``, which are there to be overwritten.

    Shape (..., n, m) each; the last hidden layer needs no gap.
    """

    def __call__(self, left: Points, right: Points, angles: Angles, scratch: Scratch, *, is_last: bool) -> Moments:
        """Moments."""
        ...


class ShallowTangent(Protocol):
    """w² times value plus derivative · √(qr) cos θ: the tangent kernel of one hidden layer, in fewer passes over the pairs."""

    def __call__(self, left: Points, right: Points, angles: Angles, scratch: Scratch, w2: float) -> Tensor:
        """Shape (..., n, m)."""
        ...


class ShallowProduct(Protocol):
    """Products of that kernel, plus a constant, with columns that belong to the points on the right."""

    def rows_at_a_time(self, n_rows: int, tile_rows: int) -> int:
        """Rows for a thread to do before it needs Python again; the same for any number of threads."""
        ...

    def times(self, directions: Tensor, variance: Tensor, scratch: Scratch) -> Tensor:
        """Product for points on the left, given as unit vectors and variances. Shape (n, n_columns)."""
        ...


@dataclass(frozen=True)
class Expectations:
    """Gaussian moments of one activation, for u, v ~ N(0, ·).

    Attributes
    ----------
    points : callable
        From variances (n,) to all that is known of each point alone.
    pairs : callable
        See `OfPairs`.
    of_covariance : callable or None
        The same moments from a covariance matrix, in operations that can be differentiated: for choosing a network by gradient.
    curve : str or None
        The function ``moments`` of `kernels/pairs.cu`, for kernels in one pass on a GPU.
    shallow_tangent, shallow_product : callable or None
        Short cuts to the tangent kernel of one hidden layer; ``shallow_product(directions, variance, columns, w2, b2)`` returns
        None where it is not the fastest way.
    """

    points: Callable[[Tensor], Points]
    pairs: OfPairs
    of_covariance: Callable[[Tensor], tuple[Tensor, Tensor]] | None = None
    curve: str | None = None
    shallow_tangent: ShallowTangent | None = None
    shallow_product: Callable[[Tensor, Tensor, Tensor, float, float], ShallowProduct | None] | None = None


def relative_gap(value: Tensor, left_power: Tensor, right_power: Tensor, scratch: Scratch) -> Tensor:
    """Return 1 - value / √(power · power'), taking silent points (power 0) as orthogonal to all others."""
    here, there = (torch.where(power > 0, power.rsqrt(), 0.0) for power in (left_power, right_power))
    inverse, other_inverse = outer(here, there)
    gap = torch.mul(value, inverse, out=scratch.take(value, value.shape)).mul_(other_inverse)
    return gap.neg_().add_(1.0)
