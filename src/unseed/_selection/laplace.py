"""The evidence of a network under any loss, by Laplace's approximation, and its derivative with respect to the kernel.

With M = K/λN the fit minimises J = Σ w ℓ(s̄ + g, y) + gᵀM⁻¹g, and the logarithm of the evidence is

    E = −J/φ + Σ w c(y, φ) − ½ log|I + S^½MS^½|,   S = wV/2,

c being what the law's density has beside exp(−ℓ/φ). Where the dispersion φ is not known it is the one that makes E largest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from unseed._selection.objective import Score
from unseed._solvers.curved import Bent, BentFit, ScalarCurvature, solve_bent
from unseed.errors import SingularKernelError
from unseed.losses import Loss

_STEPS, _TOLERANCE = 30, 1e-8  # Newton's steps double the digits: the last one has twice as many
_GRID, _ZOOMS, _WIDEST = 9, 10, 8.0


@dataclass(frozen=True)
class LaplaceEvidence:
    """Evidence per observation, the mean over columns; as the square's `evidence` it takes a matrix and labels.

    The matrix is M, the labels are `packed`: every column has its own fit, with the same kernel.
    """

    loss: Loss

    def __call__(self, matrix: Tensor, packed: Tensor) -> Score | None:
        """Value, and its derivative with respect to M; None where Newton's steps lead nowhere."""
        labels, starts, weights = unpacked(packed)
        found = [self._of(matrix, y[:, None], s[:, None], weights) for y, s in zip(labels.T, starts.T, strict=True)]
        if any(score is None for score in found):
            return None
        scores = [score for score in found if score is not None]
        slope = torch.stack([score.slope for score in scores]).mean(0)
        return Score(sum(score.value for score in scores) / len(scores), slope)

    def _of(self, matrix: Tensor, labels: Tensor, starts: Tensor, weights: Tensor) -> Score | None:
        problem = Bent(matrix, labels, starts, weights, 1.0, self.loss)
        try:
            fit = solve_bent(problem, tolerance=_TOLERANCE, steps=_STEPS)
            ridge = problem.curvature(fit.values)
        except SingularKernelError:
            return None
        if not isinstance(ridge, ScalarCurvature) or not math.isfinite(fit.last_move):
            return None
        total, cost = float(weights.sum()), problem.cost(fit.dual, fit.values)
        dispersion = likeliest_dispersion(self.loss, cost, labels, weights)
        value = log_likelihood(self.loss, cost, labels, weights, dispersion) - ridge.log_determinant / 2
        return Score(value / total, _slope(problem, fit, ridge, dispersion) / total)


def _slope(problem: Bent, fit: BentFit, ridge: ScalarCurvature, dispersion: float) -> Tensor:
    """dE/dM = ααᵀ/φ − ½ A⁻¹ + ½ (qαᵀ + αqᵀ), the last for the fit that moves: q = (I + SM)⁻¹ d(−½ log|B|)/df."""
    f = problem.outputs(fit.values).detach().requires_grad_()
    with torch.enable_grad():
        curvature = problem.loss.curvature(f, problem.labels)
        third = torch.autograd.grad(curvature.sum(), f)[0] if curvature.requires_grad else torch.zeros_like(f)
    inverse, kernel, dual = ridge.inverse, problem.kernel, fit.dual
    left = kernel @ inverse
    unknown = kernel.diagonal() - (left * kernel).sum(1)  # diagonal of M − M A⁻¹ M
    pull = -unknown[:, None] * problem.weights[:, None] * third / 4
    moved = pull - inverse @ (kernel @ pull)
    outer = moved @ dual.T
    return dual @ dual.T / dispersion - inverse / 2 + (outer + outer.T) / 2


def log_likelihood(loss: Loss, cost: float, labels: Tensor, weights: Tensor, dispersion: float) -> float:
    """−J/φ + Σ w c(y, φ)."""
    normaliser = loss.log_normaliser(labels, torch.tensor(dispersion).to(labels))
    return float(-cost / dispersion + (weights[:, None] * normaliser).sum())


def likeliest_dispersion(loss: Loss, cost: float, labels: Tensor, weights: Tensor) -> float:
    """φ: the one that is known, or the one that makes −J/φ + Σ w c(y, φ) largest, by a grid that is refined."""
    if loss.dispersion is not None:
        return float(loss.dispersion)
    middle, reach = math.log(max(cost / float(weights.sum()), 1e-300)), _WIDEST
    for _ in range(_ZOOMS):
        tried = [middle + reach * (2 * i / (_GRID - 1) - 1) for i in range(_GRID)]
        values = [log_likelihood(loss, cost, labels, weights, math.exp(log)) for log in tried]
        middle, reach = tried[max(range(_GRID), key=values.__getitem__)], 2 * reach / (_GRID - 1)
    return math.exp(middle)


def pack(labels: Tensor, starts: Tensor, weights: Tensor) -> Tensor:
    """Labels (n, k), starts (n, k) and weights (n,) side by side. Shape (n, 2 k + 1)."""
    return torch.cat([labels, starts, weights[:, None]], dim=1)


def unpacked(packed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """From `pack`."""
    k = packed.shape[1] // 2
    return packed[:, :k], packed[:, k : 2 * k], packed[:, -1]
