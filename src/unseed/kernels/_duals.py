"""Dual activations: the Gaussian moments c_σ E[σ(u)σ(v)] and c_σ E[σ'(u)σ'(v)] that the kernel recursion needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from unseed.kernels._geometry import Angles, angle_of, arctangent, outer
from unseed.kernels._scratch import Scratch


class Points(NamedTuple):
    """What one layer knows of each point alone: the variance of its pre-activation, and a dual's own features."""

    variance: Tensor  # (n,)
    power: Tensor  # (n,) c_σ E[σ(u)²]
    slope: Tensor  # (n,) c_σ E[σ'(u)²]
    features: Tensor  # (n, ...)

    def at(self, rows: int | slice | Tensor) -> Points:
        """The same for some of the points."""
        return Points(*(values[rows] for values in self))


class Moments(NamedTuple):
    """Moments of a pair of pre-activations.

    ``gap`` is 1 - (value / its largest possible modulus): what a layer above needs, and None where there is none.
    """

    value: Tensor
    derivative: Tensor
    gap: Tensor | None


class Dual(Protocol):
    """One activation's Gaussian moments."""

    def diagonal(self, variance: Tensor) -> tuple[Tensor, Tensor]:
        """c_σ E[σ(u)²] and c_σ E[σ'(u)²] for u ~ N(0, variance)."""
        ...

    def features(self, variance: Tensor) -> Tensor:
        """Whatever the pairs need of each point alone, computed once per point. Shape (n, ...)."""
        ...

    def moments(self, left: Points, right: Points, angles: Angles, scratch: Scratch, *, is_last: bool) -> Moments:
        """Moments of every pair, in scratch memory or in that of ``angles``, which are the dual's to overwrite.

        Shape (..., n, m) each; the last hidden layer needs no gap.
        """
        ...


def relative_gap(value: Tensor, left_power: Tensor, right_power: Tensor, scratch: Scratch) -> Tensor:
    """Return 1 - value / √(power · power'), taking silent points (power 0) as orthogonal to all others."""
    here, there = (torch.where(power > 0, power.rsqrt(), 0.0) for power in (left_power, right_power))
    inverse, other_inverse = outer(here, there)
    gap = torch.mul(value, inverse, out=scratch.take(value, value.shape)).mul_(other_inverse)
    return gap.neg_().add_(1.0)


@dataclass(frozen=True)
class ReluDual:
    """ReLU in closed form: the arc-cosine kernels of degree 1 and 0."""

    def diagonal(self, variance: Tensor) -> tuple[Tensor, Tensor]:
        """c_σ = 2 keeps the variance, and half of all derivatives are one."""
        return variance, (variance > 0).to(variance.dtype)

    def features(self, variance: Tensor) -> Tensor:
        """Nothing beyond the variance."""
        return variance[:, None]

    def moments(self, left: Points, right: Points, angles: Angles, scratch: Scratch, *, is_last: bool) -> Moments:
        """κ₁(θ) = (sin θ + (π − θ) cos θ)/π and κ₀(θ) = (π − θ)/π."""
        root, other_root = outer(left.variance.sqrt(), right.variance.sqrt())
        if is_last:
            mirrored = angles.cosine.neg_()
            derivative = angle_of(angles, scratch).mul_(1 / math.pi)  # π − θ with all its digits
            value, gap = angles.sine.mul_(1 / math.pi).sub_(mirrored.mul_(derivative)), None
        else:
            angle = angle_of(angles, scratch)
            derivative = torch.mul(angle, -1 / math.pi, out=scratch.take(angle, angle.shape)).add_(1.0)
            # π(1 − κ₁) = π(1 − cos θ) − (sin θ − θ cos θ), with 1 − cos θ = 2 sin²(θ/2)
            bend = angles.sine.sub_(angles.cosine.mul_(angle)).mul_(1 / math.pi)
            gap = angle.div_(2).sin_().square_().mul_(2.0).sub_(bend)
            value = torch.neg(gap, out=bend).add_(1.0)
        if bool((left.variance == 0).any()) or bool((right.variance == 0).any()):
            derivative = torch.where(root * other_root > 0, derivative, 0.0)  # σ'(0) = 0, as in torch
        return Moments(value.mul_(root).mul_(other_root), derivative, gap)

    def shallow_tangent(self, left: Points, right: Points, angles: Angles, scratch: Scratch, w2: float) -> Tensor:
        """w² times value plus derivative · √(qr) cos θ, the tangent kernel of one hidden layer, in half as many passes.

        It is w² √(qr) (κ₁ + κ₀ cos θ) = w² √(qr) (sin θ + 2 (π − θ) cos θ)/π.
        """
        root, other_root = outer(left.variance.sqrt() * (w2 / math.pi), right.variance.sqrt())
        mirrored = angles.cosine.neg_()
        return angles.sine.addcmul_(angle_of(angles, scratch), mirrored, value=-2.0).mul_(root).mul_(other_root)


