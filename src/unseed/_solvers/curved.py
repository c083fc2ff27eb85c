"""Losses that bend: Newton's steps, each a weighted ridge, and what is known at their end.

J(g) = Σ w ℓ(s̄ + g, y) + λN gᵀK⁻¹g with g = Kα. Near g it is a ridge with the weights S = wV/(2λN) of the curvature V: its
matrix is A = K + S⁻¹, kept as A⁻¹ = S^½ (I + S^½ K S^½)⁻¹ S^½, which holds where the curvature is nothing, too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from unseed._solvers.cholesky import lower_cholesky, solve_with_factor
from unseed._solvers.ridge import OVERFLOW, pivot_ratio
from unseed.errors import SingularKernelError
from unseed.losses import Loss

STEPS, TOLERANCE = 100, 1e-10
_HALVINGS, _SHORT = 40, 0.4  # a step that must be shorter is followed by a safe one


class Curvature(Protocol):
    """The ridge that the loss is near a point: A = K + S⁻¹ for n rows and k outputs, S block by block positive semidefinite."""

    def solve(self, columns: Tensor) -> Tensor:
        """A⁻¹ times values of the outputs at the rows. Shape (n, k)."""

    @property
    def log_determinant(self) -> float:
        """Of I + S^½KS^½."""

    @property
    def condition(self) -> float:
        """Estimate, from below, of the condition number of I + S^½KS^½."""


@dataclass(frozen=True)
class ScalarCurvature(Curvature):
    """One f for every row."""

    root: Tensor  # (n,) S^½
    factor: Tensor  # (n, n) of I + S^½KS^½; the lower triangle

    @classmethod
    def of(cls, kernel: Tensor, weights: Tensor) -> ScalarCurvature:
        """Of the kernel (n, n) and S (n,)."""
        root = weights.sqrt()
        return cls(root, _plus_identity(kernel, root))

    def solve(self, columns: Tensor) -> Tensor:
        """A⁻¹ times columns. Shape (n, c)."""
        return self.root[:, None] * solve_with_factor(self.factor, self.root[:, None] * columns)

    def whiten(self, columns: Tensor) -> Tensor:
        """R with RᵀR = cᵀA⁻¹c of columns (n, c). Shape (n, c)."""
        white: Tensor = torch.linalg.solve_triangular(self.factor, self.root[:, None] * columns, upper=False)
        return white

    @cached_property
    def inverse(self) -> Tensor:
        """A⁻¹. Shape (n, n)."""
        return self.root[:, None] * torch.cholesky_inverse(self.factor.tril()) * self.root

    @property
    def log_determinant(self) -> float:
        """Of I + S^½KS^½."""
        return 2 * float(self.factor.diagonal().log().sum())

    @property
    def condition(self) -> float:
        """Of I + S^½KS^½."""
        return pivot_ratio(self.factor.diagonal())


@dataclass(frozen=True)
class JointCurvature(Curvature):
    """As many f as classes for every row, S = τ (diag p − p pᵀ).

    A⁻¹ = E − E 1 (Σ E)⁻¹ 1ᵀE with a block E_c = (K + D_c⁻¹)⁻¹, D_c = τ p_c, for every class: nothing larger than n by n.
    """

    shares: Tensor  # (n, k) p
    steepness: Tensor  # (n,) τ
    blocks: tuple[ScalarCurvature, ...]
    total: Tensor  # (n, n) factor of Σ E

    @classmethod
    def of(cls, kernel: Tensor, shares: Tensor, steepness: Tensor) -> JointCurvature:
        """Of the kernel of one class, p and τ."""
        smallest = torch.finfo(kernel.dtype).tiny
        weights = steepness[:, None] * shares.clamp_min(smallest)
        blocks = tuple(ScalarCurvature.of(kernel, column) for column in weights.unbind(1))
        factor = lower_cholesky(torch.stack([block.inverse for block in blocks]).sum(0))
        if factor is None:
            raise SingularKernelError(OVERFLOW)
        return cls(shares, steepness, blocks, factor)

    def _blockwise(self, columns: Tensor) -> Tensor:
        parts = zip(self.blocks, columns.unbind(1), strict=True)
        return torch.stack([block.inverse @ column for block, column in parts], dim=1)

    def solve(self, columns: Tensor) -> Tensor:
        """A⁻¹ times values (n, k)."""
        own = self._blockwise(columns)
        common = solve_with_factor(self.total, own.sum(1, keepdim=True))
        return own - self._blockwise(common.expand_as(own))

    def shared(self, columns: Tensor) -> Tensor:
        """M⁻¹E_c times columns (n, m) with MMᵀ = Σ E, class by class: what the classes have in common. Shape (k, n, m)."""
        found = [torch.linalg.solve_triangular(self.total, block.inverse @ columns, upper=False) for block in self.blocks]
        return torch.stack(found)

    @property
    def log_determinant(self) -> float:
        """Of I + S^½KS^½."""
        own = sum(block.log_determinant for block in self.blocks)
        return own + 2 * float(self.total.diagonal().log().sum()) - float(self.steepness.log().sum())

    @property
    def condition(self) -> float:
        """The worst of the blocks'."""
        return max(block.condition for block in self.blocks)


