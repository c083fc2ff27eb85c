"""How large the largest of many normal errors gets: what a simultaneous band multiplies its standard errors by."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

_DRAWS_AT_A_TIME, _CHUNKS_OF_DRAWS, _ENOUGH_DRAWS = 1000, 20, 50


def can_be_simulated(level: float) -> bool:
    """Whether enough draws lie beyond the quantile of that level.

    Examples
    --------
    >>> can_be_simulated(0.95), can_be_simulated(0.9999)
    (True, False)
    """
    return (1 - level) * _DRAWS_AT_A_TIME * _CHUNKS_OF_DRAWS >= _ENOUGH_DRAWS


def quantile_of_largest(covariance: FloatArray, errors: FloatArray, level: float) -> float:
    """Quantile of max |Z_i| for normal errors over their standard deviations: the same draws every time.

    Parameters
    ----------
    covariance : array of shape (n_points, n_points)
        Of the part of the errors that goes together; the rest of each is independent.
    errors : array of shape (n_points,)
        Standard deviations of the whole errors.
    level : float
    """
    eigenvalues, vectors = np.linalg.eigh(_correlation(covariance, errors))
    kept = eigenvalues > 1e-12 * eigenvalues[-1]
    root = vectors[:, kept] * np.sqrt(eigenvalues[kept])
    generator = np.random.default_rng(0)
    shape = (_DRAWS_AT_A_TIME, root.shape[1])
    largest = [np.abs(generator.standard_normal(shape) @ root.T).max(axis=1) for _ in range(_CHUNKS_OF_DRAWS)]
    return float(np.quantile(np.concatenate(largest), level))


def _correlation(covariance: FloatArray, errors: FloatArray) -> FloatArray:
    scale = np.maximum(errors, np.finfo(np.float64).tiny)
    correlation = covariance / scale[:, None] / scale[None, :]
    np.fill_diagonal(correlation, 1.0)
    return np.asarray(correlation)
