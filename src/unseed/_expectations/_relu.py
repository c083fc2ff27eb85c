"""ReLU in closed form: the arc-cosine kernels of degree 1 and 0 (Cho and Saul 2009)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from unseed._expectations._arcs import ArcProduct
from unseed._expectations._geometry import Angles, angle_of, outer
from unseed._expectations._moments import Expectations, Moments, Points
from unseed._expectations._scratch import Scratch


def _points(variance: Tensor) -> Points:
    """c_σ = 2 keeps the variance, and half of all derivatives are one."""
    return Points(variance, variance, (variance > 0).to(variance.dtype), variance[:, None])


def _pairs(left: Points, right: Points, angles: Angles, scratch: Scratch, *, is_last: bool) -> Moments:
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


def _shallow_tangent(left: Points, right: Points, angles: Angles, scratch: Scratch, w2: float) -> Tensor:
    """w² √(qr) (κ₁ + κ₀ cos θ) = w² √(qr) (sin θ + 2 (π − θ) cos θ)/π, in half as many passes."""
    root, other_root = outer(left.variance.sqrt() * (w2 / math.pi), right.variance.sqrt())
    mirrored = angles.cosine.neg_()
    return angles.sine.addcmul_(angle_of(angles, scratch), mirrored, value=-2.0).mul_(root).mul_(other_root)


def _of_covariance(covariance: Tensor) -> tuple[Tensor, Tensor]:
    variance = covariance.diagonal()
    same = torch.eye(len(variance), dtype=torch.bool, device=covariance.device)
    norm = (variance[:, None] * variance[None, :]).sqrt()
    # On the diagonal the angle is zero, where its derivative is infinite: put in the known values instead.
    limit = 1 - 1e-14
    cosine = torch.where(same, 0.0, covariance / norm).clamp(-limit, limit)
    angle = torch.acos(cosine)
    value = norm * ((1 - cosine.square()).sqrt() + (math.pi - angle) * cosine) / math.pi
    return torch.where(same, variance.expand_as(value), value), torch.where(same, 1.0, 1 - angle / math.pi)


_CURVE = """
__device__ inline Moments moments(double cosine, double sine, double root, double other, double, double, bool is_last) {
  double scale = root * other;
  if (is_last) {
    double derivative = scale > 0 ? OVER_PI * angle_of(-cosine, sine) : 0;  // pi - angle with all its digits
    return {scale * (OVER_PI * sine + derivative * cosine), derivative, 0};
  }
  double angle = angle_of(cosine, sine), rest = cosine > 0 ? sine * sine / (1 + cosine) : 1 - cosine;  // 1 - cos
  double gap = rest - OVER_PI * (sine - cosine * angle);
  return {scale * (1 - gap), scale > 0 ? 1 - OVER_PI * angle : 0, gap};
}
"""

RELU = Expectations(_points, _pairs, _of_covariance, _CURVE, _shallow_tangent, ArcProduct.of)
