"""Slow and obvious kernels: one pair at a time, two-dimensional quadrature, the product formula of the paper.

ReLU runs in 40 digits: the slope of its kernel depends on the angle itself, which float64 loses for parallel points.
"""

import math
from functools import cache

import mpmath
import numpy as np
from scipy import special, stats

FUNCTIONS = {
    "relu": (lambda u: np.maximum(u, 0.0), lambda u: (u > 0).astype(float)),
    "erf": (special.erf, lambda u: 2 / math.sqrt(math.pi) * np.exp(-(u**2))),
    "tanh": (np.tanh, lambda u: 1 - np.tanh(u) ** 2),
    "gelu": (lambda u: u * special.ndtr(u), lambda u: special.ndtr(u) + u * stats.norm.pdf(u)),
    "softplus": (lambda u: np.logaddexp(u, 0.0), special.expit),
    "silu": (lambda u: u * special.expit(u), lambda u: special.expit(u) * (1 + u * special.expit(-u))),
    "sin": (np.sin, np.cos),
}

mpmath.mp.dps = 40


@cache
def normalisation(activation):
    if activation == "relu":
        return 2.0
    z = np.linspace(-10, 10, 4001)
    return 1 / np.sum(FUNCTIONS[activation][0](z) ** 2 * stats.norm.pdf(z) * 0.005)


@cache  # deeper networks on the same points begin with the layers of shallower ones
def gaussian_moment(activation, q, r, covariance, *, derivative):
    """E[σ(u)σ(v)] or E[σ'(u)σ'(v)] over the plane, (u, v) with variances q, r and the covariance given."""
    if activation == "relu":
        return _relu_moment(q, r, covariance, derivative=derivative)
    function = FUNCTIONS[activation][int(derivative)]
    step = 0.05 if max(q, r) < 5 else 0.02 if max(q, r) < 40 else 0.008
    z = step * np.arange(-round(9.5 / step), round(9.5 / step) + 1)
    weights = stats.norm.pdf(z) * step
    slope = covariance / math.sqrt(q) if q > 0 else 0.0
    rest = math.sqrt(max(r - slope**2, 0.0))
    u, v = math.sqrt(q) * z, slope * z[:, None] + rest * z[None, :]
    return float((weights * function(u)) @ function(v) @ weights)


def _relu_moment(q, r, covariance, *, derivative):
    """Polar coordinates: the radial integral is elementary, the angular one runs over where both are on."""
    if q == 0 or r == 0:
        return mpmath.mpf(0)
    angle = mpmath.acos(max(-1, min(1, covariance / mpmath.sqrt(q * r))))
    quadrant = [angle - mpmath.pi / 2, mpmath.pi / 2]
    if derivative:
        return (quadrant[1] - quadrant[0]) / (2 * mpmath.pi)
    angular = mpmath.quad(lambda phi: mpmath.cos(phi) * mpmath.cos(phi - angle), quadrant)
    return mpmath.sqrt(q * r) * 2 * angular / (2 * mpmath.pi)


def pair_kernels(network, x, z):
    """NNGP and NTK of one pair by the paper's sum of products, biases added layer by layer."""
    c, w2, b2 = normalisation(network.activation), network.weight_std**2, network.bias_scale**2
    start_b2 = b2 if network.bias_init == "normal" else 0.0
    scale = np.asarray(network.input_scale if network.input_scale is not None else np.ones(len(x)))
    d = len(x) if network.scale_inputs else 1
    x, z = x * scale, z * scale
    if network.activation == "relu":
        x, z = (np.array([mpmath.mpf(float(entry)) for entry in vector]) for vector in (x, z))
    products = np.array([x @ x, z @ z, x @ z]) / d
    trained, slopes = [w2 * products[2] + b2], []
    q, r, covariance = w2 * products + start_b2
    for _ in range(network.depth):
        slopes.append(w2 * c * gaussian_moment(network.activation, q, r, covariance, derivative=True))
        moments = [
            c * gaussian_moment(network.activation, *arguments, derivative=False)
            for arguments in ((q, q, q), (r, r, r), (q, r, covariance))
        ]
        trained.append(w2 * moments[2] + b2)
        q, r, covariance = (w2 * moment + start_b2 for moment in moments)
    ntk = sum(value * math.prod(slopes[layer:]) for layer, value in enumerate(trained))
    return float(covariance), float(ntk)
