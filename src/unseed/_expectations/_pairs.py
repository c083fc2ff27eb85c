"""What is known of points and of pairs of points, layer by layer: variances, angles, Gaussian moments.

The ReLU kernel's slope depends on the angle itself, and the angle of two nearly parallel vectors cannot be had from
their cosine: an error of 1e-16 in cos θ is an error of 1e-8 in θ. So every pair carries cosine *and* sine; close pairs
of the first layer take the sine from coordinate differences, and later layers from the gap 1 - cos θ, which is
propagated in a form without cancellation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from unseed._expectations._scratch import Scratch

CLOSE_SINE = 0.01  # above it, sqrt(1 - cos²) has an absolute error below 1e-13
_GATHER = 1 << 20  # numbers held at a time while close pairs are refined


@dataclass(frozen=True)
class Angles:
    """Cosine and (non-negative) sine of the angle between the pre-activations of every pair. Shape (..., n, m) each.

    ``are_wide`` says that no pair is nearly parallel or opposite: the cosine alone tells the angle, with all its digits.
    """

    cosine: Tensor
    sine: Tensor
    are_wide: bool = False

    def radians(self, scratch: Scratch) -> Tensor:
        """The angle itself, with all its digits wherever both sine and cosine have theirs."""
        if self.are_wide and HAS_FAST_ARCS and self.cosine.device.type == "cpu":  # less than arctan2 takes, and as exact here
            return elementwise("arccos", self.cosine, into=scratch.take(self.cosine, self.cosine.shape))
        return elementwise("arctan2", self.sine, self.cosine, into=scratch.take(self.sine, self.sine.shape))


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
        ``of_covariance(covariance, left, right, same)``: the same moments from covariances and the variances on both sides,
        in operations that can be differentiated, for choosing a network by gradient; ``same`` says where both points are one.
    curve : str or None
        The function ``moments`` of `kernels/pairs.cu`, for kernels in one pass on a GPU.
    shallow_tangent : callable or None
        ``shallow_tangent(left, right, angles, scratch, w2)``: w² times value plus derivative · √(qr) cos θ, which is the
        tangent kernel of one hidden layer without biases, in fewer passes over the pairs.
    shallow_product : callable or None
        ``shallow_product(left, variance, right, other_variance, columns, w2, b2)``: that kernel, plus b², times columns,
        between points that are given as unit vectors and variances; None where it is not the fastest way.
    """

    points: Callable[[Tensor], Points]
    pairs: Callable[..., Moments]
    of_covariance: Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]] | None = None
    curve: str | None = None
    shallow_tangent: Callable[..., Tensor] | None = None
    shallow_product: Callable[..., Tensor | None] | None = None


