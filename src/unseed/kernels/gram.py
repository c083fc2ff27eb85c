"""Kernel matrices and their products, tile by tile: small temporaries, and half the work where a matrix is symmetric."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from unseed.kernels.recursion import Kind, Profile, pairs, profile
from unseed.kernels.scratch import TILE_NUMBERS, Scratch, borrowed_scratch
from unseed.machine import finish, on_all_cores, uninitialised
from unseed.networks import MLP

TEMPORARIES = 16
"""Numbers held for each pair of a tile while its kernel is computed, at most; ReLU and erf hold eleven."""

CPU_TEMPORARY_BYTES, GPU_TEMPORARY_BYTES = 8 * TEMPORARIES * TILE_NUMBERS, 2 << 30
"""All that a tile's temporaries may take: for each thread of a CPU, and on a GPU."""

_CPU_ROWS, _GPU_ROWS = 256, 4096


def tile_shape(device: torch.device) -> tuple[int, int]:
    """Rows and columns of a tile.

    Examples
    --------
    >>> tile_shape(torch.device("cpu")), tile_shape(torch.device("cuda"))
    ((256, 1024), (4096, 4096))
    """
    on_gpu = device.type == "cuda"
    rows, budget = (_GPU_ROWS, GPU_TEMPORARY_BYTES) if on_gpu else (_CPU_ROWS, CPU_TEMPORARY_BYTES)
    return rows, budget // (8 * TEMPORARIES * rows)


def _slices(length: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]


@dataclass(frozen=True)
class _Tiles:
    """Kernels of pairs of points, tile after tile in the same memory."""

    network: MLP
    kind: Kind
    scratch: Scratch

    def __call__(self, left: Profile, right: Profile, *, right_ends_with_left: bool = False) -> Tensor:
        """Valid until the next call. Shape (n, m)."""
        self.scratch.reset()
        return pairs(self.network, left, right, self.kind, self.scratch, right_ends_with_left=right_ends_with_left)

    def up_to_diagonal(self, points: Profile, rows: slice) -> Iterator[tuple[slice, Tensor]]:
        """Columns and values of every tile at some rows of a Gram matrix, from the exactly symmetric one on the diagonal on."""
        here, height = points[rows], rows.stop - rows.start
        _, width = tile_shape(points.directions.device)
        for stop in range(rows.stop, 0, -width):
            part, has_diagonal = slice(max(0, stop - width), stop), stop == rows.stop
            block = self(here, points[part], right_ends_with_left=has_diagonal)
            if not has_diagonal:
                yield part, block
                continue
            corner = block[:, -height:]
            yield rows, torch.tril(corner) + torch.tril(corner, -1).T
            yield slice(part.start, rows.start), block[:, :-height]


@contextmanager
def _tiles(network: MLP, kind: Kind) -> Iterator[_Tiles]:
    with borrowed_scratch() as scratch:
        yield _Tiles(network, kind, scratch)


@dataclass(frozen=True)
class PopulationKernel:
    """NTK and NNGP of an infinitely wide network, as matrices."""

    network: MLP

    def profile(self, X: Tensor) -> Profile:
        """Per-point part of the kernels at the rows of X."""
        return profile(self.network, X)

    def stacked_profile(self, X: Tensor) -> Profile:
        """The same for a stack of data sets, (n_sets, n, d); of use for `ntk_grams` and `ntk_crosses`."""
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
        height, _ = tile_shape(columns.device)

        def strip(rows: slice) -> Tensor:
            """What the tiles left of the diagonal, and the one on it, add to the result at their rows and at their columns."""
            added = columns.new_zeros(rows.stop, columns.shape[1])
            with _tiles(self.network, "ntk") as tile:
                for part, block in tile.up_to_diagonal(points, rows):
                    added[rows].addmm_(block, columns[part])
                    if part != rows:
                        added[part].addmm_(block.T, columns[rows])
            return added

        result = torch.zeros_like(columns)
        longest_first = reversed(_slices(len(points), height))
        for added in on_all_cores(strip, longest_first, columns.device):  # in order, so that no thread changes the sum
            result[: len(added)] += added
        return result

    def ntk_grams(self, points: Profile) -> Tensor:
        """NTK of every set of a stack with itself. Shape (n_sets, n, n)."""
        n_sets, n = points.directions.shape[:2]
        matrices = points.directions.new_empty(n_sets, n, n)
        for sets in _groups(n_sets, n * n, matrices.device):
            matrices[sets] = pairs(self.network, points[sets], points[sets], "ntk", right_ends_with_left=True)
        return matrices

    def ntk_crosses(self, left: Profile, right: Profile) -> Tensor:
        """NTK between two sets of points, for every pair of a stack. Shape (n_sets, n, m)."""
        (n_sets, n), m = left.directions.shape[:2], right.directions.shape[1]
        matrices = left.directions.new_empty(n_sets, n, m)
        for sets in _groups(n_sets, n * m, matrices.device):
            matrices[sets] = pairs(self.network, left[sets], right[sets], "ntk")
        return matrices

    def _gram(self, points: Profile, kind: Kind) -> Tensor:
        matrix = uninitialised(points.directions, len(points), len(points))
        height, _ = tile_shape(matrix.device)

        def fill(rows: slice) -> None:
            with _tiles(self.network, kind) as tile:
                for part, block in tile.up_to_diagonal(points, rows):
                    matrix[rows, part] = block
                    matrix[part, rows] = block.T

        finish(on_all_cores(fill, reversed(_slices(len(points), height)), matrix.device))
        return matrix

    def _cross(self, left: Profile, right: Profile, kind: Kind) -> Tensor:
        matrix = uninitialised(left.directions, len(left), len(right))
        height, width = tile_shape(matrix.device)

        def fill(rows: slice) -> None:
            here = left[rows]
            with _tiles(self.network, kind) as tile:
                for part in _slices(len(right), width):
                    matrix[rows, part] = tile(here, right[part])

        finish(on_all_cores(fill, _slices(len(left), height), matrix.device))
        return matrix

    def _product(self, left: Profile, right: Profile, columns: Tensor, kind: Kind) -> Tensor:
        rows_of_result = columns.new_zeros(columns.shape[1], len(left))  # transposed: twice as fast for few columns
        height, width = tile_shape(columns.device)
        pieces = [(right[part], columns[part].T.contiguous()) for part in _slices(len(right), width)]

        def add_up(rows: slice) -> None:
            here = left[rows]
            with _tiles(self.network, kind) as tile:
                for there, values in pieces:
                    rows_of_result[:, rows].addmm_(values, tile(here, there).T)

        finish(on_all_cores(add_up, _slices(len(left), height), columns.device))
        return rows_of_result.T


def _groups(n_sets: int, pairs_of_a_set: int, device: torch.device) -> list[slice]:
    """As many sets at a time as the temporaries' budget holds."""
    size = max(1, math.prod(tile_shape(device)) // pairs_of_a_set)
    return [slice(start, start + size) for start in range(0, n_sets, size)]
