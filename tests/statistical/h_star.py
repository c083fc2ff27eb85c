"""The experiment behind the theorems: coverage of h*, the regularised fit to infinitely many data at the same λ."""

from functools import cache

import numpy as np

from unseed import MLP, InfinitesimalJackknife, PNCRegressor

N_FEATURES, N_POINTS, REGULARIZATION, NOISE = 3, 50, 0.1, 0.3
NETWORK = MLP(bias_scale=1.0)
POINTS = np.random.default_rng(1).uniform(-1, 1, size=(N_POINTS, N_FEATURES))


def regression_function(X):
    return np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]


def estimator(interval, seed=0):
    return PNCRegressor(interval=interval, network=NETWORK, regularization=REGULARIZATION, standardize=False, random_state=seed)


@cache
def h_star(n_rows=4096, n_samples=8):
    """Mean of fits to large noise-free samples: the variance of n_rows · n_samples rows, the bias of n_rows."""
    fits = []
    for sample in range(n_samples):
        X = np.random.default_rng(10_000 + sample).uniform(-1, 1, size=(n_rows, N_FEATURES))
        fits.append(estimator(InfinitesimalJackknife()).fit(X, regression_function(X)).predict(POINTS))
    return np.mean(fits, axis=0)


def coverage_and_width(interval, n_rows, n_repetitions, levels=(0.95,)):
    """Share of (repetition, point) pairs whose interval holds h*, and the mean width, for each level."""
    target, hits, widths = h_star()[:, None], [], []
    for repetition in range(n_repetitions):
        rng = np.random.default_rng(repetition)
        X = rng.uniform(-1, 1, size=(n_rows, N_FEATURES))
        y = regression_function(X) + NOISE * rng.standard_normal(n_rows)
        _, intervals = estimator(interval, seed=repetition).fit(X, y).predict_interval(POINTS, list(levels))
        low, high = intervals[:, 0], intervals[:, 1]  # (n_points, n_levels)
        hits.append(np.mean((low <= target) & (target <= high), axis=0))
        widths.append(np.mean(high - low, axis=0))
    return np.mean(hits, axis=0), np.mean(widths, axis=0)


def binomial_band(level, n_repetitions, z=1.96):
    """Normal approximation of a binomial share's central 95 %.

    Points of one repetition share its data, so repetitions, not points, are counted as independent: an upper bound of
    the sampling error of the average over points.
    """
    half = z * np.sqrt(level * (1 - level) / n_repetitions)
    return level - half, level + half
