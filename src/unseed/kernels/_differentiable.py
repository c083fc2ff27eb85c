"""The NTK as a differentiable function of the network's scales: plain formulas, for choosing them by gradient.

Nearly parallel points lose the digits that `unseed.kernels._recursion` takes pains to keep; a criterion does not need them.
"""

from __future__ import annotations

from torch import Tensor

from unseed.errors import InvalidInputError
from unseed.networks import ACTIVATIONS, resolve_activation


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
    activation : str
        One whose moments can be differentiated.
    depth : int
    """
    moments = resolve_activation(activation).expectations.of_covariance
    if moments is None:
        able = tuple(one.name for one in ACTIVATIONS if one.expectations.of_covariance is not None)
        raise InvalidInputError(f"activation={activation!r} has no differentiable kernel; use one of {able}")
    scaled = X * input_scale
    covariance = weight_std**2 * (scaled @ scaled.T) + bias_scale**2
    tangent = covariance
    for _ in range(depth):
        value, derivative = moments(covariance)
        covariance = weight_std**2 * value + bias_scale**2
        tangent = covariance + weight_std**2 * derivative * tangent
    return tangent
