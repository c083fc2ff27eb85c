"""Mean and spread of the predictions of many networks, none of which is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from unseed._results import FloatArray


@dataclass
class Moments:
    """Mean and sum of squared deviations, added up without cancellation (Chan, Golub and LeVeque).

    Attributes
    ----------
    count : array of shape (n_points, 1)
        Networks that have been counted at each point.
    mean, squares : array of shape (n_points, n_outputs)

    Examples
    --------
    >>> moments = Moments.none(1, 1)
    >>> for value in (1.0, 2.0, 6.0):
    ...     moments.add(np.array([[value]]), np.ones((1, 1)))
    >>> float(moments.mean[0, 0]), float(moments.squares[0, 0])
    (3.0, 14.0)
    """

    count: FloatArray
    mean: FloatArray
    squares: FloatArray

    @classmethod
    def none(cls, n_points: int, n_outputs: int) -> Self:
        """Nothing yet."""
        return cls(np.zeros((n_points, 1)), np.zeros((n_points, n_outputs)), np.zeros((n_points, n_outputs)))

    def add(self, values: FloatArray, counts: FloatArray) -> None:
        """One more network, at the points where it counts one and not where it counts zero."""
        self.merge(Moments(counts, values, np.zeros_like(values)))

    def merge(self, other: Moments) -> None:
        """Networks that were counted elsewhere."""
        total = np.maximum(self.count + other.count, 1.0)
        step = other.mean - self.mean
        self.squares = self.squares + other.squares + step**2 * (self.count * other.count / total)
        self.mean = self.mean + step * (other.count / total)
        self.count = self.count + other.count