@dataclass(frozen=True)
class Bent:
    """A penalised fit under any loss: rows with labels, starts and weights, their kernel, and λN.

    Attributes
    ----------
    kernel : Tensor of shape (n, n)
    labels, starts : Tensor of shape (n, k)
        y, and s̄, which the fit is added to.
    weights : Tensor of shape (n,)
    penalty : float
        λN.
    loss : Loss
    """

    kernel: Tensor
    labels: Tensor
    starts: Tensor
    weights: Tensor
    penalty: float
    loss: Loss

    @property
    def share(self) -> float:
        """Of the kernel that is each output's own: the difference of two classes' logits has all of it."""
        return 0.5 if self.loss.is_joint else 1.0

    def outputs(self, values: Tensor) -> Tensor:
        """The whole, f = s̄ + g."""
        return self.starts + values

    def cost(self, own: Tensor, values: Tensor) -> float:
        """J, for g and its dual weights in each output's own kernel."""
        loss = (self.weights[:, None] * self.loss.value(self.outputs(values), self.labels)).sum()
        return float(loss + self.penalty * (own * values).sum())

    def pull(self, values: Tensor) -> Tensor:
        """−w u/2λN, which is α at the solution, in units of each output's own kernel. Shape (n, k)."""
        gradient = self.loss.gradient(self.outputs(values), self.labels)
        return -self.weights[:, None] * gradient / (2 * self.penalty)

    def curvature(self, values: Tensor, *, is_safe: bool = False) -> ScalarCurvature | JointCurvature:
        """The ridge near g; a safe one lies above the objective, where the loss knows such."""
        f, steepness = self.outputs(values), self.weights / (2 * self.penalty)
        if self.loss.is_joint:
            return JointCurvature.of(self.share * self.kernel, self.loss.inverse_link(f), steepness)
        bends = self.loss.majorant(f, self.labels) if is_safe else self.loss.curvature(f, self.labels)
        return ScalarCurvature.of(self.kernel, steepness * bends[:, 0])


@dataclass(frozen=True)
class BentFit:
    """Where Newton's steps have ended.

    Attributes
    ----------
    dual : Tensor of shape (n, k)
        α with g = Kα.
    values : Tensor of shape (n, k)
        g at the rows.
    steps : int
    last_move : float
        Of the values, in the last step, relative to their size.
    """

    dual: Tensor
    values: Tensor
    steps: int
    last_move: float

    @property
    def converged(self) -> bool:
        """Whether the last step hardly moved anything."""
        return self.last_move <= 1e-6


def solve_bent(problem: Bent, start: Tensor | None = None, tolerance: float = TOLERANCE, steps: int = STEPS) -> BentFit:
    """Newton's method from the function zero or from dual weights (n, k), each step as long as it lets the objective fall."""
    kernel = problem.share * problem.kernel
    own = torch.zeros_like(problem.starts) if start is None else start / problem.share
    g = torch.zeros_like(own) if start is None else kernel @ own
    cost, move, step, length = problem.cost(own, g), math.inf, 0, 1.0
    while step < steps and move > tolerance:
        step += 1
        ridge = problem.curvature(g, is_safe=length < _SHORT)
        residual = own - problem.pull(g)
        full = own - residual + ridge.solve(kernel @ residual)  # (I + SK)⁻¹ = I − A⁻¹K
        values, before = kernel @ full, 1 + float(g.abs().max())
        length, reached = _longest(problem, (own, g), (full, values), cost)
        move = float((values - g).abs().max()) / before
        if length == 0:  # rounding is all that is left to gain
            break
        own, g, cost = own + length * (full - own), g + length * (values - g), reached
    return BentFit(own * problem.share, g, step, move)


def _longest(problem: Bent, now: tuple[Tensor, Tensor], full: tuple[Tensor, Tensor], cost: float) -> tuple[float, float]:
    """The longest of the step and its halves that lets J fall, zero where none does; and J there."""
    slack, length = 1e-13 * abs(cost), 1.0
    for _ in range(_HALVINGS):
        own, values = (here + length * (there - here) for here, there in zip(now, full, strict=True))
        reached = problem.cost(own, values)
        if reached <= cost + slack:
            return length, reached
        length /= 2
    return 0.0, cost


def _plus_identity(kernel: Tensor, root: Tensor) -> Tensor:
    matrix = root[:, None] * kernel * root
    matrix.diagonal().add_(1.0)
    factor = lower_cholesky(matrix)
    if factor is None:
        raise SingularKernelError(OVERFLOW)
    return factor