def outer(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """One value per point of each side, shaped to meet in every pair: (..., n, 1) and (..., 1, m)."""
    return left[..., :, None], right[..., None, :]


def first_layer_angles(left: Tensor, right: Tensor, scratch: Scratch, *, same: int | None = None) -> Angles:
    """Angles between unit vectors (or zero vectors, which count as orthogonal to everything).

    They have all their digits also where vectors are nearly parallel. A diagonal of points with themselves, ``same`` columns
    from the main one, is set to right angles: what is wanted there is known already, and it is the one place where a series
    would need all its terms.
    """
    cosine = torch.matmul(left, right.mT, out=scratch.take(left, (*left.shape[:-1], right.shape[-2])))
    if same is not None:
        cosine.diagonal(same, dim1=-2, dim2=-1).fill_(0.0)
    square = torch.addcmul(cosine.new_ones(()), cosine, cosine, value=-1.0, out=scratch.take(cosine, cosine.shape))
    are_wide = not square.numel() or bool(square.amin() >= CLOSE_SINE**2)
    if not are_wide:
        cosine.clamp_(-1.0, 1.0)
        square.clamp_min_(0.0)
    sine = elementwise("sqrt", square, into=square)
    if not are_wide:
        _refine_close_pairs(sine, cosine, left, right)
    return Angles(cosine, sine, are_wide)


def _refine_close_pairs(sine: Tensor, cosine: Tensor, left: Tensor, right: Tensor) -> None:
    pairs = (sine < CLOSE_SINE).nonzero()
    for chunk in torch.split(pairs, max(1, _GATHER // max(1, left.shape[-1]))):
        *stack, i, j = chunk.unbind(1)
        at = (*stack, i, j)
        side = cosine[at].sign()[:, None]  # near-antiparallel pairs: the angle to the mirrored vector
        gap = (left[(*stack, i)] - side * right[(*stack, j)]).square().sum(1) / 2  # 1 - |cos θ|
        sine[at] = (gap * (2 - gap)).sqrt()


def relative_gap(value: Tensor, left_power: Tensor, right_power: Tensor, scratch: Scratch) -> Tensor:
    """Return 1 - value / √(power · power'), taking silent points (power 0) as orthogonal to all others."""
    inverse, other_inverse = outer(*(torch.where(power > 0, power.rsqrt(), 0.0) for power in (left_power, right_power)))
    return torch.mul(value, inverse, out=scratch.take(value, value.shape)).mul_(other_inverse).neg_().add_(1.0)


def next_layer_angles(
    gap: Tensor, left_power: Tensor, right_power: Tensor, weight_variance: float, bias_variance: float, scratch: Scratch
) -> Angles:
    """Angles of the pre-activations that a layer feeds into the next, of variance = weight_variance · power + bias_variance.

    The gap, 1 - (normalised inner product of the activations at each pair), is overwritten.
    """
    if bias_variance > 0:
        # √(Q Q') − (w² p p' + b²) = w² b² (p − p')² / (√(Q Q') + w² p p' + b²): a sum of non-negative terms.
        p, q = outer(left_power.sqrt(), right_power.sqrt())
        here, there = (weight_variance * side.square() + bias_variance for side in (p, q))
        product = torch.mul(weight_variance * p, q, out=scratch.take(gap, gap.shape))
        norm = torch.mul(here.sqrt(), there.sqrt(), out=scratch.take(gap, gap.shape))
        gap.mul_(product)
        from_biases = torch.sub(p, q, out=scratch.take(gap, gap.shape)).square_().mul_(weight_variance * bias_variance)
        gap.add_(from_biases.div_(product.add_(norm).add_(bias_variance))).div_(norm)
    gap.clamp_(0.0, 2.0)
    cosine = torch.neg(gap, out=scratch.take(gap, gap.shape)).add_(1.0)
    sine = torch.mul(gap, gap, out=scratch.take(gap, gap.shape)).neg_().add_(gap, alpha=2.0)
    return Angles(cosine, elementwise("sqrt", sine, into=sine))


def elementwise(name: str, *arguments: Tensor, into: Tensor) -> Tensor:
    """A function of that name, by whichever of NumPy and torch is the faster on this machine."""
    if into.device.type == "cpu" and (_NUMPY_IS_VECTORISED if name == "arctan2" else not MKL_IS_FAST):
        getattr(np, name)(*(argument.numpy() for argument in arguments), out=into.numpy())
        return into
    by_torch: Tensor = getattr(torch, name)(*arguments, out=into)
    return by_torch


def _numpy_is_vectorised() -> bool:
    """Whether NumPy has a vector instruction set for arctan2 here: twice as fast as torch then, five times slower if not."""
    try:
        from numpy.lib.introspect import opt_func_info
    except ImportError:  # NumPy 1
        return False
    found = opt_func_info(func_name="^arctan2$", signature="float64").get("arctan2", {})
    return any(not str(kind["current"]).startswith("baseline") for kind in found.values())


def _mkl_is_fast() -> bool:
    """Whether torch has Intel's elementwise functions here, and they were made for this processor."""
    cpus = Path("/proc/cpuinfo")
    has_mkl: bool = torch.backends.mkl.is_available()  # type: ignore[no-untyped-call]
    return has_mkl and cpus.exists() and "GenuineIntel" in cpus.read_text()


# Which library has the faster functions is a property of the machine, not timed, so that results do not depend on the moment.
_NUMPY_IS_VECTORISED, MKL_IS_FAST = _numpy_is_vectorised(), _mkl_is_fast()
HAS_FAST_ARCS = _NUMPY_IS_VECTORISED or MKL_IS_FAST
