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
        distinct = np.count_nonzero(counts, axis=2)
        # Replicates on all rows would force their size on all others.
        is_full = (distinct == counts.shape[2]).all(axis=0)
        dual = torch.zeros(counts.shape, dtype=labels.dtype, device=labels.device)
        singular = torch.zeros(counts.shape[:2], dtype=torch.bool, device=labels.device)
        shared = None
        for which in (~is_full, is_full):
            if not which.any():
                continue
            systems = _Systems.of(counts if which.all() else counts[:, which], int(distinct[:, which].max()), labels)
            if shared is None and (systems.overlap or is_full.any()):
                shared = self.kernel.ntk_gram(rows)
            matrices = self.kernel.ntk_gram(rows.gathered(systems.rows)) if shared is None else systems.cut_out_of(shared)
            replicates = torch.from_numpy(np.flatnonzero(which)).to(labels.device)
            weights, failed = systems.solve(matrices, regularization)
            dual.index_copy_(1, replicates, weights)
            singular.index_copy_(1, replicates, failed)
        return self.kernel.ntk_cross(self.points[sets], rows) @ dual.mT, singular


@dataclass(frozen=True)
class _Systems:
    """Replicates of many data sets, each padded to the same number of rows by rows that count zero times."""

    rows: Tensor  # (n_sets, n_replicates, length)
    counts: Tensor  # (n_sets, n_replicates, length)
    labels: Tensor  # (n_sets, n_rows)

    @classmethod
    def of(cls, counts: HostCounts, length: int, labels: Tensor) -> _Systems:
        """From the counts of all rows, (n_sets, n_replicates, n_rows), and the most of them that count."""
        all_counts = torch.from_numpy(counts).to(labels.device).to(labels.dtype)
        # A stable sort of "is left out" brings the rows that count to the front, in their order.
        rows = torch.argsort((all_counts == 0).to(torch.uint8), dim=-1, stable=True)[..., :length]
        return cls(rows, all_counts.gather(-1, rows), labels)

    @property
    def overlap(self) -> bool:
        """Whether replicates share rows, so that cutting them out of one matrix is cheaper than one matrix for each."""
        return self.rows.shape[1] * self.rows.shape[2] ** 2 > self.labels.shape[1] ** 2

    def cut_out_of(self, matrices: Tensor) -> Tensor:
        """Square parts of square matrices, one for each replicate. Shape (n_sets · n_replicates, length, length)."""
        sets = torch.arange(len(matrices), device=matrices.device)[:, None, None, None]
        return matrices[sets, self.rows[..., :, None], self.rows[..., None, :]].flatten(0, 1)

    def solve(self, matrices: Tensor, regularization: float) -> tuple[Tensor, Tensor]:
        """Dual weights of all rows, (n_sets, n_replicates, n_rows), and which systems are singular; overwrites the matrices.

        (K + λ n W⁻¹)⁻¹ = W½ (W½ K W½ + λ n)⁻¹ W½, so that rows with a count of zero drop out.
        """
        counts = self.counts.flatten(0, 1)
        root = counts.sqrt()
        ridge = regularization * counts.sum(-1, keepdim=True)
        matrices = matrices.mul_(root[:, :, None]).mul_(root[:, None, :])
        diagonal = matrices.diagonal(dim1=1, dim2=2)
        diagonal.add_(torch.where(counts > 0, ridge, diagonal.amax(1, keepdim=True)))  # dropped rows must not look singular
        factors, info = torch.linalg.cholesky_ex(matrices)
        pivots = factors.diagonal(dim1=1, dim2=2).square()
        singular = (info != 0) | (pivots.amin(1) < pivots.shape[1] * torch.finfo(pivots.dtype).eps * pivots.amax(1))
        own = self.labels[:, None, :].expand(-1, self.rows.shape[1], -1).gather(-1, self.rows).flatten(0, 1)
        solved = torch.cholesky_solve((root * own)[..., None], factors)[..., 0]
        weights = (root * solved).reshape(self.counts.shape)
        everywhere = weights.new_zeros(*self.rows.shape[:2], self.labels.shape[1]).scatter_(-1, self.rows, weights)
        return everywhere, singular.reshape(self.rows.shape[:2])
