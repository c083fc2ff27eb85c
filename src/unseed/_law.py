"""The law of a new observation: where it is centred, how wide it is, and which shape it has; and how errors go together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from unseed._shapes import Shape

FloatArray = npt.NDArray[np.float64]

_TINY = np.finfo(np.float64).tiny


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
