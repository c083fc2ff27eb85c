"""Many data sets of one size at once: every step is one operation over a stack of them, which a GPU needs to be busy."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unseed.errors import SingularKernelError
from unseed.kernels import PopulationKernel
from unseed.networks import MLP


@dataclass(frozen=True)
class StackedSystems:
    """Replicates of many data sets, each padded to the same number of rows by rows that count zero times.

    Attributes
    ----------
    rows : Tensor of shape (n_sets, n_replicates, length)
    counts : Tensor of shape (n_sets, n_replicates, length)
    """

    rows: Tensor
    counts: Tensor

    @classmethod
    def of_counts(cls, counts: Tensor) -> StackedSystems:
        """From the counts of all rows, (n_sets, n_replicates, n_rows)."""
        length = int((counts > 0).sum(-1).max())
        # A stable sort of "is left out" brings the rows that count to the front, in their order.
        rows = torch.argsort((counts == 0).to(torch.uint8), dim=-1, stable=True)[..., :length]
        return cls(rows, counts.gather(-1, rows))

    @property
    def overlap(self) -> bool:
        """Whether replicates share rows, so that cutting them out of one matrix is cheaper than one matrix for each."""
        n_rows = int(self.rows.max()) + 1
        return self.rows.shape[1] * self.rows.shape[2] ** 2 > n_rows**2


def solve_stacked(network: MLP, X: Tensor, labels: Tensor, counts: Tensor, regularization: float) -> Tensor:
    """Dual weights of every replicate of every data set.

    Parameters
    ----------
    network : MLP
    X : Tensor of shape (n_sets, n_rows, d)
    labels : Tensor of shape (n_sets, n_rows)
    counts : Tensor of shape (n_sets, n_replicates, n_rows)
    regularization : float

    Returns
    -------
    Tensor of shape (n_sets, n_replicates, n_rows)
    """
    kernel = PopulationKernel(network)
    # Replicates on all rows would force their size on all others.
    is_full = (counts > 0).all(-1).all(0)
    dual = torch.zeros_like(counts)
    shared = None
    for which in (~is_full, is_full):
        if not bool(which.any()):
            continue
        systems = StackedSystems.of_counts(counts[:, which])
        if shared is None and (systems.overlap or bool(is_full.any())):
            shared = kernel.ntk_grams(kernel.stacked_profile(X))
        if shared is None:
            parts = _take_rows(X, systems.rows)
            matrices = kernel.ntk_grams(kernel.stacked_profile(parts.flatten(0, 1)))
        else:
            matrices = _cut(shared, systems.rows).flatten(0, 1)
        solved = _solve(matrices, systems, labels, regularization)
        found = torch.zeros_like(counts[:, which]).scatter_(-1, systems.rows, solved)
        dual[:, which] = found
    return dual


def cross_stacked(network: MLP, X_new: Tensor, X: Tensor) -> Tensor:
    """Kernel between new points and training rows, set by set. Shape (n_sets, n_points, n_rows)."""
    kernel = PopulationKernel(network)
    return kernel.ntk_crosses(kernel.stacked_profile(X_new), kernel.stacked_profile(X))


def _solve(matrices: Tensor, systems: StackedSystems, labels: Tensor, regularization: float) -> Tensor:
    """(K + λ n W⁻¹)⁻¹ = W½ (W½ K W½ + λ n)⁻¹ W½: rows with a count of zero drop out. Shape as the counts."""
    counts = systems.counts.flatten(0, 1)
    root = counts.sqrt()
    ridge = regularization * counts.sum(-1, keepdim=True)
    matrices = matrices.mul_(root[:, :, None]).mul_(root[:, None, :])
    diagonal = matrices.diagonal(dim1=1, dim2=2)
    diagonal.add_(torch.where(counts > 0, ridge, diagonal.amax(1, keepdim=True)))  # dropped rows must not look singular
    factors, info = torch.linalg.cholesky_ex(matrices)
    pivots = factors.diagonal(dim1=1, dim2=2).square()
    singular = (info != 0) | (pivots.amin(1) < pivots.shape[1] * torch.finfo(pivots.dtype).eps * pivots.amax(1))
    if bool(singular.any()):
        raise SingularKernelError(
            f"{int(singular.sum())} of {len(info)} kernel matrices are singular to float64 at "
            f"regularization={regularization:g}; raise it (try 1e-6)"
        )
    own = labels[:, None, :].expand(-1, systems.rows.shape[1], -1).gather(-1, systems.rows).flatten(0, 1)
    solved = torch.cholesky_solve((root * own)[..., None], factors)[..., 0]
    return (root * solved).reshape(systems.counts.shape)


def _take_rows(X: Tensor, rows: Tensor) -> Tensor:
    """Rows of every data set and replicate. Shape (n_sets, n_replicates, length, d)."""
    sets = torch.arange(len(X), device=X.device)[:, None, None]
    return X[sets, rows]


def _cut(matrices: Tensor, rows: Tensor) -> Tensor:
    """Square parts of square matrices. Shape (n_sets, n_replicates, length, length)."""
    sets = torch.arange(len(matrices), device=matrices.device)[:, None, None, None]
    return matrices[sets, rows[..., :, None], rows[..., None, :]]
