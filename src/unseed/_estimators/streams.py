"""Pieces of rows, one after another, each looked at before it is used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass
from typing import Any

from unseed._estimators.first_look import Block
from unseed._pieces import Piece
from unseed._progress import Progress
from unseed.errors import InvalidInputError

_ROWS_AT_A_TIME = 1 << 16  # between two occasions to write down how far one is


@dataclass(frozen=True)
class CheckedPieces:
    """Pieces (X, y) as arrays of float64; an error says which piece is at fault.

    Attributes
    ----------
    pieces : iterable of (X, y)
    check : callable
        Makes arrays of X and y; its third argument is the number of outputs of the pieces before, None for the first piece.
    progress : Progress
    """

    pieces: Iterable[Piece]
    check: Callable[[Any, Any, int | None], Block]
    progress: Progress

    @property
    def can_be_passed_over_again(self) -> bool:
        """A list can, and an object with ``__iter__``; a generator cannot."""
        return not isinstance(self.pieces, Iterator)

    def blocks(self, title: str, start: int = 0) -> Iterator[Block]:
        """Rows from a position on, some at a time, with a bar that is called ``title``."""
        n_outputs, number, position = None, 0, 0
        total = len(self.pieces) if isinstance(self.pieces, Sized) else None
        with self.progress.steps(title, total) as step:
            for number, piece in enumerate(self.pieces, 1):
                try:
                    X, y = _two_parts(piece)
                    X, y = self.check(X, y, n_outputs)
                    n_outputs = y.shape[1]
                    for first in range(max(start - position, 0), len(X), _ROWS_AT_A_TIME):
                        yield X[first : first + _ROWS_AT_A_TIME], y[first : first + _ROWS_AT_A_TIME]
                except ValueError as error:
                    raise InvalidInputError(f"piece {number}: {error}") from error
                position += len(X)
                step()
        if not number:
            raise InvalidInputError("pieces is empty: give at least one piece (X, y)")
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
