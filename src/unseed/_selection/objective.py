"""What a good kernel is, said without any truth, as a function of a network's scales; and its maximum by gradients.

The evidence and the leave-one-out error look at A = K/k̄ + ρI (k̄ the mean diagonal of the centred K) and the labels z. Their
derivative with respect to the matrix A is known in closed form, so a gradient costs one inverse more than a value, and nothing
is differentiated through a factorisation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from unseed._results import FloatArray
from unseed._threads import on_all_cores
from unseed.errors import InvalidInputError
from unseed.kernels._recursion import ntk_of_scales
from unseed.networks import MLP

# Bounds, centre and spread of the logarithms: a weak normal prior keeps few rows from running to an edge, and weighs
# nothing against many.
_SCALE, _BIAS, _WEIGHT, _RIDGE = (-9.0, 4.0), (-4.0, 3.0), (-3.0, 2.0), (math.log(1e-9), math.log(1e2))
_SPREADS = 3.0, 1.5, 1.0, 5.0
_WORST_CONDITION = math.log(1e10)  # diagonal of the kernel over what is added to it
_FAILED = 1e10  # of a point where the kernel matrix cannot be factorised
_GRID_SCALES, _GRID_RIDGES = (8.0, 3.0, 1.0, 0.3, 0.1), (1e-4, 3e-2, 0.5)
_WHOLE_ROWS, _ROWS_OF_A_BLOCK = 1024, 32  # up to which a kernel is made and differentiated at once; else so many rows are
_SHORTER = math.log(4.0)  # a restart begins at length scales this much shorter, with a tenth of the noise


class Score(NamedTuple):
    """Value per row (larger is better) and its derivative with respect to A."""

    value: float
    slope: Tensor  # (n, n), symmetric


Criterion = Callable[[Tensor, Tensor], Score | None]


def evidence(matrix: Tensor, labels: Tensor) -> Score | None:
    """Marginal likelihood with the amplitude profiled out: −½[log(zᵀA⁻¹z/n) + log|A|/n], the mean over outputs.

    For a matrix (n, n) and labels (n, n_outputs); None where the matrix cannot be factorised.
    """
    factor, failed = torch.linalg.cholesky_ex(matrix)
    if int(failed):
        return None
    n, n_outputs = labels.shape
    inverse = torch.cholesky_inverse(factor)
    weights = inverse @ labels  # α
    fit = _positive((labels * weights).sum(0)) / n  # (n_outputs,)
    value = -0.5 * fit.log().mean() - factor.diagonal().log().mean()
    # d(zᵀA⁻¹z) = −αᵀ dA α and d log|A| = tr A⁻¹ dA
    return Score(float(value), ((weights / fit) @ weights.T / n_outputs - inverse) / (2 * n))


def leave_one_out(matrix: Tensor, labels: Tensor) -> Score | None:
    """Closed-form leave-one-out error α_i/(A⁻¹)_ii as a score: −½ log of its mean square, the mean over outputs."""
    factor, failed = torch.linalg.cholesky_ex(matrix)
    if int(failed):
        return None
    n, n_outputs = labels.shape
    inverse = torch.cholesky_inverse(factor)
    weights, curvature = inverse @ labels, inverse.diagonal()[:, None]
    errors = weights / curvature
    mean_square = _positive(errors.square().mean(0))
    # d mean e² = (2/n) tr dA [A⁻¹ diag(e²/A⁻¹_ii) A⁻¹ − α (A⁻¹u)ᵀ], u = e/A⁻¹_ii; the score has −1/(2 mean e²) of it
    spread = inverse @ ((errors.square() / curvature / mean_square).sum(1)[:, None] * inverse)
    outer = inverse @ (errors / curvature / mean_square) @ weights.T
    return Score(float(-0.5 * mean_square.log().mean()), ((outer + outer.T) / 2 - spread) / (n * n_outputs))


def _positive(values: Tensor) -> Tensor:
    return values.clamp_min(torch.finfo(values.dtype).tiny)


CRITERIA: dict[str, Criterion] = {"evidence": evidence, "leave_one_out": leave_one_out}


def resolve_criterion(name: object) -> Criterion:
    """Criterion of that name."""
    if not isinstance(name, str) or name not in CRITERIA:
        raise InvalidInputError(f"criterion={name!r} is not known; use {' or '.join(map(repr, CRITERIA))}")
    return CRITERIA[name]


class Architecture(NamedTuple):
    """What a gradient cannot choose."""

    activation: str
    depth: int


class Terms(NamedTuple):
    """On what terms a point is judged, beside the criterion.

    Attributes
    ----------
    is_prior : bool
        Whether the criterion takes K over the ridge, as the prior of a fit; otherwise it takes K plus the ridge.
    ridge : tuple of float
        Centre and spread of log ρ.
    charge : float
        Times log n, for every scale beyond the first.
    """

    is_prior: bool = False
    ridge: tuple[float, float] = (math.log(1e-2), _SPREADS[-1])
    charge: float = 0.5


_USUAL = Terms()


@dataclass(frozen=True, eq=False)
class Optimum:
    """Where an ascent ended: (log scales, log bias_scale, log weight_std, log ρ), and the score there."""

    objective: ScaleObjective
    point: FloatArray
    score: float

    @property
    def architecture(self) -> Architecture:
        """That of the objective."""
        return self.objective.architecture

    @property
    def penalised(self) -> float:
        """Score less ½ log n, or what the terms are, for every scale beyond the first, per row."""
        n = len(self.objective.X)
        return self.score - self.objective.terms.charge * math.log(n) * (len(self.point) - 4) / n

    @property
    def has_relevances(self) -> bool:
        """Whether every feature has a scale of its own; one feature alone needs none."""
        return len(self.point) - 3 == self.objective.X.shape[1]

    def with_relevances(self) -> Optimum:
        """The same function of the data, from where every feature may go its own way."""
        return replace(self, point=np.concatenate([np.full(self.objective.X.shape[1], self.point[0]), self.point[1:]]))

    @property
    def restart(self) -> FloatArray:
        """Where to look for structure that this ascent took for noise."""
        steps = np.array([_SHORTER] * (len(self.point) - 3) + [0.0, 0.0, -math.log(10.0)])
        return np.asarray(self.point + steps)

    def network(self) -> MLP:
        """The point as an ordinary network."""
        return MLP(
            depth=self.architecture.depth,
            activation=self.architecture.activation,
            weight_std=float(np.exp(self.point[-2])),
            bias_scale=float(np.exp(self.point[-3])),
            input_scale=tuple(np.broadcast_to(np.exp(self.point[:-3]), self.objective.X.shape[1]).tolist()),
        )

    def ridge(self) -> float:
        """ρ times the kernel's variation, what is added to the diagonal of the kernel."""
        with torch.no_grad():
            variation = float(_variation(self.objective.kernel(torch.tensor(self.point, device=self.objective.X.device))))
        return float(np.exp(self.point[-1])) * variation


