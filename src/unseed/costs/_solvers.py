"""How fast the ways are that are taken on request: stopped training, mixed precision, iterations on all rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from unseed._solvers import GradientDescent, GradientFlow, StoppedRidge, solve_ridge
from unseed.costs._timing import Growth, best_seconds, busy_seconds
from unseed.kernels import PopulationKernel, Profile
from unseed.networks import MLP

_STEPS = 20
_RIDGE = 1e-3
_EIGEN_SIZES = {"cpu": (512, 1536), "cuda": (1024, 4096)}
_MIXED_SIZES = {"cpu": (768, 2048, 2304), "cuda": (8192, 12288)}  # those of the float64 factor beside it


@dataclass(frozen=True)
class SolverRates:
    """Seconds of solvers other than a Cholesky factor in float64.

    Attributes
    ----------
    spectral : Growth
        Of training that was stopped, by eigenvectors.
    mixed : Growth
        Of a solve with a float32 factor and float64 iterations.
    product : float
        Of an entry of a matrix that is there in a product with a vector.
    symmetric : float
        Of a pair of points in a product of the kernel with itself, no matrix being held.
    """

    spectral: Growth
    mixed: Growth
    product: float
    symmetric: float

    @classmethod
    def measure(cls, network: MLP, X: Tensor) -> SolverRates:
        """By the library's own functions, on some of these rows."""
        kernel, where = PopulationKernel(network), X.device
        points = kernel.profile(X)
        labels = torch.sin(X[:, :1])
        kind = where.type
        spectral = {n: _stopped(kernel, points[slice(0, n)], labels[:n], GradientFlow(time=1.0)) for n in _EIGEN_SIZES[kind]}
        mixed = {n: _mixed(kernel, points[slice(0, n)], labels[:n]) for n in _MIXED_SIZES[kind]}
        n = max(_EIGEN_SIZES[kind])
        descent = GradientDescent(steps=_STEPS, rate=1e-6)  # so slow that nothing diverges, and few enough to be taken
        stepping = _stopped(kernel, points[slice(0, n)], labels[:n], descent) / ((_STEPS + 1) * n**2)
        product = best_seconds(partial(kernel.ntk_gram_product, points, labels), where, 3)
        return cls(Growth.fitted(spectral), Growth.fitted(mixed), stepping, product / (len(X) ** 2 / 2))


def _stopped(kernel: PopulationKernel, points: Profile, labels: Tensor, training: GradientFlow | GradientDescent) -> float:
    counts = labels.new_ones(len(labels))

    def solve(matrix: Tensor) -> Tensor:
        return StoppedRidge(matrix, counts, _RIDGE, training, float(len(labels))).solve(labels)

    return busy_seconds(solve, kernel.ntk_gram(points), repetitions=2)


def _mixed(kernel: PopulationKernel, points: Profile, labels: Tensor) -> float:
    counts = labels.new_ones(len(labels))

    def solve(matrix: Tensor) -> Tensor:
        return solve_ridge(matrix, counts, _RIDGE, labels, is_mixed=True)

    return busy_seconds(solve, kernel.ntk_gram(points))
