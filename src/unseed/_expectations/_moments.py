"""The Gaussian moments c_σ E[σ(u)σ(v)] and c_σ E[σ'(u)σ'(v)] that the kernel recursion needs, as questions to an activation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor


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
    """Moments of pairs of pre-activations, (..., n, m) each, in scratch memory or in that of the angles.

    ``gap`` is 1 - (value / its largest possible modulus): what a layer above needs; None where the value says it as well.
    """

    value: Tensor
    derivative: Tensor
    gap: Tensor | None = None


@dataclass(frozen=True)
class Expectations:
    """Gaussian moments of one activation, for u, v ~ N(0, ·).

    Attributes
    ----------
    points : callable
        From variances (n,) to the `Points` of a layer.
    pairs : callable
        ``pairs(left, right, angles, scratch, is_last=…)``: the `Moments` of every pair of points at these `Angles`, which are
        there to be overwritten. The last hidden layer needs no gap.
    of_covariance : callable or None
        The same moments from a covariance matrix, in operations that can be differentiated: for choosing a network by gradient.
    curve : str or None
        The function ``moments`` of `kernels/pairs.cu`, for kernels in one pass on a GPU.
    shallow_tangent : callable or None
        ``shallow_tangent(left, right, angles, scratch, w2)``: w² times value plus derivative · √(qr) cos θ, which is the
        tangent kernel of one hidden layer without biases, in fewer passes over the pairs.
    shallow_product : callable or None
        ``shallow_product(left, right, columns, w2, b2)``: that kernel, plus b², times columns, between points that are given as
        unit vectors and variances; None where it is not the fastest way.
    """

    points: Callable[[Tensor], Points]
    pairs: Callable[..., Moments]
    of_covariance: Callable[[Tensor], tuple[Tensor, Tensor]] | None = None
    curve: str | None = None
    shallow_tangent: Callable[..., Tensor] | None = None
    shallow_product: Callable[..., Tensor | None] | None = None
