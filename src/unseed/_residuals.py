"""What leave-one-out errors say: structure that the network missed, and how the noise differs over x.

A network that cannot express a function takes what it misses for noise, and no interval built on that network can know. So
simpler models are fitted to the errors: a sum of curves, one along each feature; a curve along the direction in which the
labels rise most steeply; a quadratic in the distance from the middle. What these can predict of the errors is structure, not
noise. The curves count where they prove themselves; the quadratic, with one parameter, always: it is the bending of all
features together, which hides from every one of them alone and is largest in the middle of the data. Curves fitted to the
logarithm of the squared errors say how the noise varies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from unseed._results import FloatArray

TERMS, MAX_FEATURES = 8, 64
"""Cosines along each feature; above so many features, their leading principal components."""

MIN_ROWS = 4 * TERMS
"""Fewer rows say nothing about how noise varies."""

_FOLDS = 5
_SHRINKAGE = np.logspace(-3, 2, 11)  # times the mean squared singular value
_STRUCTURE_WINS, _VARYING_NOISE_WINS = 1.8 * np.sqrt(2), 2.0  # standard errors by which left-out rows must be predicted better
_MEAN_LOG_CHI_SQUARE = -1.2703628454614782  # E log χ² with one degree of freedom: −γ − log 2
_LARGEST_RATIO = 20.0  # of the noise variance at a point to the average one, either way

Structure = Callable[[FloatArray], FloatArray]
"""From points (n_points, d) to what is left in the errors there (n_points,)."""

Fits = Iterable[tuple[FloatArray, FloatArray]]
"""Coefficients of the terms (p,), and what they come to at each row where it had no part in them (n,): one pair a shrinkage."""


@dataclass(frozen=True)
class Curves:
    """Cosines of the ranks of every feature: they bend where the rows are, and no outlier can pull them."""

    directions: FloatArray  # (d, f), from features to what the curves run along
    ordered: FloatArray  # (n, f), the rows' values, each column sorted: their own scale of ranks
    offsets: FloatArray  # (f · TERMS,)

    @classmethod
    def along(cls, X: FloatArray, directions: FloatArray | None = None) -> Curves:
        """Curves along the features of X (n, d), or along directions (d, f) in their space."""
        if directions is None:
            d = X.shape[1]
            directions = np.eye(d) if d <= MAX_FEATURES else np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2].T
            directions = directions[:, :MAX_FEATURES]
        ordered = np.sort(X @ directions, axis=0)
        bare = cls(directions, ordered, np.zeros(directions.shape[1] * TERMS))
        return cls(directions, ordered, bare(X).mean(axis=0))

    def __call__(self, X: FloatArray) -> FloatArray:
        """Values of all terms. Shape (n_points, f · TERMS)."""
        values = X @ self.directions
        ranks = np.empty_like(values)
        for j, column in enumerate(self.ordered.T):
            below, up_to = np.searchsorted(column, values[:, j], "left"), np.searchsorted(column, values[:, j], "right")
            ranks[:, j] = (below + up_to) / 2 / len(column)
        terms = np.cos(np.pi * np.arange(1, TERMS + 1) * ranks[:, :, None]).reshape(len(X), -1)
        return np.asarray(terms - self.offsets)


@dataclass(frozen=True)
class CurveFit:
    """A sum of curves, and what rows left out gain by it on average."""

    curves: Curves
    coefficients: FloatArray
    gain: float

    @classmethod
    def best(cls, curves: Curves, fits: Fits, gains_of: Structure, least: float | None) -> CurveFit | None:
        """The ridge regression with the largest mean gain; None where no fit gains enough.

        Predictions at rows left out go into ``gains_of``, and what each row gains by them comes back. The mean gain must exceed
        zero by ``least`` standard errors, as of independent gains; None takes the largest, whatever it is. Of pure noise the
        gains Σ_ij e_i K_ij e_j count every pair of rows twice, so their mean varies √2 times as much as independent ones.
        """
        best: CurveFit | None = None
        for coefficients, left_out in fits:
            gains = gains_of(left_out)
            gain = float(gains.mean())
            is_enough = least is None or gain > least * gains.std() / np.sqrt(len(gains))
            if is_enough and (best is None or gain > best.gain):
                best = cls(curves, coefficients, gain)
        return best

    def __call__(self, X: FloatArray) -> FloatArray:
        """The sum at points. Shape (n_points,)."""
        return np.asarray(self.curves(X) @ self.coefficients)


def ridge_fits(design: FloatArray, targets: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Ridge regressions of targets (n,), with a mean of their own, on centred columns (n, p), from weak to strong shrinkage.

    Coefficients (p,), and the prediction at each row by the fit to all others (n,). The mean is fitted as well, and columns
    that are centred hide that: it adds 1/n to every leverage.
    """
    left, singular, right = np.linalg.svd(design, full_matrices=False)
    kept = singular > 1e-8 * np.sqrt(len(design))  # the terms are of size one
    left, singular, right = left[:, kept], singular[kept], right[kept]
    if not kept.any():
        return
    power, projected = singular**2, left.T @ targets
    centred = targets - targets.mean()
    for ridge in _SHRINKAGE * power.mean():
        shrunk = power / (power + ridge)
        leverage = np.minimum(1 / len(design) + left**2 @ shrunk, 1 - 1e-9)
        remaining = (centred - left @ (shrunk * projected)) / (1 - leverage)
        yield right.T @ (shrunk / singular * projected), targets - remaining


