"""Structure that a fit has left in its errors, found by a second, simpler look at them.

A network that cannot express a function takes what it misses for noise, and no interval built on that network can know.
So the leave-one-out errors are given to models of another kind: a sum of curves, one along each feature; a curve along the
direction in which the labels rise most steeply; a bowl around the middle. What these can predict of the errors is structure,
not noise. The curves count where they prove themselves; the bowl, with one parameter, always: it is the bending of all features
together, which hides from every one of them alone and is largest in the middle of the data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unseed._residuals.curves import TERMS, Curves, RidgeFit, ridge_fits
from unseed._results import FloatArray

_SURE = 1.5
"""Standard errors by which a look must lower the mean square of the errors, left out row by left out row."""

View = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Look:
    """Curves that predict some of the errors of one output."""

    view: View
    curves: Curves
    coefficients: FloatArray
    gain: float  # mean square of what is predicted, by rows left out

    def __call__(self, X: FloatArray) -> FloatArray:
        """The structure at points. Shape (n_points,)."""
        return np.asarray(self.curves(self.view(X)) @ self.coefficients)


@dataclass(frozen=True)
class Misfit:
    """Looks that found something, and bowls, output by output."""

    looks: tuple[tuple[Look, ...], ...]
    bowls: tuple[Bowl, ...] = ()

    @classmethod
    def find(cls, X: FloatArray, labels: FloatArray, errors: FloatArray) -> Misfit:
        """Look at leave-one-out errors.

        Parameters
        ----------
        X : array of shape (n, d)
        labels, errors : array of shape (n, n_outputs)
        """
        if len(X) < 2 * TERMS:
            return cls(((),) * errors.shape[1])
        outputs = range(errors.shape[1])
        looks = tuple(_looks(X, labels[:, k], errors[:, k]) for k in outputs)
        return cls(looks, tuple(Bowl.of(X, errors[:, k]) for k in outputs))

    @property
    def mean_square(self) -> FloatArray:
        """Mean square of what the curves found. Shape (n_outputs,)."""
        return np.array([max((look.gain for look in looks), default=0.0) for looks in self.looks])

    def __call__(self, X: FloatArray) -> FloatArray:
        """Square of the structure at points, at least its mean square. Shape (n_points, n_outputs)."""
        return np.maximum(self._largest_square(lambda structure: structure(X), len(X)), self.mean_square)

    def between(self, X: FloatArray, other: FloatArray) -> FloatArray:
        """Square of the difference that the structure makes between points. Shape (n_points, n_outputs)."""
        return self._largest_square(lambda structure: structure(X) - structure(other), len(X))

    def _largest_square(self, values: Callable[[View], FloatArray], n_points: int) -> FloatArray:
        columns = []
        for k, looks in enumerate(self.looks):
            structures: list[View] = [*looks, *self.bowls[k : k + 1]]
            squares = [values(structure) ** 2 for structure in structures]
            columns.append(np.max([np.zeros(n_points), *squares], axis=0))
        return np.stack(columns, axis=1)


@dataclass(frozen=True)
class Features:
    """Every feature by itself."""

    def __call__(self, X: FloatArray) -> FloatArray:
        """Shape (n, d)."""
        return X


@dataclass(frozen=True)
class Steepest:
    """The direction in which the labels rise most steeply."""

    slope: FloatArray  # (d,)

    @classmethod
    def of(cls, X: FloatArray, labels: FloatArray) -> Steepest:
        """Slope of a linear fit."""
        n, d = X.shape
        scale = _scale(X)
        centred = (X - X.mean(axis=0)) / scale
        slope = np.linalg.solve(centred.T @ centred + 1e-3 * n * np.eye(d), centred.T @ labels)
        return cls(np.asarray(slope / scale))

    def __call__(self, X: FloatArray) -> FloatArray:
        """Shape (n, 1)."""
        return np.asarray(X @ self.slope)[:, None]


@dataclass(frozen=True)
class Bowl:
    """Squared distance from the middle of the rows, features on equal footing, times one coefficient."""

    middle: FloatArray
    scale: FloatArray
    depth: float
    average: float

    @classmethod
    def of(cls, X: FloatArray, errors: FloatArray) -> Bowl:
        """Least squares."""
        flat = cls(X.mean(axis=0), _scale(X), 1.0, 0.0)
        squared = flat(X)
        centred = squared - squared.mean()
        power = float(centred @ centred)
        return cls(flat.middle, flat.scale, float(centred @ errors) / power if power > 0 else 0.0, float(squared.mean()))

    def __call__(self, X: FloatArray) -> FloatArray:
        """The structure at points. Shape (n_points,)."""
        squared = (((X - self.middle) / self.scale) ** 2).sum(axis=1)
        return np.asarray(self.depth * (squared - self.average))


def _looks(X: FloatArray, labels: FloatArray, errors: FloatArray) -> tuple[Look, ...]:
    views: list[View] = [Features()]
    if X.shape[1] > 1:
        views.append(Steepest.of(X, labels))
    return tuple(look for view in views if (look := _look(view, X, errors)) is not None)


def _look(view: View, X: FloatArray, errors: FloatArray) -> Look | None:
    curves = Curves.along(view(X))
    best: tuple[float, RidgeFit] | None = None
    for fit in ridge_fits(curves(view(X)), errors):
        gains = errors**2 - (errors - fit.left_out) ** 2
        gain = float(gains.mean())
        if gain > _SURE * gains.std() / np.sqrt(len(gains)) and (best is None or gain > best[0]):
            best = gain, fit
    return None if best is None else Look(view, curves, best[1].coefficients, best[0])


def _scale(X: FloatArray) -> FloatArray:
    """Standard deviation of every feature, or 1 where it is constant to within rounding."""
    scale = X.std(axis=0)
    rounding = 10 * np.finfo(np.float64).eps * np.abs(X).max(axis=0)
    return np.where(scale > rounding, scale, 1.0)
