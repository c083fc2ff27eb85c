"""Shapes of the law of a new observation: laws around zero, of a spread of about one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

_MOST_SCORES = 512  # beyond, as many of their quantiles stand for them
_NUMBERS_AT_A_TIME = 1 << 22
_AS_GOOD_AS_NORMAL = 1e7  # degrees of freedom
_FURTHEST = 1e150  # whose square is finite
_TINY = np.finfo(np.float64).tiny


class Shape(Protocol):
    """A law around zero that is symmetric, of a spread of about one."""

    def cdf(self, z: FloatArray) -> FloatArray:
        """P(Z ≤ z)."""

    def log_density(self, z: FloatArray) -> FloatArray:
        """Logarithm of the density."""

    def lower_quantile(self, q: float) -> FloatArray:
        """Z with P(Z ≤ z) = q, for q up to a half."""

    def crps(self, z: FloatArray) -> FloatArray:
        """∫ (P(Z ≤ t) − 1{z ≤ t})² dt, the continuous ranked probability score of an observation z."""

    def sample(self, size: tuple[int, ...], generator: np.random.Generator) -> FloatArray:
        """Independent draws."""


@dataclass(frozen=True)
class Student:
    """Student's t, a number of degrees of freedom for every point; normal where there are infinitely many."""

    degrees_of_freedom: FloatArray

    def cdf(self, z: FloatArray) -> FloatArray:
        """P(Z ≤ z)."""
        from scipy.special import ndtr, stdtr

        return np.where(self._is_normal, ndtr(z), stdtr(self._finite, z))

    def log_density(self, z: FloatArray) -> FloatArray:
        """Logarithm of the density."""
        from scipy.special import betaln

        nu, z = self._finite, np.clip(z, -_FURTHEST, _FURTHEST)  # whose square is finite
        student = -0.5 * np.log(nu) - betaln(0.5, nu / 2) - (nu + 1) / 2 * np.log1p(np.square(z) / nu)
        return np.where(self._is_normal, -0.5 * np.square(z) - 0.5 * math.log(2 * math.pi), student)

    def lower_quantile(self, q: float) -> FloatArray:
        """Z with P(Z ≤ z) = q."""
        from scipy.special import ndtri, stdtrit

        return np.where(self._is_normal, ndtri(q), stdtrit(self._finite, q))

    def crps(self, z: FloatArray) -> FloatArray:
        """In closed form; infinite where there is no mean."""
        from scipy.special import betaln

        z = np.clip(z, -_FURTHEST, _FURTHEST)
        nu, inside, density = self._finite, z * (2 * self.cdf(z) - 1), np.exp(self.log_density(z))
        nu_1 = np.maximum(nu - 1, _TINY)
        spread = np.exp(betaln(0.5, np.maximum(nu, 1) - 0.5) - 2 * betaln(0.5, nu / 2))
        student = inside + 2 * (density * (nu + np.square(z)) - np.sqrt(nu) * spread) / nu_1
        normal = inside + 2 * density - 1 / math.sqrt(math.pi)
        return np.where(self._is_normal, normal, np.where(nu > 1, student, np.inf))

    def sample(self, size: tuple[int, ...], generator: np.random.Generator) -> FloatArray:
        """Independent draws."""
        drawn = generator.standard_normal(size)
        freedom = np.broadcast_to(self._finite, size)
        return np.where(self._is_normal, drawn, drawn / np.sqrt(generator.chisquare(freedom) / freedom))

    @property
    def _is_normal(self) -> npt.NDArray[np.bool_]:
        return np.asarray(self.degrees_of_freedom > _AS_GOOD_AS_NORMAL)

    @property
    def _finite(self) -> FloatArray:
        return np.where(self._is_normal, 1.0, self.degrees_of_freedom)


