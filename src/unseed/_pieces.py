"""Rows that arrive in pieces of any size, regrouped into blocks of one size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from unseed._results import FloatArray

Piece = tuple[npt.ArrayLike, npt.ArrayLike]
Block = tuple[FloatArray, FloatArray]


def regrouped(pieces: Iterable[Block], size: int) -> Iterator[Block]:
    """Blocks of ``size`` rows; the last one or two have between three quarters and one and a half times as many.

    Examples
    --------
    >>> pieces = [(np.zeros((rows, 1)), np.zeros((rows, 1))) for rows in (5, 1, 7)]
    >>> [len(X) for X, _ in regrouped(pieces, 4)]
    [4, 4, 5]
    """
    waiting: list[Block] = []
    n_waiting = 0
    for X, y in pieces:
        waiting.append((X, y))
        n_waiting += len(X)
        while n_waiting >= 2 * size:  # so that what is left at the end is never less than a block
            block, rest = _split(_joined(waiting), size)
            waiting, n_waiting = [rest], n_waiting - size
            yield block
    if n_waiting:
        rest = _joined(waiting)
        yield from _split(rest, (n_waiting + 1) // 2) if n_waiting >= 1.5 * size else (rest,)


def _joined(pieces: list[Block]) -> Block:
    if len(pieces) == 1:
        return pieces[0]
    return np.concatenate([X for X, _ in pieces]), np.concatenate([y for _, y in pieces])


def _split(block: Block, at: int) -> tuple[Block, Block]:
    X, y = block
    return (X[:at], y[:at]), (X[at:], y[at:])
