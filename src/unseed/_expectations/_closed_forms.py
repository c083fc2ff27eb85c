"""Closed forms: ReLU by arc-cosine kernels (Cho and Saul 2009), the error function (Williams 1997), and the sine."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from unseed._expectations._pairs import CLOSE_SINE, MKL_IS_FAST, Angles, Expectations, Moments, Points, elementwise, outer
from unseed._expectations._scratch import Scratch, borrowed_scratch
from unseed._threads import on_all_cores, one_thread

_ERF_NORMALISATION = math.pi / (2 * math.asin(2 / 3))
_HALF_SIN_NORMALISATION = 1 / (1 - math.exp(-2))


def _relu_points(variance: Tensor) -> Points:
    """c_σ = 2 keeps the variance, and half of all derivatives are one."""
    return Points(variance, variance, (variance > 0).to(variance.dtype), variance)


def _relu_pairs(left: Points, right: Points, angles: Angles, scratch: Scratch, *, is_last: bool) -> Moments:
    """κ₁(θ) = (sin θ + (π − θ) cos θ)/π and κ₀(θ) = (π − θ)/π."""
    root, other_root = outer(left.variance.sqrt(), right.variance.sqrt())
    gap: Tensor | None = None
    if is_last:
        mirrored = angles.cosine.neg_()
        derivative = angles.radians(scratch).mul_(1 / math.pi)  # π − θ with all its digits
        value = angles.sine.mul_(1 / math.pi).sub_(mirrored.mul_(derivative))
    else:
        angle = angles.radians(scratch)
        derivative = torch.mul(angle, -1 / math.pi, out=scratch.take(angle, angle.shape)).add_(1.0)
        # π(1 − κ₁) = π(1 − cos θ) − (sin θ − θ cos θ), with 1 − cos θ = 2 sin²(θ/2)
        bend = angles.sine.sub_(angles.cosine.mul_(angle)).mul_(1 / math.pi)
        gap = angle.div_(2).sin_().square_().mul_(2.0).sub_(bend)
        value = torch.neg(gap, out=bend).add_(1.0)
    if bool((left.variance == 0).any()) or bool((right.variance == 0).any()):
        derivative = torch.where(root * other_root > 0, derivative, 0.0)  # σ'(0) = 0, as in torch
    return Moments(value.mul_(root).mul_(other_root), derivative, gap)


def _relu_shallow_tangent(left: Points, right: Points, angles: Angles, scratch: Scratch, w2: float) -> Tensor:
    """w² √(qr) (κ₁ + κ₀ cos θ) = w² √(qr) (sin θ + 2 (π − θ) cos θ)/π, in half as many passes."""
    root, other_root = outer(left.variance.sqrt() * (w2 / math.pi), right.variance.sqrt())
    mirrored = angles.cosine.neg_()
    return angles.sine.addcmul_(angles.radians(scratch), mirrored, value=-2.0).mul_(root).mul_(other_root)


def _relu_of_covariance(covariance: Tensor, left: Tensor, right: Tensor, same: Tensor) -> tuple[Tensor, Tensor]:
    norm = (left * right).sqrt()
    # On the diagonal the angle is zero, where its derivative is infinite: put in the known values instead.
    limit = 1 - 1e-14
    cosine = torch.where(same, 0.0, covariance / norm).clamp(-limit, limit)
    angle = torch.acos(cosine)
    value = norm * ((1 - cosine.square()).sqrt() + (math.pi - angle) * cosine) / math.pi
    return torch.where(same, right.expand_as(value), value), torch.where(same, 1.0, 1 - angle / math.pi)


_MOST_ROWS = 2048  # at a time, for a thread to do before it needs Python again
_ROWS, _COLUMNS = 64, 1024  # at a time in there: their pairs stay in the cache of a core


def relu_shallow_product(
    left: Tensor, variance: Tensor, right: Tensor, other_variance: Tensor, columns: Tensor, w2: float, b2: float
) -> Tensor | None:
    """Products with the tangent kernel of one hidden ReLU layer in half as many passes over the pairs. Shape (n, n_columns).

    With c = cos θ, and √q, √r the roots of the two points' variances,

        Θ = w²/π √q √r (sin θ + 2 (π − θ) cos θ) + b² = w²/π √q √r (√(1 − c²) + 2 c arcsin c + π c) + b².

    In a product with columns, √q and √r belong to the result and to the columns. Neither do the last two terms need the pairs:
    π c is an inner product of unit vectors, and b² sees the sum of a column only. Two functions of c are left. What that costs
    is a digit where most pairs point away from each other: there the terms cancel.
    """
    if not (MKL_IS_FAST and columns.device.type == "cpu" and columns.dtype == torch.float64):
        return None
    scaled = columns * (w2 / math.pi * other_variance.sqrt())[:, None]
    with one_thread():
        linear, constant = math.pi * (right.T @ scaled), b2 * columns.sum(0)
    parts = list(zip(torch.split(right, _COLUMNS), torch.split(scaled, _COLUMNS), strict=True))
    height = min(_MOST_ROWS, _ROWS * -(-len(left) // (16 * _ROWS)))
    result = columns.new_empty(len(left), columns.shape[1])

    def fill(start: int) -> None:
        rows = slice(start, start + height)
        total = left[rows] @ linear
        with borrowed_scratch() as scratch:
            for there, values in parts:
                buffers = [scratch.take(there, (_ROWS, len(there))) for _ in range(3)]
                total += _without_python()(left[rows], there, values, buffers)
                scratch.keep_only()
        result[rows] = total.mul_(variance[rows].sqrt()[:, None]).add_(constant)

    on_all_cores(fill, range(0, len(left), height), columns.device)
    return result


@cache
def _without_python() -> Callable[..., Tensor]:
    """`pairs_times` as one call that leaves Python, so that threads do not wait for each other after every operation.

    torch calls its compiler of scripts outdated. Without it the function itself does the same, more slowly.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return torch.jit.script(pairs_times)
    except (AttributeError, RuntimeError, NotImplementedError):
        return pairs_times


