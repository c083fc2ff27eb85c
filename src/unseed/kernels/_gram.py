"""Kernel matrices and their products, tile by tile: small temporaries, and half the work where a matrix is symmetric."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from unseed._expectations._scratch import TILE_NUMBERS, Scratch, borrowed_scratch
from unseed._machine import uninitialised
from unseed._threads import on_all_cores
from unseed.kernels._fused import can_fuse, fused_pairs
from unseed.kernels._recursion import Kind, Profile, expectations_of, is_shallow, pairs, profile
from unseed.networks import MLP

_TILES = ((256, TILE_NUMBERS // 256), (4096, 4096))
"""Rows and columns of a tile, on a CPU and on a GPU. At most 16 numbers are held for each of its pairs (ReLU: eleven)."""

CPU_TEMPORARY_BYTES, GPU_TEMPORARY_BYTES = (8 * 16 * math.prod(shape) for shape in _TILES)
"""All that a tile's temporaries may take: for each thread of a CPU, and on a GPU."""

_PAIRS_AT_A_TIME = 64
_FEWEST_SHARES, _MOST_SHARES, _SHARES_BYTES = 8, 64, 1 << 28  # of a product with a symmetric matrix


def _slices(length: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]


@dataclass(frozen=True)
class PopulationKernel:
    """NTK and NNGP of an infinitely wide network, as matrices.

    Where a stack of data sets of one size is profiled, (n_sets, n, d), the matrices are stacks too.
    """

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

    def ntk_paired(self, left: Profile, right: Profile) -> Tensor:
        """NTK of points taken pair by pair, from small blocks around the diagonal. Shape (n,)."""
        return torch.cat([self.ntk_cross(left[rows], right[rows]).diagonal() for rows in _slices(len(left), _PAIRS_AT_A_TIME)])

    def ntk_product(self, left: Profile, right: Profile, columns: Tensor) -> Tensor:
        """Θ(left, right) @ columns without the matrix. Shape (n, c)."""
        return self._product(left, right, columns, "ntk")

    def nngp_product(self, left: Profile, right: Profile, columns: Tensor) -> Tensor:
        """Σ(left, right) @ columns without the matrix. Shape (n, c)."""
        return self._product(left, right, columns, "nngp")

    def ntk_gram_product(self, points: Profile, columns: Tensor) -> Tensor:
        """Θ(points, points) @ columns without the matrix, every pair computed once. Shape (n, c)."""
        if can_fuse(self.network, points, "ntk"):  # every pair twice, which costs less than adding up its tile twice
            return self._product(points, points, columns, "ntk")
        height, _ = _TILES[columns.is_cuda]
        strips = _slices(len(points), height)

        def add_up(some: list[slice]) -> Tensor:
            """What tiles left of the diagonal, and those on it, add to the result at their rows and at their columns."""
            added = torch.zeros_like(columns)
            with borrowed_scratch() as scratch:
                for rows in some:
                    for part, block in self._up_to_diagonal(points, rows, "ntk", scratch):
                        added[rows].addmm_(block, columns[part])
                        if part != rows:
                            added[part].addmm_(block.T, columns[rows])
            return added

        # Long strips and short ones in every share, each with a result of its own; the longest share first. How many there are
        # depends on sizes only, and they are added up in order, so that no number of threads changes the sum.
        n_shares = min(max(_SHARES_BYTES // (8 * columns.numel() or 1), _FEWEST_SHARES), _MOST_SHARES, len(strips))
        shares = [strips[first::n_shares] for first in reversed(range(n_shares))]
        total = torch.zeros_like(columns)
        for added in on_all_cores(add_up, shares, columns.device):
            total += added
        return total

    def _gram(self, points: Profile, kind: Kind) -> Tensor:
        if (matrix := fused_pairs(self.network, points, points, kind, is_gram=True)) is not None:
            return matrix
        if points.is_stack:
            return self._stack(points, points, kind, is_gram=True)
        matrix = uninitialised(points.directions, len(points), len(points))
        height, _ = _TILES[matrix.is_cuda]

        def fill(rows: slice) -> None:
            with borrowed_scratch() as scratch:
                for part, block in self._up_to_diagonal(points, rows, kind, scratch):
                    matrix[rows, part] = block
                    matrix[part, rows] = block.T

        on_all_cores(fill, reversed(_slices(len(points), height)), matrix.device)  # long strips first
        return matrix

    def _cross(self, left: Profile, right: Profile, kind: Kind) -> Tensor:
        if (matrix := fused_pairs(self.network, left, right, kind)) is not None:
            return matrix
        if left.is_stack:
            return self._stack(left, right, kind)
        matrix = uninitialised(left.directions, len(left), len(right))

        def fill(rows: slice, part: slice, block: Tensor) -> None:
            matrix[rows, part] = block

        self._tile_by_tile(left, right, kind, fill)
        return matrix

    def _product(self, left: Profile, right: Profile, columns: Tensor, kind: Kind) -> Tensor:
        product = expectations_of(self.network).shallow_product
        if product is not None and is_shallow(self.network, kind):
            ends = (of_points for end in (left, right) for of_points in (end.directions, end.layers[0].variance))
            found = product(*ends, columns, self.network.weight_std**2, self.network.bias_scale**2)
            if found is not None:
                return found
        result = columns.new_zeros(len(left), columns.shape[1])

        def add_up(rows: slice, part: slice, block: Tensor) -> None:
            if columns.device.type == "cpu":  # NumPy's product is faster for few columns
                result[rows] += torch.from_numpy(block.numpy() @ columns[part].numpy())
            else:
                result[rows] += block @ columns[part]

        self._tile_by_tile(left, right, kind, add_up)
        return result

    def _tile_by_tile(self, left: Profile, right: Profile, kind: Kind, take: Callable[[slice, slice, Tensor], None]) -> None:
        """Hand over rows, columns and values of every tile between two sets of points; values are gone afterwards."""
        height, width = _TILES[left.directions.is_cuda]

        def visit(rows: slice) -> None:
            here = left[rows]
            with borrowed_scratch() as scratch:
                for part in _slices(len(right), width):
                    take(rows, part, self._tile(here, right[part], kind, scratch))
                    scratch.keep_only()

        on_all_cores(visit, _slices(len(left), height), left.directions.device)

    def _tile(self, left: Profile, right: Profile, kind: Kind, scratch: Scratch) -> Tensor:
        values = fused_pairs(self.network, left, right, kind)
        return pairs(self.network, left, right, kind, scratch) if values is None else values

    def _up_to_diagonal(self, points: Profile, rows: slice, kind: Kind, scratch: Scratch) -> Iterator[tuple[slice, Tensor]]:
        """Columns and values of every tile at some rows of a Gram matrix, from the exactly symmetric one on the diagonal on."""
        here, height = points[rows], rows.stop - rows.start
        _, width = _TILES[points.directions.is_cuda]
        for stop in range(rows.stop, 0, -width):
            part = slice(max(0, stop - width), stop)
            if stop != rows.stop:
                yield part, self._tile(here, points[part], kind, scratch)
            else:
                block = pairs(self.network, here, points[part], kind, scratch, right_ends_with_left=True)
                corner = block[:, -height:]
                yield rows, torch.tril(corner) + torch.tril(corner, -1).T
                yield slice(part.start, rows.start), block[:, :-height]
            scratch.keep_only()

    def _stack(self, left: Profile, right: Profile, kind: Kind, *, is_gram: bool = False) -> Tensor:
        """Matrices of every pair of sets, as many at a time as the temporaries' budget holds. Shape (n_sets, n, m)."""
        (n_sets, n), m = left.directions.shape[:2], right.directions.shape[1]
        matrices = left.directions.new_empty(n_sets, n, m)
        for sets in _slices(n_sets, max(1, math.prod(_TILES[matrices.is_cuda]) // (n * m or 1))):
            matrices[sets] = pairs(self.network, left[sets], right[sets], kind, right_ends_with_left=is_gram)
        return matrices
