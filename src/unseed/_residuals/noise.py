"""Noise that differs over x: a sum of curves for the logarithm of its variance, used only where the data speak for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unseed._residuals.curves import TERMS, Curves, best_fit
from unseed._results import FloatArray

MIN_ROWS = 4 * TERMS
"""Fewer rows say nothing about how noise varies."""

_MEAN_LOG_CHI_SQUARE = -1.2703628454614782  # E log χ² with one degree of freedom: −γ − log 2
_LARGEST_RATIO = 20.0  # of the variance at a point to the average one, either way
_STANDARD_ERRORS = 2.0  # by which varying noise must win


@dataclass(frozen=True)
class LogVariance:
    """Logarithm of the noise variance over its average."""

    curves: Curves
    coefficients: FloatArray
    offset: float

    def __call__(self, X: FloatArray) -> FloatArray:
        """Factor on the average variance. Shape (n_points,)."""
        logarithm = self.curves(X) @ self.coefficients + self.offset
        return _limited(np.exp(np.clip(logarithm, -50, 50)))


@dataclass(frozen=True)
class NoiseModel:
    """Noise variance at any point, output by output.

    Attributes
    ----------
    average : array of shape (n_outputs,)
    shapes : tuple of LogVariance or None
        None where the noise is taken as the same everywhere.
    """

    average: FloatArray
    shapes: tuple[LogVariance | None, ...]

    @classmethod
    def constant(cls, average: FloatArray) -> NoiseModel:
        """The same everywhere."""
        return cls(average, (None,) * len(average))

    @classmethod
    def fit(cls, X: FloatArray, errors: FloatArray, variance: FloatArray, average: FloatArray, kind: str) -> NoiseModel:
        """Look at leave-one-out errors for noise that varies.

        Parameters
        ----------
        X : array of shape (m, d)
        errors, variance : array of shape (m, n_outputs)
            Leave-one-out errors, and the posterior variance of the predictions they are about.
        average : array of shape (n_outputs,)
            Noise variance, as one number for each output.
        kind : {"auto", "constant", "varying"}
            ``"auto"`` lets the noise vary where that explains left-out errors better by two standard errors.
        """
        shapes: list[LogVariance | None] = [None] * len(average)
        if kind != "constant" and len(X) >= MIN_ROWS:
            shapes = [_shape(X, errors[:, k], variance[:, k], float(average[k]), kind) for k in range(len(average))]
        return cls(average, tuple(shapes))

    @property
    def varies(self) -> bool:
        """Whether any output has noise that differs over x."""
        return any(shape is not None for shape in self.shapes)

    def __call__(self, X: FloatArray) -> FloatArray:
        """Noise variance. Shape (n_points, n_outputs)."""
        factors = [np.ones(len(X)) if shape is None else shape(X) for shape in self.shapes]
        return np.stack(factors, axis=1) * self.average


def _shape(X: FloatArray, errors: FloatArray, variance: FloatArray, average: float, kind: str) -> LogVariance | None:
    """Regress log e² on curves; a squared error's logarithm is that of its variance plus noise of a known mean."""
    if average <= 0:
        return None
    curves = Curves.along(X)
    design = curves(X)
    floor = 1e-6 * float(np.mean(errors**2))
    targets = np.log(errors**2 + floor) - _MEAN_LOG_CHI_SQUARE
    constant = _deviance(errors, variance + average)

    def gains(left_out: FloatArray) -> FloatArray:
        factors = np.exp(left_out)
        return constant - _deviance(errors, variance + average * _limited(factors / factors.mean()))

    found = best_fit(design, targets - targets.mean(), gains, None if kind == "varying" else _STANDARD_ERRORS)
    if found is None:
        return None
    coefficients = found[0].coefficients
    return LogVariance(curves, coefficients, -float(np.log(np.exp(design @ coefficients).mean())))


def _limited(factors: FloatArray) -> FloatArray:
    return np.clip(factors, 1 / _LARGEST_RATIO, _LARGEST_RATIO)


def _deviance(errors: FloatArray, variance: FloatArray) -> FloatArray:
    """Minus twice the normal log density, without its constant."""
    return np.asarray(np.log(variance) + errors**2 / variance)
