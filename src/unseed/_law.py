"""The law of a new observation: where it is centred, how wide it is, and which shape it has."""

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
_FURTHEST = 1e150
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


@dataclass(frozen=True)
class Law:
    """Centre plus scale times Z, point by point; several outputs, the last axis, may have a shape of Z each."""

    centre: FloatArray
    scale: FloatArray
    shapes: tuple[Shape, ...]

    def cdf(self, y: npt.ArrayLike) -> FloatArray:
        """P(Y ≤ y)."""
        off, z = self._standardised(y)
        return self._settled(np.where(off >= 0, 1.0, 0.0), self._each(lambda shape, own: shape.cdf(own), z))

    def log_density(self, y: npt.ArrayLike) -> FloatArray:
        """Logarithm of the density; infinite at the one value that a label without noise can have."""
        off, z = self._standardised(y)
        with np.errstate(over="ignore"):
            found = self._each(lambda shape, own: shape.log_density(own), z) - np.log(np.maximum(self.scale, _TINY))
        return self._settled(np.where(off == 0, np.inf, -np.inf), found)

    def crps(self, y: npt.ArrayLike) -> FloatArray:
        """∫ (P(Y ≤ t) − 1{y ≤ t})² dt."""
        off, z = self._standardised(y)
        return self._settled(np.abs(off), self.scale * self._each(lambda shape, own: shape.crps(own), z))

    def quantile(self, q: float) -> FloatArray:
        """Y with P(Y ≤ y) = q."""
        reach = self.reach(min(q, 1 - q))
        return np.asarray(self.centre - reach if q < 0.5 else self.centre + reach)

    def reach(self, tail: float) -> FloatArray:
        """Distance from the centre that is exceeded on either side with this chance."""
        if tail >= 0.5:
            return np.zeros_like(self.centre)
        if tail <= 0:
            return np.full_like(self.centre, np.inf)
        lower = [np.asarray(shape.lower_quantile(tail)) for shape in self.shapes]
        return np.asarray(-self.scale * (lower[0] if len(lower) == 1 else np.stack(lower, axis=-1)))

    def sample(self, n: int, generator: np.random.Generator) -> FloatArray:
        """Draws (n, ...), independent of each other and from point to point."""
        size = (n, *self.centre.shape)
        if len(self.shapes) == 1:
            return np.asarray(self.centre + self.scale * self.shapes[0].sample(size, generator))
        drawn = [shape.sample(size[:-1], generator) for shape in self.shapes]
        return np.asarray(self.centre + self.scale * np.stack(drawn, axis=-1))

    def _standardised(self, y: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        off = np.asarray(y, dtype=np.float64) - self.centre
        with np.errstate(over="ignore"):
            return off, off / np.maximum(self.scale, _TINY)

    def _settled(self, certain: FloatArray, found: FloatArray) -> FloatArray:
        return np.where(self.scale > 0, found, certain)

    def _each(self, of: Callable[[Shape, FloatArray], FloatArray], z: FloatArray) -> FloatArray:
        if len(self.shapes) == 1:
            return of(self.shapes[0], z)
        return np.stack([of(shape, z[..., k]) for k, shape in enumerate(self.shapes)], axis=-1)


class JointLaw(Protocol):
    """How the errors at the points of a prediction go together, as far as that is known."""

    def covariance(self) -> FloatArray:
        """Shape (n_outputs, n_points, n_points)."""


@dataclass(frozen=True)
class KnownLaw:
    """A joint law as its figures."""

    values: FloatArray  # (n_outputs, n_points, n_points)

    def covariance(self) -> FloatArray:
        """Shape (n_outputs, n_points, n_points)."""
        return self.values
