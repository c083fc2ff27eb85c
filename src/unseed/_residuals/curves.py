"""Sums of curves, one along each feature: a model of another kind than a network, fitted by ridge regression."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from unseed._results import FloatArray

TERMS, MAX_FEATURES = 8, 64
"""Cosines along each feature; above so many features, their leading principal components."""

_SHRINKAGE = np.logspace(-3, 2, 11)  # times the mean squared singular value


@dataclass(frozen=True)
class Curves:
    """Cosines of the ranks of every feature: they bend where the rows are, and no outlier can pull them.

    Attributes
    ----------
    directions : array of shape (d, f)
        From features to what the curves run along.
    ordered : array of shape (n, f)
        The rows' values, each column sorted: their own scale of ranks.
    offsets : array of shape (f · TERMS,)
    """

    directions: FloatArray
    ordered: FloatArray
    offsets: FloatArray

    @classmethod
    def along(cls, X: FloatArray, directions: FloatArray | None = None) -> Curves:
        """Curves along the features of X (n, d), or along directions (d, f) in their space."""
        if directions is None:
            directions = _leading(X)
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
class RidgeFit:
    """One shrinkage of a ridge regression."""

    coefficients: FloatArray  # (p,)
    left_out: FloatArray  # (n,) prediction at each row by the fit to all others


def ridge_fits(design: FloatArray, targets: FloatArray) -> Iterator[RidgeFit]:
    """Ridge regression of targets (n,) on centred columns (n, p), from weak to strong shrinkage."""
    left, singular, right = np.linalg.svd(design, full_matrices=False)
    kept = singular > 1e-8 * np.sqrt(len(design))  # the terms are of size one
    left, singular, right = left[:, kept], singular[kept], right[kept]
    if not kept.any():
        return
    power, projected = singular**2, left.T @ targets
    for ridge in _SHRINKAGE * power.mean():
        shrunk = power / (power + ridge)
        leverage = np.minimum(left**2 @ shrunk, 1 - 1e-9)
        remaining = (targets - left @ (shrunk * projected)) / (1 - leverage)
        yield RidgeFit(right.T @ (shrunk / singular * projected), targets - remaining)


def best_fit(
    design: FloatArray, targets: FloatArray, gains_of: Callable[[FloatArray], FloatArray], least: float | None
) -> tuple[RidgeFit, float] | None:
    """The ridge fit with the largest mean gain, and that gain; None where no fit gains enough.

    Parameters
    ----------
    design, targets : arrays of shape (n, p) and (n,)
    gains_of : function
        From predictions at rows left out to what each row gains by them.
    least : float or None
        Standard errors by which the mean gain must exceed zero; None takes the largest, whatever it is.
    """
    best: tuple[RidgeFit, float] | None = None
    for fit in ridge_fits(design, targets):
        gains = gains_of(fit.left_out)
        gain = float(gains.mean())
        is_enough = least is None or gain > least * gains.std() / np.sqrt(len(gains))
        if is_enough and (best is None or gain > best[1]):
            best = fit, gain
    return best


def _leading(X: FloatArray) -> FloatArray:
    d = X.shape[1]
    if d <= MAX_FEATURES:
        return np.eye(d)
    return np.asarray(np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:MAX_FEATURES].T)
