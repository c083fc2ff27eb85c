"""The NTK as a differentiable function of the network's scales: plain formulas, for choosing them by gradient.

Nearly parallel points lose the digits that `unseed.kernels._recursion` takes pains to keep; a criterion does not need them.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from unseed.errors import InvalidInputError

DIFFERENTIABLE = ("relu", "erf", "sin")


def ntk_of_scales(
    X: Tensor, input_scale: Tensor, weight_std: Tensor, bias_scale: Tensor, activation: str, depth: int
) -> Tensor:
    """NTK of the rows of X, biases started from N(0, 1). Shape (n, n).

    Parameters
    ----------
    X : Tensor of shape (n, d)
    input_scale : Tensor of shape (d,) or (1,)
        Relevance of every feature, or one for all.
    weight_std, bias_scale : Tensor of shape ()
    activation : {"relu", "erf", "sin"}
    depth : int
    """
    moments = {"relu": _relu_moments, "erf": _erf_moments, "sin": _sin_moments}.get(activation)
    if moments is None:
        raise InvalidInputError(f"activation={activation!r} has no differentiable kernel; use one of {DIFFERENTIABLE}")
    scaled = X * input_scale
    covariance = weight_std**2 * (scaled @ scaled.T) + bias_scale**2
    tangent = covariance
    for _ in range(depth):
        value, derivative = moments(covariance)
        covariance = weight_std**2 * value + bias_scale**2
        tangent = covariance + weight_std**2 * derivative * tangent
    return tangent


def _erf_moments(covariance: Tensor) -> tuple[Tensor, Tensor]:
    normalisation = math.pi / (2 * math.asin(2 / 3))
    spread = 1 + 2 * covariance.diagonal()
    product = spread[:, None] * spread[None, :]
    value = 2 / math.pi * torch.asin(2 * covariance / product.sqrt())
    determinant = (product - 4 * covariance.square()).clamp_min(torch.finfo(covariance.dtype).tiny)
    return normalisation * value, normalisation * 4 / math.pi * determinant.rsqrt()


def _relu_moments(covariance: Tensor) -> tuple[Tensor, Tensor]:
    variance = covariance.diagonal()
    same = torch.eye(len(variance), dtype=torch.bool, device=covariance.device)
    norm = (variance[:, None] * variance[None, :]).sqrt()
    # On the diagonal the angle is zero, where its derivative is infinite: put in the known values instead.
    limit = 1 - 1e-14
    cosine = torch.where(same, 0.0, covariance / norm).clamp(-limit, limit)
    angle = torch.acos(cosine)
    value = norm * ((1 - cosine.square()).sqrt() + (math.pi - angle) * cosine) / math.pi
    return torch.where(same, variance.expand_as(value), value), torch.where(same, 1.0, 1 - angle / math.pi)


def _sin_moments(covariance: Tensor) -> tuple[Tensor, Tensor]:
    scale = 1 / (1 - math.exp(-2))
    variance = covariance.diagonal()
    total = variance[:, None] + variance[None, :]
    near = torch.exp(-(total / 2 - covariance).clamp_min(0.0))
    far = torch.exp(-(total / 2 + covariance).clamp_min(0.0))
    return scale * (near - far), scale * (near + far)