@dataclass(frozen=True)
class ErfDual:
    """The error function in closed form (Williams 1997)."""

    normalisation: float = math.pi / (2 * math.asin(2 / 3))

    def diagonal(self, variance: Tensor) -> tuple[Tensor, Tensor]:
        """The pair formulas at angle zero."""
        value = 2 / math.pi * torch.atan2(2 * variance, (1 + 4 * variance).sqrt())  # asin(2q / (1 + 2q))
        return self.normalisation * value, self.normalisation * 4 / math.pi * (1 + 4 * variance).rsqrt()

    def features(self, variance: Tensor) -> Tensor:
        """Nothing beyond the variance."""
        return variance[:, None]

    def moments(self, left: Points, right: Points, angles: Angles, scratch: Scratch, *, is_last: bool) -> Moments:
        """Arcsin of the covariance; the determinant is written with sin θ, so nothing cancels at large variances."""
        q, r = outer(left.variance, right.variance)
        root, other_root = q.sqrt(), r.sqrt()
        determinant = angles.sine.mul_(root).mul_(other_root).square_().mul_(4.0).add_(1 + 2 * q).add_(2 * r)
        inverse = torch.rsqrt(determinant, out=scratch.take(determinant, determinant.shape))
        spread = determinant.mul_(inverse)
        # asin(2c / √((1+2q)(1+2r))) = atan2(2c, √determinant)
        double = angles.cosine.mul_(2 * root).mul_(other_root)
        value = arctangent(double, spread, scratch).mul_(self.normalisation * 2 / math.pi)
        derivative = inverse.mul_(self.normalisation * 4 / math.pi)
        return Moments(value, derivative, None if is_last else relative_gap(value, left.power, right.power, scratch))


@dataclass(frozen=True)
class SinDual:
    """The sine in closed form: differences of Gaussians of the distance and of the mirrored distance."""

    normalisation: float = 2 / (1 - math.exp(-2))

    def diagonal(self, variance: Tensor) -> tuple[Tensor, Tensor]:
        """E[sin²] = (1 − e^(−2q))/2 and E[cos²] = (1 + e^(−2q))/2."""
        scale = self.normalisation / 2
        return -scale * torch.expm1(-2 * variance), scale * (1 + torch.exp(-2 * variance))

    def features(self, variance: Tensor) -> Tensor:
        """Nothing beyond the variance."""
        return variance[:, None]

    def moments(self, left: Points, right: Points, angles: Angles, scratch: Scratch, *, is_last: bool) -> Moments:
        """E[sin sin] and E[cos cos] = (e^(−|u−v|²/2) ∓ e^(−|u+v|²/2))/2, the squared distances without cancellation."""
        root, other_root = outer(left.variance.sqrt(), right.variance.sqrt())
        product, spread = root * other_root, (root - other_root).square()
        other_gap = 1 + angles.cosine.abs()
        gap = angles.sine.square() / other_gap  # 1 − |cos θ|, with all its digits
        larger, smaller = torch.exp(-spread / 2 - product * gap), torch.exp(-spread / 2 - product * other_gap)
        # e^−a − e^−b = −e^−a expm1(a − b), with b − a = 2 √(qr) |cos θ|: no digits lost where both are close.
        value = -self.normalisation / 2 * angles.cosine.sign() * larger * torch.expm1(-2 * product * angles.cosine.abs())
        derivative = self.normalisation / 2 * (larger + smaller)
        return Moments(value, derivative, None if is_last else relative_gap(value, left.power, right.power, scratch))
