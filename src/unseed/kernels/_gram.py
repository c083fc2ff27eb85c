"""Kernel matrices and their products, tile by tile: small temporaries, and half the work where a matrix is symmetric."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from unseed._expectations import ShallowProduct
from unseed._expectations._scratch import TILE_NUMBERS, Scratch, borrowed_scratch
from unseed._machine import uninitialised
from unseed._threads import on_all_cores
from unseed.kernels._fused import can_fuse, fused_gram, fused_pairs
from unseed.kernels._recursion import Kind, Profile, expectations_of, is_shallow, pairs, profile
from unseed.networks import MLP

TEMPORARIES = 16
"""Numbers held for each pair of a tile while its kernel is computed, at most; ReLU and erf hold eleven."""

CPU_TEMPORARY_BYTES, GPU_TEMPORARY_BYTES = 8 * TEMPORARIES * TILE_NUMBERS, 2 << 30
"""All that a tile's temporaries may take: for each thread of a CPU, and on a GPU."""

_CPU_ROWS, _GPU_ROWS = 256, 4096
_FEWEST_SHARES, _MOST_SHARES, _SHARES_BYTES = 8, 64, 1 << 28  # of a product with a symmetric matrix


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
        if not right_ends_with_left and (values := fused_pairs(self.network, left, right, self.kind)) is not None:
            return values
        return pairs(self.network, left, right, self.kind, self.scratch, right_ends_with_left=right_ends_with_left)

    def times(self, left: Profile, right: Profile, columns: Tensor, short_cut: ShallowProduct | None) -> Tensor:
        """Kernels of all pairs times the columns of the points on the right. Shape (n, c)."""
        if short_cut is not None:
            self.scratch.reset()
            return short_cut.times(left.directions, left.layers[0].variance, self.scratch)
        values = self(left, right)
        if columns.device.type == "cpu":  # NumPy's product is faster for few columns
            return torch.from_numpy(values.numpy() @ columns.numpy())
        return values @ columns

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
        if can_fuse(self.network, points, "ntk"):  # every pair twice, which costs less than adding up its tile twice
            return self._product(points, points, columns, "ntk")
        height, _ = tile_shape(columns.device)
        strips = _slices(len(points), height)

        def add_up(some: list[slice]) -> Tensor:
            """What tiles left of the diagonal, and those on it, add to the result at their rows and at their columns."""
            added = torch.zeros_like(columns)
            with _tiles(self.network, "ntk") as tile:
                for rows in some:
                    for part, block in tile.up_to_diagonal(points, rows):
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

    def ntk_grams(self, points: Profile) -> Tensor:
        """NTK of every set of a stack with itself. Shape (n_sets, n, n)."""
        if (fused := fused_gram(self.network, points, "ntk")) is not None:
            return fused
        n_sets, n = points.directions.shape[:2]
        matrices = points.directions.new_empty(n_sets, n, n)
        for sets in _groups(n_sets, n * n, matrices.device):
            matrices[sets] = pairs(self.network, points[sets], points[sets], "ntk", right_ends_with_left=True)
        return matrices

    def ntk_crosses(self, left: Profile, right: Profile) -> Tensor:
        """NTK between two sets of points, for every pair of a stack. Shape (n_sets, n, m)."""
        if (fused := fused_pairs(self.network, left, right, "ntk")) is not None:
            return fused
        (n_sets, n), m = left.directions.shape[:2], right.directions.shape[1]
        matrices = left.directions.new_empty(n_sets, n, m)
        for sets in _groups(n_sets, n * m, matrices.device):
            matrices[sets] = pairs(self.network, left[sets], right[sets], "ntk")
        return matrices

    def _gram(self, points: Profile, kind: Kind) -> Tensor:
        if (fused := fused_gram(self.network, points, kind)) is not None:
            return fused
        matrix = uninitialised(points.directions, len(points), len(points))
        height, _ = tile_shape(matrix.device)

        def fill(rows: slice) -> None:
            with _tiles(self.network, kind) as tile:
                for part, block in tile.up_to_diagonal(points, rows):
                    matrix[rows, part] = block
                    matrix[part, rows] = block.T

        on_all_cores(fill, reversed(_slices(len(points), height)), matrix.device)  # long strips first
        return matrix

    def _cross(self, left: Profile, right: Profile, kind: Kind) -> Tensor:
        if (fused := fused_pairs(self.network, left, right, kind)) is not None:
            return fused
        matrix = uninitialised(left.directions, len(left), len(right))
        height, width = tile_shape(matrix.device)

        def fill(rows: slice) -> None:
            here = left[rows]
            with _tiles(self.network, kind) as tile:
                for part in _slices(len(right), width):
                    matrix[rows, part] = tile(here, right[part])

        on_all_cores(fill, _slices(len(left), height), matrix.device)
        return matrix

    def _product(self, left: Profile, right: Profile, columns: Tensor, kind: Kind) -> Tensor:
        height, width = tile_shape(columns.device)
        parts = [(right[part], columns[part]) for part in _slices(len(right), width)]
        result = columns.new_zeros(len(left), columns.shape[1])

        def short_cut(part: tuple[Profile, Tensor]) -> ShallowProduct | None:
            make = expectations_of(self.network).shallow_product
            if make is None or not is_shallow(self.network, kind):
                return None
            points, values = part
            w2, b2 = self.network.weight_std**2, self.network.bias_scale**2
            return make(points.directions, points.layers[0].variance, values, w2, b2)

        short_cuts = on_all_cores(short_cut, parts, columns.device)
        if short_cuts[0] is not None:
            height = short_cuts[0].rows_at_a_time(len(left), height)

        def add_up(rows: slice) -> None:
            here = left[rows]
            with _tiles(self.network, kind) as tile:
                for (there, values), short in zip(parts, short_cuts, strict=True):
                    result[rows] += tile.times(here, there, values, short)

        on_all_cores(add_up, _slices(len(left), height), columns.device)
        return result


def _groups(n_sets: int, pairs_of_a_set: int, device: torch.device) -> list[slice]:
    """As many sets at a time as the temporaries' budget holds."""
    size = max(1, math.prod(tile_shape(device)) // pairs_of_a_set)
    return [slice(start, start + size) for start in range(0, n_sets, size)]
