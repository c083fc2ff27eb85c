"""Dual activations of any function, by expansion in Hermite polynomials.

With a_k(q) = E[σ(√q z) he_k(z)], he_k the orthonormal Hermite polynomials, Mehler's formula gives
E[σ(u)σ(v)] = Σ_k a_k(q) a_k(q') cosᵏθ: one-dimensional integrals per point and one polynomial per pair, instead of a
two-dimensional integral per pair. The sum of the squared coefficients left out bounds the error, so the number of
terms follows from the accuracy wanted and from how nearly parallel the points of a block are.

One-dimensional integrals use the trapezoidal rule. For a function that is analytic in a strip |Im z| < a the rule on the
whole line errs by about exp(-2πa/h). With the step h used here E[tanh(√q z)²] is exact to 1e-15 up to a variance of q = 400,
where Gauss-Hermite quadrature of the same order, whose nodes reach needlessly far out, has three digits.

Accuracy: `ACCURACY` of √(power · power'), or an `AccuracyWarning` that says what was reached. Two things can spoil it:
the one-dimensional integrals (kinks, or arguments so large that the grid is too coarse), seen by a second grid half a
step aside; and a series cut at `MAX_TERMS`, seen by the energy it leaves out. Of a function with kinks the coefficients fall
so slowly that it gets `KINKED_TERMS`, or so many more that what is left out is less than its integrals have wrong already.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from operator import itemgetter

import torch
from torch import Tensor

from unseed._expectations._pairs import Angles, Moments, Points
from unseed._expectations._scratch import Scratch
from unseed._told import warn_of
from unseed.errors import AccuracyWarning

MIN_TERMS, KINKED_TERMS, MAX_TERMS = 64, 256, 4096
TOLERANCE = 1e-15  # of the energy left out, relative to the whole
ACCURACY = 1e-12
_POINTS_AT_A_TIME = 256
_REACH, _STEPS = 13.0, 1024  # exp(-13²/4) < 1e-18: also Hermite functions, which decay like exp(-z²/4), are over by then


def _grid(nodes: Tensor) -> tuple[Tensor, Tensor]:
    """Nodes, and the weights with which values at them add up to an expectation under N(0, 1)."""
    return nodes, _REACH / _STEPS / math.sqrt(2 * math.pi) * torch.exp(-(nodes**2) / 2)


NODES, WEIGHTS = _grid(torch.linspace(-_REACH, _REACH, 2 * _STEPS + 1, dtype=torch.float64))
_SHIFTED = _grid(NODES[:-1] + _REACH / _STEPS / 2)  # a second opinion


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
class HermiteExpansion:
    """Moments of any activation, by its Hermite coefficients."""

    name: str  # for warnings
    value: Callable[[Tensor], Tensor]
    derivative: Callable[[Tensor], Tensor]
    normalisation: float  # c_σ
    remedy: str = "scale_inputs=True or a smaller weight_std helps"  # against arguments too large for the grid

    @cached_property
    def most_terms(self) -> int:
        """Terms at most, of all points alike: a matrix from different numbers of them would not be positive definite."""
        if self.own_error <= ACCURACY:
            return MAX_TERMS
        unit, n_terms = torch.ones(1, dtype=torch.float64), KINKED_TERMS
        whole = self.normalisation * self._moments(unit)[0]
        while n_terms < MAX_TERMS:
            left_out = 1 - self._coefficients(unit, n_terms).square().sum(-1) / whole
            if float(left_out.max()) < self.own_error:
                break
            n_terms *= 2
        return n_terms

    @cached_property
    def own_error(self) -> float:
        """Of one-dimensional integrals at a variance of one, which only kinks can spoil."""
        return self._moments(torch.ones(1, dtype=torch.float64))[1]

    def points(self, variance: Tensor) -> Points:
        """Power and slope by one-dimensional integrals; features are the coefficients."""
        moments, error = self._moments(variance)
        if error > ACCURACY:
            self._warn("", error)
        power, slope = (self.normalisation * moments).unbind(1)
        return Points(variance, power, slope, self._features(variance))

    def pairs(self, left: Points, right: Points, angles: Angles, scratch: Scratch, *, is_last: bool) -> Moments:
        """Both power series in cos θ, by Horner's rule."""
        if angles.cosine.ndim > 2:  # a stack: each set has its own number of terms
            sets = [
                self.pairs(left.mapped(itemgetter(i)), right.mapped(itemgetter(i)), one, scratch, is_last=is_last)
                for i, one in enumerate(map(Angles, angles.cosine, angles.sine))
            ]
            return Moments(torch.stack([one.value for one in sets]), torch.stack([one.derivative for one in sets]))
        n_terms = max(side.features.shape[-1] for side in (left, right))
        here, there = (
            side.features if side.features.shape[-1] == n_terms else self._coefficients(side.variance, n_terms)
            for side in (left, right)
        )
        reach = float(angles.cosine.abs().max()) if angles.cosine.numel() else 0.0
        value, derivative = (_mehler(here[:, i], there[:, i], angles.cosine, reach) for i in range(2))
        if n_terms >= self.most_terms:
            self._warn_if_truncated(left, right, reach)
        return Moments(value, derivative)

    def _moments(self, variance: Tensor) -> tuple[Tensor, float]:
        """Second moments of σ(√q ·) and σ'(√q ·), and their largest relative error, from two grids. Shape (n, 2)."""
        first, second = (self._integrals(variance, *grid, exponent=2) for grid in ((NODES, WEIGHTS), _SHIFTED))
        moments = (first + second) / 2
        return moments, float(((first - second).abs() / moments.clamp_min(1e-300)).max()) if len(variance) else 0.0

    def _features(self, variance: Tensor) -> Tensor:
        """Hermite coefficients of σ(√q ·) and σ'(√q ·), √c_σ included, as many as matter. Shape (n, 2, n_terms)."""
        probes = variance[variance.argmax()][None] if len(variance) else variance
        n_terms = MIN_TERMS
        while n_terms < self.most_terms and len(probes):
            if self._resolved(self._coefficients(probes, n_terms)):  # the largest variance is the hardest point
                coefficients = self._coefficients(variance, n_terms)
                if self._resolved(coefficients):
                    return coefficients
            n_terms *= 2
        return self._coefficients(variance, n_terms)

    @staticmethod
    def _resolved(coefficients: Tensor) -> bool:
        """Whether the last quarter of the terms no longer matters: the series has been summed to the end."""
        start = 3 * coefficients.shape[-1] // 4
        return all(float(_energy_beyond(part)[start]) < TOLERANCE for part in coefficients.unbind(1))

    def _coefficients(self, variance: Tensor, n_terms: int) -> Tensor:
        table = _weighted_polynomials(n_terms)
        return math.sqrt(self.normalisation) * self._integrals(variance, NODES, table)

    def _integrals(self, variance: Tensor, nodes: Tensor, weights: Tensor, exponent: int = 1) -> Tensor:
        """Weighted sums of powers of σ(√q ·) and σ'(√q ·) at the nodes, a few points at a time. Shape (n, 2, ...)."""
        parts, weights = [], weights.to(variance.device)
        for chunk in torch.split(variance, _POINTS_AT_A_TIME):
            arguments = chunk.sqrt()[:, None] * nodes.to(variance.device)
            parts.append(torch.stack([f(arguments) ** exponent @ weights for f in (self.value, self.derivative)], dim=1))
        return torch.cat(parts)

    def _warn_if_truncated(self, left: Points, right: Points, reach: float) -> None:
        missing = 0.0
        for part in range(2):  # the series of the function, and the slower one of its derivative
            shares = [
                (1 - side.features[:, part].square().sum(-1) / whole.clamp_min(1e-300)).clamp_min(0).max()
                for side, whole in ((left, (left.power, left.slope)[part]), (right, (right.power, right.slope)[part]))
            ]
            missing = max(missing, math.sqrt(float(shares[0] * shares[1])))
        error = missing * reach**self.most_terms
        if error > max(ACCURACY, self.own_error):
            self._warn(" of nearly parallel points", error)

    def _warn(self, where: str, error: float) -> None:
        kinked = "an activation without kinks is accurate to twelve digits"
        advice = kinked if self.own_error > ACCURACY else self.remedy
        text = f"the {self.name} kernel{where} is accurate to {error:.0e} only; {advice}"
        warn_of(f"kernel of {self.name}", error, text, AccuracyWarning)


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
