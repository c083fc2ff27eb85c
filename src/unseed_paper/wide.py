"""Closed forms of infinitely wide networks that only this paper's experiments need.

The library has none of them: bootstrap replicates whose base and auxiliary network see different rows, as in the
authors' code, and Monte Carlo dropout of an infinitely wide network.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from unseed import MLP, GradientDescent
from unseed.kernels import nngp, ntk

Array = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
_JITTER = 1e-12


@dataclass(frozen=True)
class WideNetwork:
    """Kernels of a network at training rows and new points, and gradient descent on them.

    A network of infinite width that starts at a function s moves along θ − θᵇ = J(X)ᵀα, and after gradient descent on
    labels y it predicts s(x) + K(x, X) α.
    """

    gram: Array  # (n, n)
    cross: Array  # (n_points, n)
    prior: Array  # (n + n_points, n + n_points) covariance of the untrained network, training rows first
    budget: GradientDescent
    regularization: float
    device: str = "cpu"

    @classmethod
    def at(
        cls, X: Array, points: Array, network: MLP, budget: GradientDescent, regularization: float, device: str = "cpu"
    ) -> WideNetwork:
        """Kernels of ``network`` at rows and points; training is on the device."""
        gram, cross = ntk(X, network=network), ntk(points, X, network=network)
        where = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
        return cls(gram, cross, nngp(np.vstack([X, points]), network=network), budget, regularization, where)

    @cached_property
    def root(self) -> Array:
        """Cholesky factor of the prior covariance; its first n rows and columns are those of the training rows alone."""
        return _root(self.prior)

    @property
    def n(self) -> int:
        """Number of training rows."""
        return len(self.gram)

    def train(self, labels: Array, counts: Array, noise: Any = None) -> Array:
        """Dual weights of every column of labels, each with its own counts of the rows. Shape (n, c).

        ``noise(step)`` is what dropout adds to the training outputs at each step.
        """
        rate = 2 * float(self.budget.rate)
        arrays = (self.gram, labels, rate * counts / counts.sum(axis=0))
        gram, target, weights = (torch.from_numpy(array).to(self.device) for array in arrays)
        dual = torch.zeros_like(target)
        for step in range(self.budget.steps):
            fitted = torch.stack([torch.mv(gram, column) for column in dual.unbind(1)], dim=1)
            if noise is not None:
                fitted = fitted + noise(step).to(self.device)
            dual = (1 - rate * self.regularization) * dual + weights * (target - fitted)
        return np.asarray(dual.cpu().numpy())

    def starts(self, n_networks: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Untrained networks at rows (n, n_networks) and points (n_points, n_networks)."""
        drawn = self.root @ rng.standard_normal((len(self.prior), n_networks))
        return drawn[: self.n], drawn[self.n :]


def separate_bootstrap(
    wide: WideNetwork, y: Array, base_counts: Counts, auxiliary_counts: Counts, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Full-data PNC prediction (n_points,) and bootstrap replicates (R, n_points) as the authors' code makes them.

    Base and auxiliary network of replicate r start at the same s_r, but are trained on the resamples base_counts[r] and
    auxiliary_counts[r]: what s_r adds to the one is not what it takes from the other, and the intervals widen by that.
    """
    n_replications = len(base_counts)
    at_rows, _ = wide.starts(n_replications, rng)  # at the points it cancels: both networks start there
    base = wide.train(y[:, None] - at_rows, base_counts.T.astype(np.float64))
    auxiliary = wide.train(-at_rows, auxiliary_counts.T.astype(np.float64))
    full = wide.train(y[:, None], np.ones((wide.n, 1)))
    return (wide.cross @ full)[:, 0], (wide.cross @ (base - auxiliary)).T


def dropout_passes(wide: WideNetwork, y: Array, rate: float, n_passes: int, rng: np.random.Generator) -> Array:
    """Predictions of an infinitely wide network trained and asked with dropout. Shape (n_passes, n_points).

    Dropping a share p of m → ∞ neurons adds to the outputs a Gaussian process of covariance p/(1 − p) Σ, Σ the prior
    covariance (which must have no part from an output bias), drawn anew at every step and pass; masks of different
    steps are independent, so that the tangent kernel between them is K itself.
    """
    spread = np.sqrt(rate / (1 - rate))
    at_rows, at_points = wide.starts(1, rng)
    on_rows, on_points = spread * wide.root[: wide.n, : wide.n], spread * _root(wide.prior[wide.n :, wide.n :])
    noise = torch.from_numpy(on_rows @ rng.standard_normal((wide.n, wide.budget.steps)))
    dual = wide.train(y[:, None] - at_rows, np.ones((wide.n, 1)), lambda step: noise[:, step : step + 1])
    mean = (at_points + wide.cross @ dual)[:, 0]
    return np.asarray(mean + (on_points @ rng.standard_normal((len(mean), n_passes))).T)


def rate_for_width(width: float, level_quantile: float, prior_variance: float) -> float:
    """Dropout rate p whose interval 2 z √(p/(1 − p) Σ(x, x)) is so wide.

    Examples
    --------
    >>> round(rate_for_width(0.392, 1.96, 0.01), 3)
    0.5
    """
    variance = (width / (2 * level_quantile)) ** 2 / prior_variance
    return variance / (1 + variance)


def _root(covariance: Array) -> Array:
    scale = float(np.diagonal(covariance).mean())
    return np.asarray(np.linalg.cholesky(covariance + _JITTER * scale * np.eye(len(covariance))), dtype=np.float64)
