"""The sine in closed form: differences of Gaussians of the distance and of the mirrored distance."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from unseed._expectations._geometry import Angles, outer
from unseed._expectations._moments import Expectations, Moments, Points, relative_gap
from unseed._expectations._scratch import Scratch

SECOND_MOMENT = (1 - math.exp(-2)) / 2
_HALF = 1 / (1 - math.exp(-2))  # of the normalisation


def _points(variance: Tensor) -> Points:
    """E[sin²] = (1 − e^(−2q))/2 and E[cos²] = (1 + e^(−2q))/2."""
    power, slope = -_HALF * torch.expm1(-2 * variance), _HALF * (1 + torch.exp(-2 * variance))
    return Points(variance, power, slope, variance[:, None])


def _pairs(left: Points, right: Points, angles: Angles, scratch: Scratch, *, is_last: bool) -> Moments:
    """E[sin sin] and E[cos cos] = (e^(−|u−v|²/2) ∓ e^(−|u+v|²/2))/2, the squared distances without cancellation."""
    root, other_root = outer(left.variance.sqrt(), right.variance.sqrt())
    product, spread = root * other_root, (root - other_root).square()
    other_gap = 1 + angles.cosine.abs()
    gap = angles.sine.square() / other_gap  # 1 − |cos θ|, with all its digits
    larger, smaller = torch.exp(-spread / 2 - product * gap), torch.exp(-spread / 2 - product * other_gap)
    # e^−a − e^−b = −e^−a expm1(a − b), with b − a = 2 √(qr) |cos θ|: no digits lost where both are close.
    value = -_HALF * angles.cosine.sign() * larger * torch.expm1(-2 * product * angles.cosine.abs())
    derivative = _HALF * (larger + smaller)
    return Moments(value, derivative, None if is_last else relative_gap(value, left.power, right.power, scratch))


def _of_covariance(covariance: Tensor) -> tuple[Tensor, Tensor]:
    variance = covariance.diagonal()
    total = variance[:, None] + variance[None, :]
    near = torch.exp(-(total / 2 - covariance).clamp_min(0.0))
    far = torch.exp(-(total / 2 + covariance).clamp_min(0.0))
    return _HALF * (near - far), _HALF * (near + far)


_CURVE = """
__device__ inline Moments moments(double cosine, double sine, double root, double other, double power, double other_power,
                                  bool is_last) {
  constexpr double normalisation = 2 / (1 - 0.13533528323661269189);  // exp(-2)
  double scale = root * other, spread = (root - other) * (root - other);
  double size = fabs(cosine), far = 1 + size, near = sine * sine / far;  // 1 + |cos|, 1 - |cos|
  double larger = exp(-spread / 2 - scale * near), smaller = exp(-spread / 2 - scale * far);
  double value = copysign(normalisation / 2 * larger * -expm1(-2 * scale * size), cosine);
  double derivative = normalisation / 2 * (larger + smaller);
  return {value, derivative, is_last ? 0 : relative_gap(value, power, other_power)};
}
"""

SIN = Expectations(_points, _pairs, _of_covariance, _CURVE)
