"""Kernel matrices in blocks: temporaries stay small, symmetric matrices cost half and are exactly symmetric."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from unseed.kernels.recursion import KernelValues, Profile, pairs, profile
from unseed.networks import MLP

# Edge of a block: small enough for a CPU's cache, large enough to fill a GPU. About a dozen temporaries of
# this size squared exist at a time: 6 MB on a CPU, 1.6 GB on a GPU.
CPU_BLOCK, GPU_BLOCK = 256, 4096


def _slices(length: int, device: torch.device) -> Iterator[slice]:
    block = GPU_BLOCK if device.type == "cuda" else CPU_BLOCK
    for start in range(0, length, block):
        yield slice(start, min(start + block, length))


@dataclass(frozen=True)
class PopulationKernel:
    """NTK and NNGP of an infinitely wide network, as matrices."""

    network: MLP

    def profile(self, X: Tensor) -> Profile:
        """Per-point part of the kernels at the rows of X."""
        return profile(self.network, X)

    def ntk_gram(self, points: Profile) -> Tensor:
        """NTK of a set of points with itself. Shape (n, n), exactly symmetric."""
        return self._gram(points, "ntk")

    def nngp_gram(self, points: Profile) -> Tensor:
        """NNGP of a set of points with itself. Shape (n, n), exactly symmetric."""
        return self._gram(points, "nngp")

    def ntk_cross(self, left: Profile, right: Profile) -> Tensor:
        """NTK between two sets of points. Shape (n, m)."""
        return self._cross(left, right, "ntk")

    def nngp_cross(self, left: Profile, right: Profile) -> Tensor:
        """NNGP between two sets of points. Shape (n, m)."""
        return self._cross(left, right, "nngp")

    def _gram(self, points: Profile, kind: str) -> Tensor:
        matrix = points.directions.new_empty(len(points), len(points))
        for rows in _slices(len(points), matrix.device):
            for columns in _slices(rows.start, matrix.device):
                block = self._block(points[rows], points[columns], kind)
                matrix[rows, columns] = block
                matrix[columns, rows] = block.T
            block = self._block(points[rows], points[rows], kind, same_points=True)
            matrix[rows, rows] = torch.tril(block) + torch.tril(block, -1).T
        return matrix

    def _cross(self, left: Profile, right: Profile, kind: str) -> Tensor:
        matrix = left.directions.new_empty(len(left), len(right))
        for rows in _slices(len(left), matrix.device):
            for columns in _slices(len(right), matrix.device):
                matrix[rows, columns] = self._block(left[rows], right[columns], kind)
        return matrix

    def _block(self, left: Profile, right: Profile, kind: str, *, same_points: bool = False) -> Tensor:
        values: KernelValues = pairs(self.network, left, right, same_points=same_points)
        return values.ntk if kind == "ntk" else values.nngp
