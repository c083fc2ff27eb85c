"""Blocks of rows, each solved alone, and one network on all of them by iteration: no matrix larger than a block is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from unseed._machine import available_bytes, total_bytes
from unseed._solvers import PrimalRidge, conjugate_gradients, landmark_features, solve_ridge
from unseed._state import Record, State
from unseed.kernels import PopulationKernel
from unseed.networks import MLP

_CHECKED_ROWS = 128  # of a block, about
_SMALLEST_BLOCK, _LARGEST_BLOCK, _FEWEST_BLOCKS = 1024, 8192, 8
_SECONDS, _CPU_FLOPS, _GPU_FLOPS = 60.0, 3e10, 1e13  # nominal rates of a factorisation in float64
_MOST_LANDMARKS, _FEWEST_LANDMARKS = 2048, 128


@dataclass(frozen=True)
class BlockFit:
    """An infinitely wide network trained to convergence on one block.

    Attributes
    ----------
    X : Tensor of shape (b, d)
    dual : Tensor of shape (b, n_outputs)
    checked : Tensor of shape (m, n_outputs)
        Labels of every `check_step`-th row: networks of other blocks never saw them.
    """

    X: Tensor
    dual: Tensor
    checked: Tensor

    @classmethod
    def solve(cls, network: MLP, X: Tensor, labels: Tensor, regularization: float, *, is_mixed: bool = False) -> BlockFit:
        """One Gram matrix, one factorisation; both are gone when this returns."""
        return cls(X, *cls.weights(network, X, labels, regularization, is_mixed=is_mixed))

    @staticmethod
    def weights(
        network: MLP, X: Tensor, labels: Tensor, regularization: float, *, is_mixed: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Dual weights, and the labels that are kept: all of a block that whoever has its rows does not know."""
        kernel, n = PopulationKernel(network), len(X)
        matrix = kernel.ntk_gram(kernel.profile(X))
        dual = solve_ridge(matrix, labels.new_ones(n), regularization, labels, is_mixed=is_mixed)
        return dual.contiguous(), labels[:: check_step(n)].clone()

    def some_checked(self, n_rows: int) -> tuple[Tensor, Tensor]:
        """So many of the rows whose labels were kept, evenly, and those labels."""
        some = torch.linspace(0, len(self.checked) - 1, min(n_rows, len(self.checked))).long()
        return self.X[:: check_step(len(self.X))][some], self.checked[some]

    def __len__(self) -> int:
        return len(self.X)

    def load(self) -> BlockFit:
        """Itself: it is in memory."""
        return self

    def predict(self, network: MLP, X: Tensor) -> Tensor:
        """Shape (n_points, n_outputs)."""
        return _predict(network, self.X, self.dual, X)


def check_step(n_rows: int) -> int:
    """Distance of the rows of a block whose labels are kept."""
    return max(1, n_rows // _CHECKED_ROWS)


@dataclass(frozen=True)
class FullFit:
    """The network on all rows, by conjugate gradients: every product computes the kernel anew and keeps none of it.

    Attributes
    ----------
    X : Tensor of shape (n, d)
    dual : Tensor of shape (n, n_outputs)
    relative_residual : float
        ‖y − A α‖ / ‖y‖ of the worst output.
    iterations : int
    converged : bool
    """

    X: Tensor
    dual: Tensor
    relative_residual: float
    iterations: int
    converged: bool

    def state(self) -> State:
        """Dual weights and how they were found; the rows are those of the blocks."""
        return {
            "centre": self.dual,
            "relative_residual": self.relative_residual,
            "iterations": self.iterations,
            "converged": self.converged,
        }

    @classmethod
    def restore(cls, record: Record, X: Tensor, n_outputs: int) -> FullFit:
        """From `state`, for these rows."""
        return cls(
            X,
            record.tensor("centre", X.device, len(X), n_outputs),
            record.fact("relative_residual", float),
            record.whole_number("iterations"),
            record.fact("converged", bool),
        )

    @classmethod
    def solve(
        cls,
        network: MLP,
        X: Tensor,
        labels: Tensor,
        regularization: float,
        *,
        generator: np.random.Generator,
        tolerance: float,
        max_iterations: int,
        report: Callable[[], None] = lambda: None,
    ) -> FullFit:
        """Solve (K + λ n I) α = y preconditioned by the ridge of some random rows' landmark features."""
        kernel, ridge = PopulationKernel(network), regularization * len(X)
        points = kernel.profile(X)
        chosen = generator.permutation(len(X))[: landmarks_for(len(X), X.device)]
        some = points[torch.from_numpy(np.sort(chosen)).to(X.device)]
        features = landmark_features(kernel.ntk_gram(some), kernel.ntk_cross(points, some))
        found = conjugate_gradients(
            lambda v: kernel.ntk_gram_product(points, v).add_(v, alpha=ridge),
            labels,
            PrimalRidge.factorise(features, labels.new_ones(len(X)), regularization).solve,
            tolerance=tolerance,
            max_iterations=max_iterations,
            report=report,
        )
        return cls(X, found.solution, found.relative_residual, found.iterations, found.converged)

    def predict(self, network: MLP, X: Tensor) -> Tensor:
        """Shape (n_points, n_outputs)."""
        return _predict(network, self.X, self.dual, X)


def _predict(network: MLP, rows: Tensor, dual: Tensor, X: Tensor) -> Tensor:
    kernel = PopulationKernel(network)
    return kernel.ntk_product(kernel.profile(X), kernel.profile(rows), dual)


def block_rows(n_rows: int, device: torch.device) -> int:
    """Rows of a block by memory and time, the same for any number of workers and however busy the machine is.

    The largest power of two between 1024 and 8192 whose factorisations take a minute together at nominal rates, and whose
    matrix is at most a sixteenth of all memory; but at least eight blocks, since fewer have a wide t quantile.

    Examples
    --------
    >>> [block_rows(n, torch.device("cpu")) for n in (4_000, 100_000, 1_000_000)]
    [500, 4096, 2048]
    """
    operations = _SECONDS * (_GPU_FLOPS if device.type == "cuda" else _CPU_FLOPS)
    rows = _LARGEST_BLOCK
    while rows > _SMALLEST_BLOCK and (n_rows * rows**2 / 3 > operations or 8 * rows**2 > total_bytes(device) / 16):
        rows //= 2
    return max(1, min(rows, n_rows // _FEWEST_BLOCKS))


def landmarks_for(n_rows: int, device: torch.device) -> int:
    """Rows of the preconditioner: as many as an eighth of the free memory holds, at most 2048."""
    affordable = available_bytes(device) // 8 // (8 * n_rows)
    return min(n_rows, max(_FEWEST_LANDMARKS, min(_MOST_LANDMARKS, affordable)))
