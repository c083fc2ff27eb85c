"""Angles between pre-activations, kept to full accuracy where points are nearly parallel.

The ReLU kernel's slope depends on the angle itself, and the angle of two nearly parallel vectors cannot be had from
their cosine: an error of 1e-16 in cos θ is an error of 1e-8 in θ. So every pair carries cosine *and* sine; close pairs
of the first layer take the sine from coordinate differences, and later layers from the gap 1 - cos θ, which is
propagated in a form without cancellation.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

_CLOSE_SINE = 0.01  # above it, sqrt(1 - cos²) has an absolute error below 1e-13
_GATHER = 1 << 20  # numbers held at a time while close pairs are refined


@dataclass(frozen=True)
class Angles:
    """Cosine and (non-negative) sine of the angle between the pre-activations of every pair. Shape (n, m) each."""

    cosine: Tensor
    sine: Tensor


def first_layer_angles(left: Tensor, right: Tensor) -> Angles:
    """Angles between unit vectors (or zero vectors, which count as orthogonal to everything)."""
    cosine = (left @ right.T).clamp_(-1.0, 1.0)
    sine = ((1 - cosine) * (1 + cosine)).sqrt_()
    if sine.numel() and bool(sine.min() < _CLOSE_SINE):
        _refine_close_pairs(sine, cosine, left, right)
    return Angles(cosine, sine)


def _refine_close_pairs(sine: Tensor, cosine: Tensor, left: Tensor, right: Tensor) -> None:
    pairs = (sine < _CLOSE_SINE).nonzero()
    for chunk in torch.split(pairs, max(1, _GATHER // max(1, left.shape[1]))):
        i, j = chunk.unbind(1)
        side = cosine[i, j].sign()[:, None]  # near-antiparallel pairs: the angle to the mirrored vector
        gap = (left[i] - side * right[j]).square().sum(1) / 2  # 1 - |cos θ|
        sine[i, j] = (gap * (2 - gap)).sqrt()


def next_layer_angles(
    gap: Tensor, left_power: Tensor, right_power: Tensor, weight_variance: float, bias_variance: float
) -> Angles:
    """Angles after a layer, from those of its activations.

    Parameters
    ----------
    gap : Tensor of shape (n, m)
        1 - (normalised inner product of the activations at each pair).
    left_power, right_power : Tensor of shape (n,), (m,)
        Mean square of the activations at each point.
    weight_variance, bias_variance : float
        What weights and biases of the layer contribute: variance = weight_variance · power + bias_variance.
    """
    if bias_variance > 0:
        # √(Q Q') − (w² p p' + b²) = w² b² (p − p')² / (√(Q Q') + w² p p' + b²): a sum of non-negative terms.
        p, q = left_power.sqrt()[:, None], right_power.sqrt()[None, :]
        product = weight_variance * p * q
        norm = (weight_variance * p**2 + bias_variance).sqrt() * (weight_variance * q**2 + bias_variance).sqrt()
        from_biases = weight_variance * bias_variance * (p - q) ** 2 / (norm + product + bias_variance)
        gap = (product * gap + from_biases) / norm
    gap = gap.clamp(0.0, 2.0)
    return Angles(1 - gap, (gap * (2 - gap)).sqrt())
