"""The ridge of features: one p-by-p factor, made of sums over rows that may come in any order and any number of parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from unseed._solvers.cholesky import packed, solve_with_factor, unpacked
from unseed._solvers.ridge import WeightedRidge, factorise, pivot_ratio
from unseed._state import Record, State

_NUMBERS_AT_A_TIME = 1 << 22  # of features times weights, of which no whole copy is made


@dataclass(frozen=True)
class Sums:
    """All that a ridge in features φ needs to know of rows with weights w and labels z, one column for each output.

    Sums of parts of the rows are added, in any order; a part has features (m, p), labels (m, c) and weights (m,) of its own.

    Attributes
    ----------
    rows : int
        How many, whatever their weights.
    weight : float
        Σ w.
    inner : Tensor of shape (p, p)
        Σ w φφᵀ.
    cross : Tensor of shape (p, c)
        Σ w φzᵀ.
    squares : Tensor of shape (c,)
        Σ w z², output by output.

    Examples
    --------
    >>> features, labels, weights = torch.eye(3, 2), torch.ones(3, 1), torch.tensor([1.0, 2.0, 1.0])
    >>> parts = [Sums.of(features[rows], labels[rows], weights[rows]) for rows in (slice(0, 1), slice(1, 3))]
    >>> (parts[0] + parts[1]).inner
    tensor([[1., 0.],
            [0., 2.]])
    """

    rows: int
    weight: float
    inner: Tensor
    cross: Tensor
    squares: Tensor

    @classmethod
    def of(cls, features: Tensor, labels: Tensor, weights: Tensor) -> Sums:
        """Of features (n, p), labels (n, c) and weights (n,)."""
        n, p = features.shape
        inner, cross = features.new_zeros(p, p), features.new_zeros(p, labels.shape[1])
        size, width = max(1, _NUMBERS_AT_A_TIME // p), max(1, -(-p // 4))
        blocks = [slice(first, min(first + width, p)) for first in range(0, p, width)]
        for start in range(0, n, size):
            rows = slice(start, start + size)
            weighted = (weights[rows, None] * features[rows]).T
            for block in blocks:  # of the lower triangle: five eighths of the products
                inner[block, : block.stop].addmm_(weighted[block], features[rows, : block.stop])
            cross.addmm_(weighted, labels[rows])
        inner = inner.tril() + inner.tril(-1).T
        return cls(n, float(weights.sum()), inner, cross, weights @ labels.square())

    def __add__(self, other: Sums) -> Sums:
        return Sums(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    def state(self) -> State:
        """Everything; the matrix in half."""
        return {**{field.name: getattr(self, field.name) for field in fields(self)}, "inner": packed(self.inner)}

    @classmethod
    def restore(cls, record: Record, n_features: int, n_outputs: int, device: torch.device) -> Sums:
        """From `state`."""
        inner = unpacked(record.tensor("inner", device, n_features * (n_features + 1) // 2), n_features)
        rows, weight = record.whole_number("rows"), record.fact("weight", float)
        cross, squares = record.tensor("cross", device, n_features, n_outputs), record.tensor("squares", device, n_outputs)
        return cls(rows, weight, inner + inner.tril(-1).T, cross, squares)


@dataclass(frozen=True)
class NormalEquations:
    """Cholesky factor of B = Σ w φφᵀ + λ n, for questions that need no rows."""

    factor: Tensor  # (p, p); the lower triangle, what is above it is not part of it
    penalty: float  # λ n, jitter included

    @classmethod
    def of(cls, sums: Sums, regularization: float, n_observations: float | None = None) -> NormalEquations:
        """Of rows that are known by their sums; n is Σ w if it is not given."""
        penalty = regularization * (sums.weight if n_observations is None else n_observations)
        factor, jitter = factorise(sums.inner.clone(), penalty, regularization)
        return cls(factor, penalty + jitter)

    def solve(self, columns: Tensor) -> Tensor:
        """B⁻¹ times each column: of Σ w φz, the coefficients of the features. Shape (p, c)."""
        return solve_with_factor(self.factor, columns)

    def energy(self, sums: Sums) -> Tensor:
        """zᵀA⁻¹z = (Σ w z² − bᵀB⁻¹b)/λn with b = Σ w φz, column by column. Shape (c,)."""
        return (sums.squares - (sums.cross * self.solve(sums.cross)).sum(0)) / self.penalty

    def posterior(self, features: Tensor) -> Tensor:
        """λn φ(x)ᵀB⁻¹φ(x'): what the rows leave unknown. Shape (n_points, n_points)."""
        unknown = self._whiten(features)
        return self.penalty * (unknown.T @ unknown)

    def leverage(self, features: Tensor, weights: Tensor) -> Tensor:
        """How far a row's own label moves its fit, w φᵀB⁻¹φ. Shape (n,)."""
        return weights * self._whiten(features).square().sum(0)

    def _whiten(self, features: Tensor) -> Tensor:
        white: Tensor = torch.linalg.solve_triangular(self.factor, features.T, upper=False)
        return white


@dataclass(frozen=True)
class PrimalRidge(WeightedRidge):
    """The ridge with K = ΦΦᵀ of rows whose features are at hand, fewer than the rows. Points are rows of features.

    By the matrix inversion lemma A⁻¹ = R⁻¹ − R⁻¹ΦB⁻¹ΦᵀW with R = λ n W⁻¹; no n-by-n matrix is made.
    """

    features: Tensor  # (n, p) Φ
    equations: NormalEquations
    ridge: Tensor  # (n,) the diagonal of R, jitter included

    @classmethod
    def factorise(
        cls, features: Tensor, weights: Tensor, regularization: float, n_observations: float | None = None
    ) -> PrimalRidge:
        """Arguments as for `DualRidge.factorise`, with features (n, p) for the kernel, and λ > 0."""
        unlabelled = Sums.of(features, features[:, :0], weights)
        equations = NormalEquations.of(unlabelled, regularization, n_observations)
        return cls(features, equations, equations.penalty / weights)

    @property
    def weights(self) -> Tensor:
        """W, once more. Shape (n,)."""
        return self.equations.penalty / self.ridge

    @property
    def condition(self) -> float:
        """Of A, by the pivots of its factor: of as many rows as there are features at once, given those before them."""
        penalty, weights, (n, p) = self.equations.penalty, self.weights, self.features.shape
        inner, pivots = penalty * torch.eye(p).to(self.features), []
        for start in range(0, n, p):
            rows = slice(start, start + p)
            before = NormalEquations(torch.linalg.cholesky(inner), penalty)
            given_those = before.posterior(self.features[rows]) + torch.diag(self.ridge[rows])
            pivots.append(torch.linalg.cholesky(given_those).diagonal())
            inner += (weights[rows, None] * self.features[rows]).T @ self.features[rows]
        return pivot_ratio(torch.cat(pivots))

    def solve(self, columns: Tensor) -> Tensor:
        """A⁻¹ times each column: residuals over the ridge. Shape (n, c)."""
        fitted = self.features @ self.equations.solve(self.features.T @ (self.weights[:, None] * columns))
        return (columns - fitted) / self.ridge[:, None]

    def energy(self, labels: Tensor) -> Tensor:
        """zᵀA⁻¹z. Shape (c,)."""
        return (labels * self.solve(labels)).sum(0)

    def inverse_diagonal(self, rows: Tensor) -> Tensor:
        """(A⁻¹)_ii for some of the rows. Shape (len(rows),)."""
        return (1 - self.equations.leverage(self.features[rows], self.weights[rows])) / self.ridge[rows]

    def squared_inverse_trace(self, probes: int) -> float:
        """The trace of A⁻², exactly whatever ``probes``."""
        inverse = 1 / self.ridge
        once, twice = (
            self.equations.penalty * self.equations.solve(self.features.T @ (inverse[:, None] ** power * self.features))
            for power in (2, 3)
        )
        return float(inverse.square().sum() - 2 * twice.trace() + (once * once.T).sum())

    def effect(self, points: Tensor) -> Tensor:
        """W Φ B⁻¹φ(x). Shape (n, n_points)."""
        return self.weights[:, None] * (self.features @ self.equations.solve(points.T))

    def posterior(self, points: Tensor, prior: Callable[[], Tensor]) -> Tensor:
        """λ n φ(x)ᵀB⁻¹φ(x'), a sum of squares: nothing is subtracted from the prior. Shape (n_points, n_points)."""
        return self.equations.posterior(points)
