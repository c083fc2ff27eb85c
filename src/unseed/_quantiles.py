"""What standard errors are multiplied by: for one point, and for the largest of the errors at many."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unseed._checks import check_level

_DRAWS_AT_A_TIME, _CHUNKS_OF_DRAWS, _ENOUGH_DRAWS = 1000, 20, 50


def two_sided_quantile(level: float, degrees_of_freedom: float) -> float:
    """Quantile q with P(|T| <= q) = level for Student's t, or the normal law at infinite degrees of freedom.

    Computed from the upper tail, so that a level close to 1 keeps all its digits.

    Examples
    --------
    >>> round(two_sided_quantile(0.95, 3), 3), round(two_sided_quantile(0.95, np.inf), 3)
    (3.182, 1.96)
    """
    from scipy.special import ndtri, stdtrit

    upper_tail = (1.0 - check_level(level)) / 2.0
    return float(-ndtri(upper_tail) if np.isinf(degrees_of_freedom) else -stdtrit(degrees_of_freedom, upper_tail))


def can_be_simulated(level: float) -> bool:
    """Whether enough draws lie beyond the quantile of that level: those of 0.95 do, those of 0.9999 do not."""
    return (1 - level) * _DRAWS_AT_A_TIME * _CHUNKS_OF_DRAWS >= _ENOUGH_DRAWS


def quantile_of_largest(
    covariance: npt.NDArray[np.float64], errors: npt.NDArray[np.float64], level: float, degrees_of_freedom: float = np.inf
) -> float:
    """Quantile of max |T_i| for errors over their standard deviations, normal or Student's: the same draws every time.

    The covariance (n_points, n_points) is that of the part of the errors that goes together; the rest of each is independent.
    """
    scale = np.maximum(errors, np.finfo(np.float64).tiny)
    correlation = covariance / scale[:, None] / scale[None, :]
    np.fill_diagonal(correlation, 1.0)
    eigenvalues, vectors = np.linalg.eigh(correlation)
    kept = eigenvalues > 1e-12 * eigenvalues[-1]
    root = vectors[:, kept] * np.sqrt(eigenvalues[kept])
    generator = np.random.default_rng(0)
    shape = (_DRAWS_AT_A_TIME, root.shape[1])
    largest = [np.abs(generator.standard_normal(shape) @ root.T).max(axis=1) for _ in range(_CHUNKS_OF_DRAWS)]
    together = np.concatenate(largest)
    if np.isfinite(degrees_of_freedom):
        together /= np.sqrt(generator.chisquare(degrees_of_freedom, len(together)) / degrees_of_freedom)
    return float(np.quantile(together, level))