@dataclass(frozen=True)
class ScaleObjective:
    """Score of one architecture over its scales, one common to all features or one for each."""

    X: Tensor  # (n, d)
    labels: Tensor  # (n, n_outputs)
    architecture: Architecture
    criterion: Criterion
    terms: Terms = _USUAL

    def kernel(self, point: Tensor, rows: slice = slice(None)) -> Tensor:
        """NTK of some rows and all at a point. Shape (n, n)."""
        scales, bias, weight = torch.exp(point[:-3]), torch.exp(point[-3]), torch.exp(point[-2])
        return ntk_of_scales(self.X, scales, weight, bias, self.architecture.activation, self.architecture.depth, rows)

    def score(self, point: FloatArray) -> float:
        """Criterion with its prior, per row; a hopeless value where the matrix cannot be factorised."""
        return self._evaluated(point, with_slope=False)[0]

    def score_and_slope(self, point: FloatArray) -> tuple[float, FloatArray]:
        """The score and its gradient, zero where the score is hopeless."""
        return self._evaluated(point, with_slope=True)

    def _evaluated(self, point: FloatArray, *, with_slope: bool) -> tuple[float, FloatArray]:
        leaf, hopeless = torch.tensor(point, device=self.X.device, requires_grad=with_slope), (-_FAILED, np.zeros_like(point))
        in_blocks = self.X.device.type == "cpu" and len(self.X) > _WHOLE_ROWS
        with torch.set_grad_enabled(with_slope):
            kernel = self._kernel_in_blocks(leaf.detach()).requires_grad_(with_slope) if in_blocks else self.kernel(leaf)
            matrix, penalty = self._matrix(kernel, leaf)
        found = self.criterion(matrix.detach(), self.labels)
        if found is None or not math.isfinite(found.value):
            return hopeless
        prior, slope = self._prior(point)
        if with_slope:
            asked, outer = [leaf, kernel] if in_blocks else [leaf], [found.slope, -torch.ones_like(penalty)]
            through, *rest = torch.autograd.grad([matrix, penalty], asked, outer)
            slope = through.cpu().numpy() + slope + (self._slope_in_blocks(leaf.detach(), *rest) if in_blocks else 0.0)
        return (found.value + prior - float(penalty.detach()), slope) if np.isfinite(slope).all() else hopeless

    def start(self, scale: float, ridge: float, n_scales: int = 1) -> FloatArray:
        """The point with this scale, times 1/√d, for each of the features."""
        return np.array([math.log(scale / math.sqrt(self.X.shape[1]))] * n_scales + [0.0, 0.0, math.log(ridge)])

    def coarse(self) -> list[tuple[float, FloatArray]]:
        """Best score and point at every scale of a grid, best first."""
        tried = []
        for scale in _GRID_SCALES:
            starts = [self.start(scale, ridge) for ridge in _GRID_RIDGES]
            tried.append(max(((self.score(start), start) for start in starts), key=lambda pair: pair[0]))
        return sorted(tried, key=lambda pair: -pair[0])

    def maximise(self, start: FloatArray, evaluations: int) -> Optimum:
        """Gradient ascent from a point."""

        def negative(point: FloatArray) -> tuple[float, FloatArray]:
            score, slope = self.score_and_slope(point)
            return -score, -slope

        bounds = [_SCALE] * (len(start) - 3) + [_BIAS, _WEIGHT, _RIDGE]
        found = minimize(
            negative,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": evaluations, "maxfun": evaluations, "ftol": 1e-6, "gtol": 1e-5},
        )
        return Optimum(self, np.asarray(found.x), -float(found.fun))

    def _kernel_in_blocks(self, point: Tensor) -> Tensor:
        """The kernel some rows at a time, which stay in the cache of a core. Shape (n, n)."""
        kernel = torch.empty(len(self.X), len(self.X), dtype=self.X.dtype)

        def fill(rows: slice) -> None:
            with torch.no_grad():
                kernel[rows] = self.kernel(point, rows)

        on_all_cores(fill, self._blocks, self.X.device)
        return kernel

    def _slope_in_blocks(self, point: Tensor, slope: Tensor) -> FloatArray:
        """Derivative along the point of what has this slope in the kernel."""

        def through(rows: slice) -> Tensor:
            leaf = point.clone().requires_grad_()
            with torch.enable_grad():
                (found,) = torch.autograd.grad(self.kernel(leaf, rows), leaf, slope[rows])
            return found

        return np.asarray(torch.stack(on_all_cores(through, self._blocks, self.X.device)).sum(0).numpy())

    @property
    def _blocks(self) -> list[slice]:
        return [slice(start, start + _ROWS_OF_A_BLOCK) for start in range(0, len(self.X), _ROWS_OF_A_BLOCK)]

    def _matrix(self, kernel: Tensor, point: Tensor) -> tuple[Tensor, Tensor]:
        """A, and what is taken off the score where a solve with it would lose digits."""
        variation = _variation(kernel)
        condition = torch.log(kernel.diagonal().mean() / variation) - point[-1]
        if self.terms.is_prior:
            return kernel / (variation * torch.exp(point[-1])), torch.relu(condition - _WORST_CONDITION).square()
        noise = torch.exp(point[-1]) * torch.eye(len(kernel), dtype=kernel.dtype, device=kernel.device)
        return kernel / variation + noise, torch.relu(condition - _WORST_CONDITION).square()

    def _prior(self, point: FloatArray) -> tuple[float, FloatArray]:
        n_scales = len(point) - 3
        centre, own = self.terms.ridge
        spread = np.array([_SPREADS[0]] * n_scales + [*_SPREADS[1:-1], own])
        offset = (point - np.append(self.start(1.0, 1.0, n_scales)[:-1], centre)) / spread
        return -0.5 * float(offset @ offset) / len(self.X), -offset / spread / len(self.X)


def _variation(kernel: Tensor) -> Tensor:
    """Mean diagonal of the kernel with its constant taken out: how much functions vary over the rows."""
    smallest = torch.finfo(kernel.dtype).eps * kernel.diagonal().mean()
    return torch.maximum(kernel.diagonal().mean() - kernel.mean(), smallest.detach())
