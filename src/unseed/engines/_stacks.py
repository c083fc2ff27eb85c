"""Many data sets of one size at once: every step is one operation over a stack of them, which a GPU needs to be busy.

Nothing here waits for the device: sizes are taken from counts that are still on the host, and whether a system was singular
is a tensor like the predictions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from unseed.kernels import PopulationKernel, Profile
from unseed.networks import MLP

HostCounts = npt.NDArray[np.signedinteger[Any]]


@dataclass(frozen=True)
class StackedSets:
    """Data sets of one size, each with points of its own, in the network's units."""

    kernel: PopulationKernel
    rows: Profile  # (n_sets, n_rows)
    labels: Tensor  # (n_sets, n_rows)
    points: Profile  # (n_sets, n_points)

    @classmethod
    def of(cls, network: MLP, X: Tensor, labels: Tensor, X_new: Tensor) -> StackedSets:
        """X of shape (n_sets, n_rows, d), X_new of shape (n_sets, n_points, d)."""
        kernel = PopulationKernel(network)
        return cls(kernel, kernel.profile(X), labels, kernel.profile(X_new))

    def predict(self, sets: slice, counts: HostCounts, regularization: float) -> tuple[Tensor, Tensor]:
        """Train the replicates of some data sets and predict their points.

        Parameters
        ----------
        sets : slice
        counts : array of shape (n_sets, n_replicates, n_rows)
            How often each replicate counts each row, on the host.
        regularization : float
            λ_n.

        Returns
        -------
        values : Tensor of shape (n_sets, n_points, n_replicates)
        singular : Tensor of shape (n_sets, n_replicates)
            Which networks could not be trained.
        """
        rows, labels = self.rows[sets], self.labels[sets]
        distinct, all_counts = np.count_nonzero(counts, axis=2), torch.from_numpy(counts).to(labels.device).to(labels.dtype)
        # A stable sort of "is left out" brings the rows that count to the front, in their order.
        order = torch.argsort((all_counts == 0).to(torch.uint8), dim=-1, stable=True)
        # Replicates on all rows would force their size on all others.
        is_full = (distinct == counts.shape[2]).all(axis=0)
        dual = torch.zeros_like(all_counts)
        singular = torch.zeros(counts.shape[:2], dtype=torch.bool, device=labels.device)
        shared = None
        for which in (~is_full, is_full):
            if not which.any():
                continue
            longest, n_replicates = int(distinct[:, which].max()), int(which.sum())
            replicates = torch.from_numpy(np.flatnonzero(which)).to(labels.device)
            chosen = order[:, replicates, :longest]
            # Where replicates share rows, cutting them out of one matrix is cheaper than one matrix for each.
            if shared is None and (n_replicates * longest**2 > counts.shape[2] ** 2 or is_full.any()):
                shared = self.kernel.ntk_gram(rows)
            matrices = self.kernel.ntk_gram(rows.gathered(chosen)) if shared is None else _cut_out(shared, chosen)
            own_counts = all_counts[:, replicates].gather(-1, chosen)
            own_labels = labels[:, None, :].expand(-1, n_replicates, -1).gather(-1, chosen)
            weights, failed = _solve(matrices, own_counts.flatten(0, 1), own_labels.flatten(0, 1), regularization)
            everywhere = torch.zeros_like(all_counts[:, replicates]).scatter_(-1, chosen, weights.reshape(chosen.shape))
            dual.index_copy_(1, replicates, everywhere)
            singular.index_copy_(1, replicates, failed.reshape(chosen.shape[:2]))
        return self.kernel.ntk_cross(self.points[sets], rows) @ dual.mT, singular


def _cut_out(matrices: Tensor, rows: Tensor) -> Tensor:
    """Square parts of square matrices, of rows (n_sets, n_replicates, m). Shape (n_sets · n_replicates, m, m)."""
    sets = torch.arange(len(matrices), device=matrices.device)[:, None, None, None]
    return matrices[sets, rows[..., :, None], rows[..., None, :]].flatten(0, 1)


def _solve(matrices: Tensor, counts: Tensor, labels: Tensor, regularization: float) -> tuple[Tensor, Tensor]:
    """Dual weights (n, m), and which systems are singular (n,); overwrites the matrices.

    (K + λ n W⁻¹)⁻¹ = W½ (W½ K W½ + λ n)⁻¹ W½, so that rows with a count of zero, which fill up the shorter ones, drop out.
    """
    root = counts.sqrt()
    ridge = regularization * counts.sum(-1, keepdim=True)
    matrices = matrices.mul_(root[:, :, None]).mul_(root[:, None, :])
    diagonal = matrices.diagonal(dim1=1, dim2=2)
    diagonal.add_(torch.where(counts > 0, ridge, diagonal.amax(1, keepdim=True)))  # dropped rows must not look singular
    factors, info = torch.linalg.cholesky_ex(matrices)
    pivots = factors.diagonal(dim1=1, dim2=2).square()
    singular = (info != 0) | (pivots.amin(1) < pivots.shape[1] * torch.finfo(pivots.dtype).eps * pivots.amax(1))
    return root * torch.cholesky_solve((root * labels)[..., None], factors)[..., 0], singular
