"""Kernel matrices and their products, tile by tile: small temporaries, and half the work where a matrix is symmetric."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from unseed.kernels.recursion import Kind, Profile, pairs, profile
from unseed.machine import finish, on_all_cores, uninitialised
from unseed.networks import MLP

TEMPORARIES = 8
"""Numbers held for each pair of a tile while its kernel is computed, at most (twice as many for three or more layers)."""

CPU_TEMPORARY_BYTES, GPU_TEMPORARY_BYTES = 4 << 20, 1 << 30
"""All that a tile's temporaries may take, for each core of a CPU (it should fit into its cache), and on a GPU."""


def tile_edge(device: torch.device) -> int:
    """Points on each side of a tile.

    Examples
    --------
    >>> tile_edge(torch.device("cpu")), tile_edge(torch.device("cuda"))
    (256, 4096)
    """
    budget = GPU_TEMPORARY_BYTES if device.type == "cuda" else CPU_TEMPORARY_BYTES
    return int((budget / (8 * TEMPORARIES)) ** 0.5)


def _slices(length: int, device: torch.device) -> list[slice]:
    edge = tile_edge(device)
    return [slice(start, min(start + edge, length)) for start in range(0, length, edge)]


@dataclass(frozen=True)
class PopulationKernel:
    """NTK and NNGP of an infinitely wide network, as matrices."""

    network: MLP

    def profile(self, X: Tensor) -> Profile:
        """Per-point part of the kernels at the rows of X."""
        return profile(self.network, X)

    def stacked_profile(self, X: Tensor) -> Profile:
        """The same for a stack of data sets, (n_sets, n, d); of use for `ntk_grams` and `ntk_products`."""
        return profile(self.network, X.flatten(0, 1)).reshaped(len(X))

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

    def ntk_product(self, left: Profile, right: Profile, columns: Tensor) -> Tensor:
        """Θ(left, right) @ columns without the matrix. Shape (n, c)."""
        return self._product(left, right, columns, "ntk")

    def nngp_product(self, left: Profile, right: Profile, columns: Tensor) -> Tensor:
        """Σ(left, right) @ columns without the matrix. Shape (n, c)."""
        return self._product(left, right, columns, "nngp")

    def ntk_gram_product(self, points: Profile, columns: Tensor) -> Tensor:
        """Θ(points, points) @ columns without the matrix, every pair computed once. Shape (n, c)."""
        slices = _slices(len(points), columns.device)

        def strip(last: int) -> Tensor:
            """What the tiles of one row of tiles, up to the diagonal, add to the result: to their rows and to their columns."""
            rows = slices[last]
            added = columns.new_zeros(rows.stop, columns.shape[1])
            for part in slices[:last]:
                block = self._block(points[rows], points[part], "ntk")
                added[part].addmm_(block.T, columns[rows])
                added[rows].addmm_(block, columns[part])
            corner = self._block(points[rows], points[rows], "ntk", same_points=True)
            added[rows].addmm_(torch.tril(corner) + torch.tril(corner, -1).T, columns[rows])
            return added

        result = torch.zeros_like(columns)
        for added in on_all_cores(strip, reversed(range(len(slices))), columns.device):  # the longest first, added in order
            result[: len(added)] += added
        return result

    def ntk_grams(self, points: Profile) -> Tensor:
        """NTK of every set of a stack with itself. Shape (n_sets, n, n)."""
        n_sets, n = points.directions.shape[:2]
        matrices = points.directions.new_empty(n_sets, n, n)
        for sets in _groups(n_sets, n * n, matrices.device):
            matrices[sets] = pairs(self.network, points[sets], points[sets], "ntk", same_points=True)
        return matrices

    def ntk_products(self, left: Profile, right: Profile, columns: Tensor) -> Tensor:
        """Θ(left, right) @ columns, set by set of a stack. Shape (n_sets, n, c)."""
        n_sets, n = left.directions.shape[:2]
        result = columns.new_empty(n_sets, n, columns.shape[-1])
        for sets in _groups(n_sets, n * columns.shape[1], columns.device):
            result[sets] = pairs(self.network, left[sets], right[sets], "ntk") @ columns[sets]
        return result

    def _gram(self, points: Profile, kind: Kind) -> Tensor:
        matrix = uninitialised(points.directions, len(points), len(points))
        slices = _slices(len(points), matrix.device)

        def fill(tile: tuple[slice, slice]) -> None:
            rows, columns = tile
            block = self._block(points[rows], points[columns], kind, same_points=rows is columns)
            if rows is columns:
                block = torch.tril(block) + torch.tril(block, -1).T
            matrix[rows, columns] = block
            matrix[columns, rows] = block.T

        finish(on_all_cores(fill, _lower(slices), matrix.device))
        return matrix

    def _cross(self, left: Profile, right: Profile, kind: Kind) -> Tensor:
        matrix = uninitialised(left.directions, len(left), len(right))

        def fill(tile: tuple[slice, slice]) -> None:
            rows, columns = tile
            matrix[rows, columns] = self._block(left[rows], right[columns], kind)

        finish(on_all_cores(fill, _all(left, right), matrix.device))
        return matrix

    def _product(self, left: Profile, right: Profile, columns: Tensor, kind: Kind) -> Tensor:
        rows_of_result = columns.new_zeros(columns.shape[1], len(left))  # transposed: twice as fast for few columns
        pieces = [(right[part], columns[part].T.contiguous()) for part in _slices(len(right), columns.device)]

        def add_up(rows: slice) -> None:
            here = left[rows]
            for there, values in pieces:
                rows_of_result[:, rows].addmm_(values, self._block(here, there, kind).T)

        finish(on_all_cores(add_up, _slices(len(left), columns.device), columns.device))
        return rows_of_result.T

    def _block(self, left: Profile, right: Profile, kind: Kind, *, same_points: bool = False) -> Tensor:
        return pairs(self.network, left, right, kind, same_points=same_points)


def _groups(n_sets: int, pairs_of_a_set: int, device: torch.device) -> list[slice]:
    """As many sets at a time as the temporaries' budget holds."""
    size = max(1, tile_edge(device) ** 2 // pairs_of_a_set)
    return [slice(start, start + size) for start in range(0, n_sets, size)]


def _lower(slices: list[slice]) -> Iterator[tuple[slice, slice]]:
    """Tiles on and below the diagonal."""
    return ((rows, columns) for i, rows in enumerate(slices) for columns in slices[: i + 1])


def _all(left: Profile, right: Profile) -> Iterator[tuple[slice, slice]]:
    device = left.directions.device
    return ((rows, columns) for rows in _slices(len(left), device) for columns in _slices(len(right), device))
