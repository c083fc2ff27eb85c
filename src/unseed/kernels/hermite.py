"""Dual activations of any function, by expansion in Hermite polynomials.

With a_k(q) = E[σ(√q z) he_k(z)], he_k the orthonormal Hermite polynomials, Mehler's formula gives
E[σ(u)σ(v)] = Σ_k a_k(q) a_k(q') cosᵏθ: one-dimensional integrals per point and one polynomial per pair, instead of a
two-dimensional integral per pair. The sum of the squared coefficients left out bounds the error, so the number of
terms follows from the accuracy wanted and from how nearly parallel the points of a block are.

Accuracy: 1e-13 of √(power · power'), or an `AccuracyWarning` that says what was reached.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from unseed.errors import AccuracyWarning
from unseed.kernels.duals import Moments, Points, relative_gap
from unseed.kernels.geometry import Angles
from unseed.networks import Activation
from unseed.networks.quadrature import NODES, WEIGHTS, gaussian_mean

MIN_TERMS, MAX_TERMS = 64, 4096
TOLERANCE = 1e-15  # of the energy left out, relative to the whole
WARN_ABOVE = 1e-12
_POINTS_AT_A_TIME = 256


@cache
def _weighted_polynomials(n_terms: int) -> Tensor:
    """Orthonormal Hermite polynomials at the quadrature nodes, times the weights. Shape (n_nodes, n_terms)."""
    # he_k · √weight stays bounded for every k, so the recurrence runs on that product and never overflows.
    root = WEIGHTS.sqrt()
    columns = [root, NODES * root]
    for k in range(1, n_terms - 1):
        columns.append((NODES * columns[-1] - math.sqrt(k) * columns[-2]) / math.sqrt(k + 1))
    return torch.stack(columns, dim=1) * root[:, None]


def _energy_beyond(coefficients: Tensor) -> Tensor:
    """Share of the summed squares from each term on, at the worst of the points. Shape (n_terms,)."""
    energy = coefficients.square().flip(-1).cumsum(-1).flip(-1)
    return (energy / energy[:, :1].clamp_min(torch.finfo(energy.dtype).tiny)).amax(0)


@dataclass(frozen=True)
class HermiteDual:
    """Any activation, by its Hermite coefficients."""

    activation: Activation

    def diagonal(self, variance: Tensor) -> tuple[Tensor, Tensor]:
        """One-dimensional integrals, no expansion."""
        both = [
            torch.stack([gaussian_mean(values.square()) for values in self._at_nodes(chunk)])
            for chunk in torch.split(variance, _POINTS_AT_A_TIME)
        ]
        value, derivative = self.activation.normalisation * torch.cat(both, dim=1)
        return value, derivative

    def features(self, variance: Tensor) -> Tensor:
        """Hermite coefficients of σ(√q ·) and σ'(√q ·), √c_σ included, as many as matter. Shape (n, 2, n_terms)."""
        probes = variance[variance.argmax()][None] if len(variance) else variance
        n_terms = MIN_TERMS
        while n_terms < MAX_TERMS and len(probes):
            if self._resolved(self._coefficients(probes, n_terms)):  # the largest variance is the hardest point
                coefficients = self._coefficients(variance, n_terms)
                if self._resolved(coefficients):
                    return coefficients
            n_terms *= 2
        return self._coefficients(variance, n_terms)

    def moments(self, left: Points, right: Points, angles: Angles) -> Moments:
        """Both power series in cos θ, by Horner's rule."""
        n_terms = max(left.features.shape[-1], right.features.shape[-1])
        here, there = (
            side.features if side.features.shape[-1] == n_terms else self._coefficients(side.variance, n_terms)
            for side in (left, right)
        )
        reach = float(angles.cosine.abs().max()) if angles.cosine.numel() else 0.0
        value, derivative = (_mehler(here[:, i], there[:, i], angles.cosine, reach) for i in range(2))
        if n_terms == MAX_TERMS:
            self._warn_if_truncated(left, right, reach)
        return Moments(value, derivative, relative_gap(value, left.power, right.power))

    @staticmethod
    def _resolved(coefficients: Tensor) -> bool:
        """Whether the last quarter of the terms no longer matters: the series has been summed to the end."""
        start = 3 * coefficients.shape[-1] // 4
        return all(float(_energy_beyond(part)[start]) < TOLERANCE for part in coefficients.unbind(1))

    def _at_nodes(self, variance: Tensor) -> tuple[Tensor, Tensor]:
        arguments = variance.sqrt()[:, None] * NODES.to(variance.device)
        return self.activation.function(arguments), self.activation.derivative(arguments)

    def _coefficients(self, variance: Tensor, n_terms: int) -> Tensor:
        table = _weighted_polynomials(n_terms).to(variance.device)
        chunks = [
            torch.stack([values @ table for values in self._at_nodes(chunk)], dim=1)
            for chunk in torch.split(variance, _POINTS_AT_A_TIME)
        ]
        return math.sqrt(self.activation.normalisation) * torch.cat(chunks)

    def _warn_if_truncated(self, left: Points, right: Points, reach: float) -> None:
        missing = [
            float((1 - side.features[:, 0].square().sum(-1) / side.power.clamp_min(1e-300)).clamp_min(0).max())
            for side in (left, right)
        ]
        error = math.sqrt(missing[0] * missing[1]) * reach**MAX_TERMS
        if error > WARN_ABOVE:
            warnings.warn(
                f"the {self.activation} kernel of nearly parallel points is accurate to {error:.0e} only, because the "
                f"pre-activations have a variance of {float(left.variance.max()):.3g}; "
                "scale_inputs=True or a smaller weight_std makes it exact",
                AccuracyWarning,
                stacklevel=2,
            )


def _mehler(left: Tensor, right: Tensor, cosine: Tensor, reach: float) -> Tensor:
    """Σ_k left_k right_k cosᵏ, stopping where Cauchy-Schwarz says that the rest is nothing."""
    powers = reach ** torch.arange(left.shape[1], dtype=left.dtype, device=left.device)
    beyond = (_energy_beyond(left) * _energy_beyond(right)).sqrt() * powers
    n_terms = max(1, int((beyond > TOLERANCE).sum()))
    left, right = left[:, :n_terms].T.contiguous(), right[:, :n_terms].T.contiguous()
    total = torch.outer(left[-1], right[-1])
    for k in range(n_terms - 2, -1, -1):
        total = torch.addcmul(torch.outer(left[k], right[k]), total, cosine)
    return total