def pairs_times(left: Tensor, right: Tensor, columns: Tensor, buffers: list[Tensor], close_sine: float = CLOSE_SINE) -> Tensor:
    """(√(1 − c²) + 2 c arcsin c) @ columns for c = left rightᵀ, a few rows at a time. Shape (n, n_columns).

    Nearly parallel and opposite pairs have their angles from differences of coordinates, as in `first_layer_angles`.
    """
    result = torch.zeros([left.size(0), columns.size(1)], dtype=columns.dtype)
    one = torch.ones([], dtype=left.dtype)
    height = buffers[0].size(0)
    right_t = right.t().contiguous()
    for start in range(0, left.size(0), height):
        here = left[start : start + height]
        cosine, values, arcs = buffers[0][: here.size(0)], buffers[1][: here.size(0)], buffers[2][: here.size(0)]
        torch.mm(here, right_t, out=cosine)
        torch.addcmul(one, cosine, cosine, value=-1.0, out=values)
        if bool(values.amin() >= close_sine * close_sine):
            torch.sqrt(values, out=values)
            torch.asin(cosine, out=arcs)
            values.addcmul_(arcs, cosine, value=2.0)
        else:
            cosine.clamp_(-1.0, 1.0)
            torch.sqrt(values.clamp_min_(0.0), out=values)
            close = (values < close_sine).nonzero()
            torch.asin(cosine, out=arcs)
            values.addcmul_(arcs, cosine, value=2.0)
            for some in torch.split(close, max(1, 1048576 // max(1, left.size(1)))):
                i, j = some[:, 0], some[:, 1]
                of_pair = cosine[i, j]
                gap = (here[i] - of_pair.sign().unsqueeze(1) * right[j]).square().sum(1) / 2  # 1 - |cos θ|
                sine = (gap * (2.0 - gap)).clamp_min(0.0).sqrt()
                values[i, j] = sine + 2.0 * of_pair * (1.5707963267948966 - torch.atan2(sine, of_pair))
        torch.mm(values, columns, out=result[start : start + height])
    return result


_RELU_CURVE = """
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

RELU = Expectations(_relu_points, _relu_pairs, _relu_of_covariance, _RELU_CURVE, _relu_shallow_tangent, relu_shallow_product)


def _erf_points(variance: Tensor) -> Points:
    """The pair formulas at angle zero."""
    value = 2 / math.pi * torch.atan2(2 * variance, (1 + 4 * variance).sqrt())  # asin(2q / (1 + 2q))
    slope = _ERF_NORMALISATION * 4 / math.pi * (1 + 4 * variance).rsqrt()
    return Points(variance, _ERF_NORMALISATION * value, slope, variance)


def _erf_pairs(left: Points, right: Points, angles: Angles, scratch: Scratch, *, is_last: bool) -> Moments:
    """Arcsin of the covariance; the determinant is written with sin θ, so nothing cancels at large variances."""
    q, r = outer(left.variance, right.variance)
    root, other_root = q.sqrt(), r.sqrt()
    determinant = angles.sine.mul_(root).mul_(other_root).square_().mul_(4.0).add_(1 + 2 * q).add_(2 * r)
    inverse = torch.rsqrt(determinant, out=scratch.take(determinant, determinant.shape))
    spread = determinant.mul_(inverse)
    # asin(2c / √((1+2q)(1+2r))) = atan2(2c, √determinant)
    double = angles.cosine.mul_(2 * root).mul_(other_root)
    value = elementwise("arctan2", double, spread, into=scratch.take(double, double.shape))
    return Moments(value.mul_(_ERF_NORMALISATION * 2 / math.pi), inverse.mul_(_ERF_NORMALISATION * 4 / math.pi))


def _erf_of_covariance(covariance: Tensor, left: Tensor, right: Tensor, _: Tensor) -> tuple[Tensor, Tensor]:
    product = (1 + 2 * left) * (1 + 2 * right)
    value = 2 / math.pi * torch.asin(2 * covariance / product.sqrt())
    determinant = (product - 4 * covariance.square()).clamp_min(torch.finfo(covariance.dtype).tiny)
    return _ERF_NORMALISATION * value, _ERF_NORMALISATION * 4 / math.pi * determinant.rsqrt()


_ERF_CURVE = """
__device__ inline Moments moments(double cosine, double sine, double root, double other, double power, double other_power,
                                  bool is_last) {
  constexpr double normalisation = PI / (2 * 0.72972765622696636345);  // asin(2/3)
  double scale = root * other, cross = scale * sine;
  double inverse = rsqrt(1 + 2 * (root * root + other * other) + 4 * cross * cross);
  double value = normalisation * 2 * OVER_PI * atan(2 * scale * cosine * inverse);
  return {value, normalisation * 4 * OVER_PI * inverse, is_last ? 0 : relative_gap(value, power, other_power)};
}
"""

ERF = Expectations(_erf_points, _erf_pairs, _erf_of_covariance, _ERF_CURVE)


def _sin_points(variance: Tensor) -> Points:
    """E[sin²] = (1 − e^(−2q))/2 and E[cos²] = (1 + e^(−2q))/2."""
    power = -_HALF_SIN_NORMALISATION * torch.expm1(-2 * variance)
    return Points(variance, power, _HALF_SIN_NORMALISATION * (1 + torch.exp(-2 * variance)), variance)


def _sin_pairs(left: Points, right: Points, angles: Angles, scratch: Scratch, *, is_last: bool) -> Moments:
    """E[sin sin] and E[cos cos] = (e^(−|u−v|²/2) ∓ e^(−|u+v|²/2))/2, the squared distances without cancellation."""
    root, other_root = outer(left.variance.sqrt(), right.variance.sqrt())
    product, spread = root * other_root, (root - other_root).square()
    other_gap = 1 + angles.cosine.abs()
    gap = angles.sine.square() / other_gap  # 1 − |cos θ|, with all its digits
    larger, smaller = torch.exp(-spread / 2 - product * gap), torch.exp(-spread / 2 - product * other_gap)
    # e^−a − e^−b = −e^−a expm1(a − b), with b − a = 2 √(qr) |cos θ|: no digits lost where both are close.
    value = -_HALF_SIN_NORMALISATION * angles.cosine.sign() * larger * torch.expm1(-2 * product * angles.cosine.abs())
    return Moments(value, _HALF_SIN_NORMALISATION * (larger + smaller))


def _sin_of_covariance(covariance: Tensor, left: Tensor, right: Tensor, _: Tensor) -> tuple[Tensor, Tensor]:
    total = left + right
    near = torch.exp(-(total / 2 - covariance).clamp_min(0.0))
    far = torch.exp(-(total / 2 + covariance).clamp_min(0.0))
    return _HALF_SIN_NORMALISATION * (near - far), _HALF_SIN_NORMALISATION * (near + far)


_SIN_CURVE = """
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

SIN = Expectations(_sin_points, _sin_pairs, _sin_of_covariance, _SIN_CURVE)
