"""The error function in closed form (Williams 1997)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from unseed._expectations._geometry import Angles, arctangent, outer
from unseed._expectations._moments import Expectations, Moments, Points, relative_gap
from unseed._expectations._scratch import Scratch

SECOND_MOMENT = 2 / math.pi * math.asin(2 / 3)
_NORMALISATION = math.pi / (2 * math.asin(2 / 3))


def _points(variance: Tensor) -> Points:
    """The pair formulas at angle zero."""
    value = 2 / math.pi * torch.atan2(2 * variance, (1 + 4 * variance).sqrt())  # asin(2q / (1 + 2q))
    slope = _NORMALISATION * 4 / math.pi * (1 + 4 * variance).rsqrt()
    return Points(variance, _NORMALISATION * value, slope, variance[:, None])


def _pairs(left: Points, right: Points, angles: Angles, scratch: Scratch, *, is_last: bool) -> Moments:
    """Arcsin of the covariance; the determinant is written with sin θ, so nothing cancels at large variances."""
    q, r = outer(left.variance, right.variance)
    root, other_root = q.sqrt(), r.sqrt()
    determinant = angles.sine.mul_(root).mul_(other_root).square_().mul_(4.0).add_(1 + 2 * q).add_(2 * r)
    inverse = torch.rsqrt(determinant, out=scratch.take(determinant, determinant.shape))
    spread = determinant.mul_(inverse)
    # asin(2c / √((1+2q)(1+2r))) = atan2(2c, √determinant)
    double = angles.cosine.mul_(2 * root).mul_(other_root)
    value = arctangent(double, spread, scratch).mul_(_NORMALISATION * 2 / math.pi)
    derivative = inverse.mul_(_NORMALISATION * 4 / math.pi)
    return Moments(value, derivative, None if is_last else relative_gap(value, left.power, right.power, scratch))


def _of_covariance(covariance: Tensor) -> tuple[Tensor, Tensor]:
    spread = 1 + 2 * covariance.diagonal()
    product = spread[:, None] * spread[None, :]
    value = 2 / math.pi * torch.asin(2 * covariance / product.sqrt())
    determinant = (product - 4 * covariance.square()).clamp_min(torch.finfo(covariance.dtype).tiny)
    return _NORMALISATION * value, _NORMALISATION * 4 / math.pi * determinant.rsqrt()


_CURVE = """
__device__ inline Moments moments(double cosine, double sine, double root, double other, double power, double other_power,
                                  bool is_last) {
  constexpr double normalisation = PI / (2 * 0.72972765622696636345);  // asin(2/3)
  double scale = root * other, cross = scale * sine;
  double inverse = rsqrt(1 + 2 * (root * root + other * other) + 4 * cross * cross);
  double value = normalisation * 2 * OVER_PI * atan(2 * scale * cosine * inverse);
  return {value, normalisation * 4 * OVER_PI * inverse, is_last ? 0 : relative_gap(value, power, other_power)};
}
"""

ERF = Expectations(_points, _pairs, _of_covariance, _CURVE)
