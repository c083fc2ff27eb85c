"""What a first look at all rows keeps of them, and on which of these a model begins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from unseed._resampling import hashed
from unseed._results import FloatArray

BEGIN_ROWS = 10_000
"""Rows on which units, network and landmarks are chosen."""

Block = tuple[FloatArray, FloatArray]

_LOOKED_AT = 1 << 16  # rows at a time
_CONSTANT = 1e-12  # standard deviation, over the largest value, of a column that is one number
_UNLIKE = 8.0  # standard errors by which a mean of the first rows may differ from that of some others


@dataclass(frozen=True)
class FirstLook:
    """How many rows came by, the first ones, and a random sample of all: always the same, however the rows were cut up.

    Attributes
    ----------
    seed : int
        Of the sample.
    n_rows : int
    first, sample : tuple of arrays (m, d) and (m, k), or None before the first row
    hashes : array of shape (m,)
        Of the rows of the sample: the smallest of all, in the order of the rows.
    """

    seed: int
    n_rows: int = 0
    first: Block | None = None
    sample: Block | None = None
    hashes: FloatArray | None = None

    def plus(self, X: FloatArray, y: FloatArray) -> Self:
        """With further rows (n, d) and labels (n, k)."""
        look = self
        for start in range(0, len(X), _LOOKED_AT):
            look = look._plus_some(X[start : start + _LOOKED_AT], y[start : start + _LOOKED_AT])
        return look

    def rows(self) -> Block:
        """On which a model begins: the first ones, or, where these are unlike the others, the sample.

        On the first rows a model begins the same way whether all rows are there or come in pieces. Rows that are sorted, or
        drift, would mislead it, so the first ones are compared with the sample, column by column, in mean and mean square.
        """
        assert self.first is not None
        assert self.sample is not None
        is_unlike = self.n_rows > BEGIN_ROWS and _differ(np.column_stack(self.first), np.column_stack(self.sample))
        return self.sample if is_unlike else self.first

    def _plus_some(self, X: FloatArray, y: FloatArray) -> Self:
        hashes = hashed(np.arange(self.n_rows, self.n_rows + len(X)), self.seed, "rows to begin on")
        before = np.empty(0) if self.hashes is None else self.hashes
        lowest = np.sort(np.concatenate([before, hashes]).argsort(kind="stable")[:BEGIN_ROWS])
        old, new = lowest[lowest < len(before)], lowest[lowest >= len(before)] - len(before)
        first = self.first
        if first is None or len(first[0]) < BEGIN_ROWS:
            missing = BEGIN_ROWS - (0 if first is None else len(first[0]))
            first = _joined(first, slice(None), (X[:missing], y[:missing]))
        sample = _joined(self.sample, old, (X[new], y[new]))
        return type(self)(self.seed, self.n_rows + len(X), first, sample, np.concatenate([before[old], hashes[new]]))


def joined(blocks: Iterable[Block]) -> Block:
    """All rows of some blocks."""
    X, y = zip(*blocks, strict=True)
    return np.concatenate(X), np.concatenate(y)


def _joined(before: Block | None, rows: slice | npt.NDArray[np.int64], further: Block) -> Block:
    own = (further[0].copy(), further[1].copy())
    return own if before is None else joined([(before[0][rows], before[1][rows]), own])


def _differ(few: FloatArray, some: FloatArray) -> bool:
    varies = some.std(axis=0) > _CONSTANT * np.abs(some).max(axis=0)
    few, some = few[:, varies], some[:, varies]
    centred, spread = few - some.mean(axis=0), some.std(axis=0)
    moments = np.stack([centred.mean(axis=0) / spread, (centred**2).mean(axis=0) / spread**2 - 1])
    fourth = (((some - some.mean(axis=0)) / spread) ** 4).mean(axis=0)
    errors = np.sqrt(2 / BEGIN_ROWS * np.stack([np.ones_like(fourth), np.maximum(fourth, 1)]))
    return bool((np.abs(moments) > _UNLIKE * errors).any())
