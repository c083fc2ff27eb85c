"""Rows that arrive in pieces of any size, regrouped into blocks of one size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from unseed._results import FloatArray
from unseed.errors import InvalidInputError

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


def parquet_pieces(path: str | Path, target: str | list[str], rows: int = 65536) -> Iterator[Piece]:
    """Features and target of a Parquet file, a few rows at a time; needs pyarrow.

    Parameters
    ----------
    path : str or Path
    target : str or list of str
        Columns to predict; all others are features, in the order of the file.
    rows : int
        At a time.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise InvalidInputError("Parquet files need pyarrow; install it with: pip install 'unseed[parquet]'") from error
    try:
        file = pq.ParquetFile(path)
    except (OSError, pa.ArrowException) as error:
        raise InvalidInputError(f"path={str(path)!r} is not a Parquet file that can be read: {error}") from error
    names = [target] if isinstance(target, str) else list(target)
    missing = [name for name in names if name not in file.schema_arrow.names]
    if missing:
        raise InvalidInputError(f"target={missing[0]!r} is not a column of {str(path)!r}; it has {file.schema_arrow.names}")
    features = [name for name in file.schema_arrow.names if name not in names]
    for batch in file.iter_batches(batch_size=rows):
        columns = {name: batch.column(name).to_numpy(zero_copy_only=False) for name in batch.schema.names}
        y = np.column_stack([columns[name] for name in names])
        yield np.column_stack([columns[name] for name in features]), y[:, 0] if isinstance(target, str) else y


def _joined(pieces: list[Block]) -> Block:
    if len(pieces) == 1:
        return pieces[0]
    return np.concatenate([X for X, _ in pieces]), np.concatenate([y for _, y in pieces])


def _split(block: Block, at: int) -> tuple[Block, Block]:
    X, y = block
    return (X[:at], y[:at]), (X[at:], y[at:])
