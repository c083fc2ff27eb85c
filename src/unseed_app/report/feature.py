"""A feature as a person knows it: one column of numbers, or a category that several columns of 0 and 1 stand for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unseed._results import FloatArray


@dataclass(frozen=True)
class Feature:
    """Where a feature is in X, and what its values are called.

    Attributes
    ----------
    name : str
    columns : tuple of int
        Of X: one, or one for each level.
    levels : tuple of str
        Of a category; empty for a number.

    Examples
    --------
    >>> city = Feature("city", (1, 2), ("Bern", "Rome"))
    >>> city.values(np.array([[5.0, 0.0, 1.0], [7.0, 1.0, 0.0]]))
    array([1., 0.])
    """

    name: str
    columns: tuple[int, ...]
    levels: tuple[str, ...] = ()

    def values(self, X: FloatArray) -> FloatArray:
        """The number, or which level it is. Shape (n_rows,)."""
        if not self.levels:
            return np.asarray(X[:, self.columns[0]])
        return np.asarray(np.argmax(X[:, self.columns], axis=1), dtype=np.float64)

    def typical(self, X: FloatArray) -> float:
        """A value that occurs: the median, or the most frequent level."""
        values = self.values(X)
        if not self.levels:
            return float(np.quantile(values, 0.5, method="closest_observation"))
        return float(np.bincount(values.astype(np.intp)).argmax())

    def grid(self, X: FloatArray, n_values: int) -> FloatArray:
        """A few values between the smallest and the largest, or the levels that occur."""
        values = self.values(X)
        return np.unique(values) if self.levels else np.quantile(values, np.linspace(0, 1, n_values))

    def put(self, points: FloatArray, values: FloatArray | float) -> None:
        """Give points these values, in place."""
        if self.levels:
            points[:, self.columns] = np.eye(len(self.levels))[np.asarray(values, dtype=np.intp)]
        else:
            points[:, self.columns[0]] = values
