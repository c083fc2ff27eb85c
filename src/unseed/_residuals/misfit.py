"""Structure that a fit has left in its errors, found by models of another kind.

A network that cannot express a function takes what it misses for noise, and no interval built on that network can know.
So simpler models are fitted to the leave-one-out errors: a sum of curves, one along each feature; a curve along the
direction in which the labels rise most steeply; a quadratic in the distance from the middle. What these can predict of the
errors is structure, not noise. The curves count where they prove themselves; the quadratic, with one parameter, always: it is
the bending of all features together, which hides from every one of them alone and is largest in the middle of the data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unseed._residuals.curves import TERMS, Curves, best_fit
from unseed._results import FloatArray

_STANDARD_ERRORS = 1.5
"""By which curves must lower the mean square of the errors, left out row by left out row."""

Structure = Callable[[FloatArray], FloatArray]
"""From points (n_points, d) to what is left in the errors there (n_points,)."""


@dataclass(frozen=True)
class CurveFit:
    """Curves that predict some of the errors of one output."""

    curves: Curves
    coefficients: FloatArray
    gain: float  # mean square of what is predicted, by rows left out

    @classmethod
    def of(cls, curves: Curves, X: FloatArray, errors: FloatArray) -> CurveFit | None:
        """Ridge regression of errors (n,) on curves; None where it predicts nothing."""
        squares = errors**2
        found = best_fit(curves(X), errors, lambda left_out: squares - (errors - left_out) ** 2, _STANDARD_ERRORS)
        return None if found is None else cls(curves, found[0].coefficients, found[1])

    def __call__(self, X: FloatArray) -> FloatArray:
        """The structure at points. Shape (n_points,)."""
        return np.asarray(self.curves(X) @ self.coefficients)


@dataclass(frozen=True)
class Quadratic:
    """Squared distance from the middle of the rows, features on equal footing, times one coefficient."""

    middle: FloatArray
    scale: FloatArray
    coefficient: float
    average: float

    @classmethod
    def of(cls, X: FloatArray, errors: FloatArray) -> Quadratic:
        """Least squares."""
        plain = cls(X.mean(axis=0), _scale(X), 1.0, 0.0)
        squared = plain(X)
        centred = squared - squared.mean()
        power = float(centred @ centred)
        return cls(plain.middle, plain.scale, float(centred @ errors) / power if power > 0 else 0.0, float(squared.mean()))

    def __call__(self, X: FloatArray) -> FloatArray:
        """The structure at points. Shape (n_points,)."""
        squared = (((X - self.middle) / self.scale) ** 2).sum(axis=1)
        return np.asarray(self.coefficient * (squared - self.average))


@dataclass(frozen=True)
class Misfit:
    """Curves that found something, and quadratics, output by output."""

    fits: tuple[tuple[CurveFit, ...], ...]
    quadratics: tuple[Quadratic, ...] = ()

    @classmethod
    def find(cls, X: FloatArray, labels: FloatArray, errors: FloatArray) -> Misfit:
        """Fit leave-one-out errors.

        Parameters
        ----------
        X : array of shape (n, d)
        labels, errors : array of shape (n, n_outputs)
        """
        if len(X) < 2 * TERMS:
            return cls(((),) * errors.shape[1])
        outputs = range(errors.shape[1])
        fits = tuple(_curve_fits(X, labels[:, k], errors[:, k]) for k in outputs)
        return cls(fits, tuple(Quadratic.of(X, errors[:, k]) for k in outputs))

    @property
    def mean_square(self) -> FloatArray:
        """Mean square of what the curves found. Shape (n_outputs,)."""
        return np.array([max((fit.gain for fit in fits), default=0.0) for fits in self.fits])

    def __call__(self, X: FloatArray) -> FloatArray:
        """Square of the structure at points, at least its mean square. Shape (n_points, n_outputs)."""
        return np.maximum(self._largest_square(lambda structure: structure(X), len(X)), self.mean_square)

    def between(self, X: FloatArray, other: FloatArray) -> FloatArray:
        """Square of the difference that the structure makes between points. Shape (n_points, n_outputs)."""
        return self._largest_square(lambda structure: structure(X) - structure(other), len(X))

    def _largest_square(self, values: Callable[[Structure], FloatArray], n_points: int) -> FloatArray:
        columns = []
        for k, fits in enumerate(self.fits):
            structures: list[Structure] = [*fits, *self.quadratics[k : k + 1]]
            squares = [values(structure) ** 2 for structure in structures]
            columns.append(np.max([np.zeros(n_points), *squares], axis=0))
        return np.stack(columns, axis=1)


def _curve_fits(X: FloatArray, labels: FloatArray, errors: FloatArray) -> tuple[CurveFit, ...]:
    curves = [Curves.along(X)]
    if X.shape[1] > 1:
        curves.append(Curves.along(X, _slope(X, labels)[:, None]))
    return tuple(fit for one in curves if (fit := CurveFit.of(one, X, errors)) is not None)


def _slope(X: FloatArray, labels: FloatArray) -> FloatArray:
    """Slope of a linear fit: the direction in which the labels rise most steeply. Shape (d,)."""
    n, d = X.shape
    scale = _scale(X)
    centred = (X - X.mean(axis=0)) / scale
    return np.asarray(np.linalg.solve(centred.T @ centred + 1e-3 * n * np.eye(d), centred.T @ labels) / scale)


def _scale(X: FloatArray) -> FloatArray:
    """Standard deviation of every feature, or 1 where it is constant to within rounding."""
    scale = X.std(axis=0)
    rounding = 10 * np.finfo(np.float64).eps * np.abs(X).max(axis=0)
    return np.where(scale > rounding, scale, 1.0)