@dataclass(frozen=True)
class Sum:
    """share·T + √(1 − share²)·N: Student's t, the same degrees of freedom everywhere, and a normal law, independent of it.

    T is normal around a variance ν/χ², so the sum is a mixture of normal laws, over which the trapezoidal rule in the log-odds
    of χ²'s probability is accurate to all digits.
    """

    degrees_of_freedom: float
    share: FloatArray

    @cached_property
    def variances(self) -> tuple[FloatArray, FloatArray]:
        """Of T, and their weights."""
        from scipy.special import expit, gammainccinv, gammaincinv

        if self.degrees_of_freedom > _AS_GOOD_AS_NORMAL:
            return np.ones(1), np.ones(1)
        odds, half = np.linspace(-36.0, 36.0, 97), self.degrees_of_freedom / 2
        chi_square = 2 * np.where(odds < 0, gammaincinv(half, expit(odds)), gammainccinv(half, expit(-odds)))
        weights = expit(odds) * expit(-odds)
        return self.degrees_of_freedom / np.maximum(chi_square, 1e-200), weights / weights.sum()

    def cdf(self, z: FloatArray) -> FloatArray:
        """P(Z ≤ z)."""
        from scipy.special import ndtr

        return self._in_pieces(lambda z, widths, weights: ndtr(z[:, None] / widths) @ weights, z)

    def log_density(self, z: FloatArray) -> FloatArray:
        """Logarithm of the density."""
        from scipy.special import logsumexp

        def of(z: FloatArray, widths: FloatArray, weights: FloatArray) -> FloatArray:
            u = np.clip(z[:, None] / widths, -_FURTHEST, _FURTHEST)
            logarithms = np.log(weights) - np.log(widths) - 0.5 * math.log(2 * math.pi) - 0.5 * np.square(u)
            return np.asarray(logsumexp(logarithms, axis=1))

        return self._in_pieces(of, z)

    def lower_quantile(self, q: float) -> FloatArray:
        """Z with P(Z ≤ z) = q: by Newton's method between bounds, since the sum is wider than either."""
        if q == 0.5:
            return np.zeros_like(self.share)
        student, normal = (Student(np.array(nu)).lower_quantile(q) for nu in (self.degrees_of_freedom, np.inf))
        t, n = student * self.share, normal * np.sqrt(1 - np.square(self.share))
        high, low = np.minimum(t, n), 2 * (t + n)
        z = -np.hypot(t, n)
        for _ in range(100):
            excess = self.cdf(z) - q
            low, high = np.where(excess < 0, z, low), np.where(excess < 0, high, z)
            step = z - excess / np.maximum(np.exp(self.log_density(z)), _TINY)
            new = np.where((step > low) & (step < high), step, (low + high) / 2)
            moved, z = np.abs(new - z), new
            if (moved <= 1e-14 * np.abs(z)).all():
                break
        return np.asarray(z)

    def crps(self, z: FloatArray) -> FloatArray:
        """E|Z − z| − ½ E|Z − Z'|; infinite where there is no mean."""
        if self.degrees_of_freedom <= 1:
            return np.full(np.shape(z), np.inf)

        def of(z: FloatArray, widths: FloatArray, weights: FloatArray) -> FloatArray:
            apart = np.sqrt(np.square(widths)[:, :, None] + np.square(widths)[:, None, :]) @ weights @ weights
            return np.asarray((_mean_size(z[:, None] / widths) * widths) @ weights - apart / math.sqrt(2 * math.pi))

        return self._in_pieces(of, z)

    def sample(self, size: tuple[int, ...], generator: np.random.Generator) -> FloatArray:
        """Independent draws."""
        student = Student(np.array(self.degrees_of_freedom)).sample(size, generator)
        normal = generator.standard_normal(size)
        return np.asarray(self.share * student + np.sqrt(1 - np.square(self.share)) * normal)

    def _in_pieces(self, of: Callable[[FloatArray, FloatArray, FloatArray], FloatArray], z: FloatArray) -> FloatArray:
        variances, weights = self.variances
        z, share = np.broadcast_arrays(z, self.share)
        flat, shares = z.ravel(), share.ravel()
        found = np.empty(len(flat))
        size = max(1, _NUMBERS_AT_A_TIME // len(weights) ** 2)
        for some in (slice(start, start + size) for start in range(0, len(flat), size)):
            square = np.square(shares[some, None])
            found[some] = of(flat[some], np.sqrt(square * variances + 1 - square), weights)
        return found.reshape(z.shape)


@dataclass(frozen=True)
class Smoothed:
    """Sizes of standardised errors that were seen, either sign, smoothed; and one of as many again that is beyond them all.

    A normal kernel around each of m errors, drawn in by what it adds to their variance; and, with weight 1/(m + 1), one
    around zero whose standard deviation is the largest: the next error exceeds all of m with that chance.
    """

    sizes: FloatArray  # (m,), sorted

    @cached_property
    def parts(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Centres, widths and weights of the kernels."""
        m = len(self.sizes)
        sizes = self.sizes
        if m > _MOST_SCORES:
            sizes = np.quantile(sizes, (np.arange(_MOST_SCORES) + 0.5) / _MOST_SCORES)
        deviation = float(np.sqrt(np.mean(np.square(sizes))))
        typical = min(deviation, float(np.quantile(sizes, 0.5)) / 0.6745) or deviation  # 0.6745 of a normal law's deviation
        width = max(0.6 * typical * (2 * m) ** -0.2, _TINY)
        drawn_in = sizes * math.sqrt(max(1 - (width / max(deviation, _TINY)) ** 2, 0.0))
        centres = np.concatenate([-drawn_in[::-1], drawn_in, [0.0]])
        widths = np.append(np.full(2 * len(sizes), width), max(float(self.sizes[-1]), width))
        weights = np.append(np.full(2 * len(sizes), m / (m + 1) / (2 * len(sizes))), 1 / (m + 1))
        return centres, widths, weights

    def cdf(self, z: FloatArray) -> FloatArray:
        """P(Z ≤ z)."""
        from scipy.special import ndtr

        return self._in_pieces(lambda u, widths, weights: ndtr(u) @ weights, z)

    def log_density(self, z: FloatArray) -> FloatArray:
        """Logarithm of the density."""
        from scipy.special import logsumexp

        def of(u: FloatArray, widths: FloatArray, weights: FloatArray) -> FloatArray:
            logarithms = np.log(weights / widths) - 0.5 * math.log(2 * math.pi) - 0.5 * np.square(u)
            return np.asarray(logsumexp(logarithms, axis=1))

        return self._in_pieces(of, z)

    def lower_quantile(self, q: float) -> FloatArray:
        """Z with P(Z ≤ z) = q."""
        from scipy.optimize import brentq

        centres, widths, _ = self.parts
        if q == 0.5:
            return np.zeros(())
        least = float(centres[0] - 40 * widths.max())  # beyond it is nothing that could be told from zero
        return np.asarray(brentq(lambda z: float(self.cdf(np.array([z]))[0]) - q, least, 0.0, xtol=1e-14 * -least))

    def crps(self, z: FloatArray) -> FloatArray:
        """E|Z − z| − ½ E|Z − Z'|."""
        return self._in_pieces(lambda u, widths, weights: (_mean_size(u) * widths) @ weights, z) - self._spread / 2

    def sample(self, size: tuple[int, ...], generator: np.random.Generator) -> FloatArray:
        """Independent draws."""
        centres, widths, weights = self.parts
        drawn = generator.choice(len(weights), size=size, p=weights)
        return np.asarray(centres[drawn] + widths[drawn] * generator.standard_normal(size))

    @cached_property
    def _spread(self) -> float:
        """E|Z − Z'|."""
        centres, widths, weights = self.parts
        total = 0.0
        for some in np.array_split(np.arange(len(centres)), 8):
            both = np.hypot(widths[some, None], widths)
            total += float(weights[some] @ (_mean_size((centres[some, None] - centres) / both) * both) @ weights)
        return total

    def _in_pieces(self, of: Callable[[FloatArray, FloatArray, FloatArray], FloatArray], z: FloatArray) -> FloatArray:
        centres, widths, weights = self.parts
        flat = np.ravel(z)
        pieces = np.array_split(flat, range(0, len(flat), max(1, _NUMBERS_AT_A_TIME // len(centres)))[1:])
        with np.errstate(over="ignore"):
            found = [of((piece[:, None] - centres) / widths, widths, weights) for piece in pieces]
        return np.concatenate(found).reshape(np.shape(z))


def _mean_size(u: FloatArray) -> FloatArray:
    """E|u + N|, N standard normal."""
    from scipy.special import ndtr

    return np.asarray(u * (2 * ndtr(u) - 1) + 2 * np.exp(-0.5 * np.square(u)) / math.sqrt(2 * math.pi))
