"""Pieces of rows, one after another, each looked at before it is used."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from unseed._estimators.first_look import Block
from unseed._parquet import Piece
from unseed._progress import Progress
from unseed._results import FloatArray
from unseed.errors import InvalidInputError

ANEW = "give a list, or an object whose __iter__ begins anew with the same rows"

_IDENTITY_ROWS = 1000
_ROWS_AT_A_TIME = 1 << 16  # between two occasions to write down how far one is


@dataclass(frozen=True)
class ArrayPieces:
    """Rows of two arrays, some at a time: of a memory map no more is in memory than these."""

    X: npt.NDArray[Any]
    y: npt.NDArray[Any]

    def __len__(self) -> int:
        return -(-len(self.X) // _ROWS_AT_A_TIME)

    def __iter__(self) -> Iterator[Piece]:
        for start in range(0, len(self.X), _ROWS_AT_A_TIME):
            rows = slice(start, start + _ROWS_AT_A_TIME)
            yield self.X[rows], self.y[rows]

    @staticmethod
    def place(number: int, position: int) -> str:
        """Where one of them stands."""
        return f"rows {position:,} and after"


class Identity:
    """Fingerprint of the first rows, the same however they are cut into pieces."""

    def __init__(self) -> None:
        self._digests, self._missing = (hashlib.sha256(), hashlib.sha256()), _IDENTITY_ROWS

    def plus(self, X: FloatArray, y: FloatArray) -> bool:
        """See further rows; whether the last of the first ones were among them."""
        if self._missing == 0:
            return False
        for digest, values in zip(self._digests, (X, y), strict=True):
            digest.update(f"{values.shape[1:]}".encode() if self._missing == _IDENTITY_ROWS else b"")
            digest.update(values[: self._missing].tobytes())
        self._missing = max(0, self._missing - len(X))
        return self._missing == 0

    def __str__(self) -> str:
        return " ".join(digest.hexdigest() for digest in self._digests)


@dataclass(frozen=True)
class CheckedPieces:
    """Pieces (X, y) as arrays of float64; an error says which piece is at fault.

    Attributes
    ----------
    pieces : iterable of (X, y)
    check : callable
        Makes arrays of X and y; its third argument is the number of outputs of the pieces before, None for the first piece.
    progress : Progress
    check_identity : callable
        Is told the `Identity` of the rows before those are given that are no longer part of it.
    place : callable
        What a piece is called, by its number and the position of its first row.
    """

    pieces: Iterable[Piece]
    check: Callable[[Any, Any, int | None], Block]
    progress: Progress
    check_identity: Callable[[str], None] = lambda identity: None
    place: Callable[[int, int], str] = lambda number, position: f"piece {number}"

    @property
    def can_be_passed_over_again(self) -> bool:
        """A list can, and an object with ``__iter__``; a generator cannot."""
        return not isinstance(self.pieces, Iterator)

    def blocks(self, title: str, start: int = 0) -> Iterator[Block]:
        """Rows from a position on, some at a time, with a bar that is called ``title``."""
        n_outputs, number, position, identity = None, 0, 0, Identity()
        total = len(self.pieces) if isinstance(self.pieces, Sized) else None
        with self.progress.steps(title, total) as step:
            for number, piece in enumerate(self.pieces, 1):
                try:
                    X, y = self.check(*_two_parts(piece), n_outputs)
                except ValueError as error:
                    raise InvalidInputError(f"{self.place(number, position)}: {error}") from error
                n_outputs = y.shape[1]
                if identity.plus(X, y):
                    self.check_identity(str(identity))
                for first in range(max(start - position, 0), len(X), _ROWS_AT_A_TIME):
                    yield X[first : first + _ROWS_AT_A_TIME], y[first : first + _ROWS_AT_A_TIME]
                position += len(X)
                step()
        if not number:
            raise InvalidInputError(f"pieces is empty: give at least one piece (X, y); {ANEW}")
        if position < _IDENTITY_ROWS:
            self.check_identity(str(identity))
        if position < start:
            raise InvalidInputError(
                f"the pieces come to {position:,} rows, and {start:,} had been added when the checkpoint was written: give "
                "the same pieces, or another checkpoint"
            )


def _two_parts(piece: Any) -> tuple[Any, Any]:
    try:
        X, y = piece
    except (TypeError, ValueError) as error:
        raise InvalidInputError("a piece should be a pair (X, y)") from error
    return X, y