def steepest_fits(
    curves: Curves, X: FloatArray, labels: FloatArray, errors: FloatArray
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Ridge regressions of errors (n,) along the direction (d, 1) of the curves in which the labels (n,) rise most steeply.

    With many features that direction follows the noise of every label, and a row left out of the curve alone is predicted
    from its own label. So in each fold of the rows the direction, and the curve along it, are those of all other folds.
    """
    fold = np.random.default_rng(0).permutation(len(X)) % _FOLDS
    left_out = np.tile(errors.mean() - (errors - errors.mean()) / (len(X) - 1), (len(_SHRINKAGE), 1))  # mean of all others
    for unseen in (fold == k for k in range(_FOLDS)):
        seen = ~unseen
        others = Curves.along(X[seen], slope(X[seen], labels[seen]))
        for row, (coefficients, _) in zip(left_out, ridge_fits(others(X[seen]), errors[seen]), strict=False):
            row[unseen] += others(X[unseen]) @ coefficients
    for (coefficients, _), crossed in zip(ridge_fits(curves(X), errors), left_out, strict=False):
        yield coefficients, crossed


@dataclass(frozen=True)
class Quadratic:
    """Squared distance from the middle of the rows, features on equal footing, times one coefficient."""

    middle: FloatArray
    scale: FloatArray
    coefficient: float
    average: float

    @classmethod
    def of(cls, X: FloatArray, errors: FloatArray) -> Quadratic:
        """Least squares, less what comes of noise alone: the coefficient's square is unbiased, or zero where that is less."""
        plain = cls(X.mean(axis=0), _scale(X), 1.0, 0.0)
        squared = plain(X)
        centred = squared - squared.mean()
        power = float(centred @ centred)
        fitted = float(centred @ errors) / power if power > 0 else 0.0
        left = errors - errors.mean() - fitted * centred
        chance = float(left @ left) / max(len(X) - 2, 1) / power if power > 0 else 0.0
        coefficient = float(np.copysign(np.sqrt(max(fitted**2 - chance, 0.0)), fitted))
        return cls(plain.middle, plain.scale, coefficient, float(squared.mean()))

    def __call__(self, X: FloatArray) -> FloatArray:
        """The structure at points. Shape (n_points,)."""
        squared = (((X - self.middle) / self.scale) ** 2).sum(axis=1)
        return np.asarray(self.coefficient * (squared - self.average))


@dataclass(frozen=True)
class Misfit:
    """Structure that was found in the errors, output by output."""

    structures: tuple[tuple[Structure, ...], ...]  # curves that found something, and quadratics
    mean_square: FloatArray  # (n_outputs,) of what the curves found

    @classmethod
    def find(cls, X: FloatArray, labels: FloatArray, errors: FloatArray) -> Misfit:
        """Fit leave-one-out errors: X (n, d), labels and errors (n, n_outputs)."""
        if len(X) < 2 * TERMS:
            return cls(((),) * errors.shape[1], np.zeros(errors.shape[1]))
        fits = [_curve_fits(X, *output) for output in zip(labels.T, errors.T, strict=True)]
        structures: list[tuple[Structure, ...]] = [
            (*found, Quadratic.of(X, own)) for found, own in zip(fits, errors.T, strict=True)
        ]
        return cls(tuple(structures), np.array([max((fit.gain for fit in found), default=0.0) for found in fits]))

    def __call__(self, X: FloatArray) -> FloatArray:
        """Square of the structure at points, at least its mean square. Shape (n_points, n_outputs)."""
        return np.maximum(self._largest_square(lambda structure: structure(X), len(X)), self.mean_square)

    def between(self, X: FloatArray, other: FloatArray) -> FloatArray:
        """Square of the difference that the structure makes between points. Shape (n_points, n_outputs)."""
        return self._largest_square(lambda structure: structure(X) - structure(other), len(X))

    def _largest_square(self, values: Callable[[Structure], FloatArray], n_points: int) -> FloatArray:
        columns = [[np.zeros(n_points), *(values(one) ** 2 for one in own)] for own in self.structures]
        return np.stack([np.max(squares, axis=0) for squares in columns], axis=1)


def _curve_fits(X: FloatArray, labels: FloatArray, errors: FloatArray) -> list[CurveFit]:
    n = len(errors)
    squares = ((errors - errors.mean()) * n / (n - 1)) ** 2  # around the mean of all others

    def gains_of(left_out: FloatArray) -> FloatArray:
        return np.asarray(squares - (errors - left_out) ** 2)

    along = Curves.along(X)
    fits = [CurveFit.best(along, ridge_fits(along(X), errors), gains_of, _STRUCTURE_WINS)]
    if X.shape[1] > 1:
        steepest = Curves.along(X, slope(X, labels))
        fits.append(CurveFit.best(steepest, steepest_fits(steepest, X, labels, errors), gains_of, _STRUCTURE_WINS))
    return [fit for fit in fits if fit is not None]


@dataclass(frozen=True)
class NoiseModel:
    """Noise variance at any point, output by output.

    The logarithm of the variance over its average is a shape plus an offset; there is no shape where the noise is taken as the
    same everywhere.
    """

    average: FloatArray  # (n_outputs,)
    shapes: tuple[CurveFit | None, ...]
    offsets: FloatArray  # (n_outputs,)

    @classmethod
    def constant(cls, average: FloatArray) -> NoiseModel:
        """The same everywhere."""
        return cls(average, (None,) * len(average), np.zeros(len(average)))

    @classmethod
    def fit(cls, X: FloatArray, errors: FloatArray, variance: FloatArray, average: FloatArray, kind: str) -> NoiseModel:
        """Look at leave-one-out errors (m, n_outputs) for noise that varies, given the variance of the predictions left out.

        ``"auto"`` lets the noise vary where that explains left-out errors better by two standard errors.
        """
        if kind == "constant" or len(X) < MIN_ROWS:
            return cls.constant(average)
        least = None if kind == "varying" else _VARYING_NOISE_WINS
        shapes = [_log_variance(X, *output, least) for output in zip(errors.T, variance.T, average, strict=True)]
        offsets = [0.0 if shape is None else -float(np.log(np.exp(shape(X)).mean())) for shape in shapes]
        return cls(average, tuple(shapes), np.array(offsets))

    def __call__(self, X: FloatArray) -> FloatArray:
        """Noise variance. Shape (n_points, n_outputs)."""
        factors = np.ones((len(X), len(self.average)))
        for k, shape in enumerate(self.shapes):
            if shape is not None:
                factors[:, k] = _limited(np.exp(np.clip(shape(X) + self.offsets[k], -50, 50)))
        return np.asarray(factors * self.average)


def _log_variance(
    X: FloatArray, errors: FloatArray, variance: FloatArray, average: float, least: float | None
) -> CurveFit | None:
    """Regress log e² on curves; a squared error's logarithm is that of its variance plus noise of a known mean."""
    if average <= 0:
        return None
    floor = 1e-6 * float(np.mean(errors**2))
    targets = np.log(errors**2 + floor) - _MEAN_LOG_CHI_SQUARE
    constant = _deviance(errors, variance + average)

    def gains_of(left_out: FloatArray) -> FloatArray:
        factors = np.exp(left_out)
        return constant - _deviance(errors, variance + average * _limited(factors / factors.mean()))

    curves = Curves.along(X)
    return CurveFit.best(curves, ridge_fits(curves(X), targets - targets.mean()), gains_of, least)


def _limited(factors: FloatArray) -> FloatArray:
    return np.clip(factors, 1 / _LARGEST_RATIO, _LARGEST_RATIO)


def _deviance(errors: FloatArray, variance: FloatArray) -> FloatArray:
    """Minus twice the normal log density, without its constant."""
    return np.asarray(np.log(variance) + errors**2 / variance)


def slope(X: FloatArray, labels: FloatArray) -> FloatArray:
    """Slope of a linear fit: the direction in which the labels rise most steeply. Shape (d, 1)."""
    n, d = X.shape
    scale = _scale(X)
    centred = (X - X.mean(axis=0)) / scale
    return np.asarray(np.linalg.solve(centred.T @ centred + 1e-3 * n * np.eye(d), centred.T @ labels) / scale)[:, None]


def _scale(X: FloatArray) -> FloatArray:
    """Standard deviation of every feature, or 1 where it is constant to within rounding."""
    scale = X.std(axis=0)
    rounding = 10 * np.finfo(np.float64).eps * np.abs(X).max(axis=0)
    return np.where(scale > rounding, scale, 1.0)
