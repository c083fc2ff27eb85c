"""Products with the tangent kernel of one hidden ReLU layer, on a CPU, in half as many passes over the pairs.

With c = cos θ, and √q, √r the roots of the two points' variances,

    Θ = w²/π √q √r (sin θ + 2 (π − θ) cos θ) + b² = w²/π √q √r (√(1 − c²) + 2 c arcsin c + π c) + b².

In a product with columns, √q and √r belong to the result and to the columns. Neither do the last two terms need the pairs: π c
is an inner product of unit vectors, and b² sees the sum of a column only. Two functions of c are left. What that costs is a
digit where most pairs point away from each other: there the terms cancel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from unseed.kernels.duals import ReluDual
from unseed.kernels.geometry import NUMPY_IS_VECTORISED, arcsine_of, first_layer_angles, first_layer_cosines
from unseed.kernels.recursion import Profile, dual_of
from unseed.kernels.scratch import Scratch
from unseed.networks import MLP


@dataclass(frozen=True)
class ShallowColumns:
    """Points, and what the columns that belong to them are to every product."""

    directions: Tensor  # (m, d)
    scaled: Tensor  # (m, c)
    linear: Tensor  # (d, c)
    constant: Tensor  # (c,)

    @classmethod
    def of(cls, network: MLP, points: Profile, columns: Tensor) -> ShallowColumns | None:
        """None where the formula is another one, or arcsin not the fastest way to it."""
        has_formula = network.depth == 1 and network.bias_scale**2 == network.initial_bias_variance
        if not (has_formula and NUMPY_IS_VECTORISED and columns.device.type == "cpu" and type(dual_of(network)) is ReluDual):
            return None
        scaled = columns * (network.weight_std**2 / math.pi * points.layers[0].variance.sqrt())[:, None]
        linear = math.pi * (points.directions.T @ scaled)
        return cls(points.directions, scaled, linear, network.bias_scale**2 * columns.sum(0))

    def times(self, left: Profile, scratch: Scratch) -> Tensor:
        """Θ(left, points) @ columns. Shape (n, c)."""
        cosine = first_layer_cosines(left.directions, self.directions, scratch)
        angles = first_layer_angles(left.directions, self.directions, cosine, scratch)
        arcsine = arcsine_of(angles, scratch)
        pairs = angles.sine.addcmul_(arcsine, angles.cosine, value=2.0)
        total = (left.directions @ self.linear).numpy() + pairs.numpy() @ self.scaled.numpy()
        return torch.from_numpy(total).mul_(left.layers[0].variance.sqrt()[:, None]).add_(self.constant)
