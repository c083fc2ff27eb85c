"""What an interval method asks of its replicates, without any engine: explicit ridge regressions on repeated rows."""

import numpy as np

from oracles.regression import influence_by_complex_step, ridge_on_repeated_rows
from unseed._random import Streams
from unseed.kernels import nngp, ntk


class ReplicatesByHand:
    """Infinitely wide networks on every replicate of a method's plan, in the user's units, for one output."""

    def __init__(self, method, network, regularization, seed, X, y):
        self._network, self._regularization = network, regularization
        self._x_mean, self._x_scale, self._y_mean, self._y_scale = X.mean(0), X.std(0), y.mean(), y.std()
        self._points, self._labels = self._units(X), (y - self._y_mean) / self._y_scale
        self._kernel = ntk(self._points, network=network)
        self._plan = method.plan(len(X), Streams(seed))

    @property
    def sizes(self):
        return self._plan.counts.sum(axis=1)

    def predict(self, X):
        K_new = ntk(self._units(X), self._points, network=self._network)
        fits = [
            ridge_on_repeated_rows(self._kernel, K_new, self._labels, counts, self._regularization)
            for counts in self._plan.counts
        ]
        return np.stack(fits)[:, :, None] * self._y_scale + self._y_mean

    def influence(self, X):
        K_new = ntk(self._units(X), self._points, network=self._network)
        return influence_by_complex_step(self._kernel, K_new, self._labels, self._regularization)[:, :, None] * self._y_scale

    def noise(self):
        """‖(I − H)y‖² over tr (I − H)², both summed over the replicates that stand for the network on these data.

        Their labels have lost their mean, and a degree of freedom with it.
        """
        squares = traces = 0.0
        for rows in self._references():
            unexplained = len(rows) * self._regularization * np.linalg.inv(self._system(rows))
            squares += np.sum((unexplained @ self._labels[rows]) ** 2)
            traces += np.trace(unexplained @ unexplained)
        n = len(self._labels)
        return squares / traces * self._y_scale**2 * n / (n - 1)

    def procedural(self, X):
        """Variance over seeds of s(x) − cᵀs(X), s the untrained network; the mean over the same replicates."""
        found = []
        for rows in self._references():
            points, at = self._points[rows], self._units(X)
            joint = nngp(np.concatenate([at, points]), network=self._network)
            smoother = np.linalg.solve(self._system(rows), ntk(points, at, network=self._network))
            contrast = np.concatenate([np.eye(len(at)), -smoother])
            found.append(np.diag(contrast.T @ joint @ contrast))
        return np.mean(found, axis=0) * self._y_scale**2

    def _units(self, X):
        return (X - self._x_mean) / self._x_scale

    def _references(self):
        return [np.flatnonzero(self._plan.counts[replicate]) for replicate in self._plan.reference]

    def _system(self, rows):
        return self._kernel[np.ix_(rows, rows)] + self._regularization * len(rows) * np.eye(len(rows))
