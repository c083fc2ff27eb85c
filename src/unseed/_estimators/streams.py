"""Pieces of rows, one after another, each looked at before it is used."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from unseed._estimators.checkpoint import Checkpoint
from unseed._estimators.first_look import Block, FirstLook, joined
from unseed._machine import resolve_device
from unseed._parquet import Piece
from unseed._progress import Progress
from unseed._random import Streams
from unseed._results import FloatArray
from unseed.engines import AllRows, Exact
from unseed.errors import InvalidInputError

if TYPE_CHECKING:
    from unseed._estimators.growing import GrowingRegressor

_ANEW = "give a list, or an object whose __iter__ begins anew with the same rows"

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
        return f"counted from row {position:,}"


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
                    raise InvalidInputError(f"{self.place(number, position)}: {' '.join(str(error).split())}") from error
                n_outputs = y.shape[1]
                if identity.plus(X, y):
                    self.check_identity(str(identity))
                for first in range(max(start - position, 0), len(X), _ROWS_AT_A_TIME):
                    yield X[first : first + _ROWS_AT_A_TIME], y[first : first + _ROWS_AT_A_TIME]
                position += len(X)
                step()
        if not number:
            raise InvalidInputError(f"pieces is empty: give at least one piece (X, y); {_ANEW}")
        if position < _IDENTITY_ROWS:
            self.check_identity(str(identity))
        if position < start:
            raise InvalidInputError(
                f"the pieces come to {position:,} rows, and {start:,} had been added when the checkpoint was written: give "
                "the same pieces, or another checkpoint"
            )


def check_stream(estimator: GrowingRegressor, rows: str, checkpoint: str | Path | None, instead: str) -> Checkpoint | None:
    """The checkpoint, after what can be refused before a piece is looked at: of ``rows``, which ``instead`` takes at once."""
    solver = estimator.solver
    if isinstance(solver, AllRows) or solver == "all_rows":
        raise InvalidInputError(
            f"solver={solver!r} passes over all rows many times, and {rows} in pieces: use {instead}, or solver='landmarks'"
        )
    if checkpoint is None:
        return None
    if isinstance(solver, Exact) or solver == "exact":
        raise InvalidInputError(
            f"checkpoint={str(checkpoint)!r} would hold sums of rows, and solver={solver!r} makes none: leave it out, or use "
            "solver='landmarks'"
        )
    kept = Checkpoint(checkpoint, type(estimator).__name__, estimator.get_params(deep=False))
    kept.check_model()
    return kept


def add_up(estimator: GrowingRegressor, stream: CheckedPieces, kept: Checkpoint | None = None) -> None:
    """Train on all pieces: those that can be passed over again are looked at first, those that a checkpoint knows are not."""
    begun = time.perf_counter()
    before = None if kept is None else kept.read(resolve_device(estimator.device))
    start = 0
    if before is not None:
        estimator._summed, estimator.solver_ = before
        estimator.n_rows_ = start = before[0].sums.n_rows
    identities: list[str] = []

    def check_identity(rows: str) -> None:
        identities.append(rows)
        if rows != identities[0]:
            estimator._forget()
            raise InvalidInputError(f"the first rows are not those that were looked at before: {_ANEW}")
        if kept is not None:
            kept.check_rows(f"{estimator._names()} {rows}")

    stream, n_seen = replace(stream, check_identity=check_identity), None
    if before is None and stream.can_be_passed_over_again:
        n_seen = _look_at(estimator, stream)
    for X, y in stream.blocks("adding rows", start) if estimator._held is None else ():
        estimator._grow(X, y)
        estimator.is_fitted_ = True
        if kept is not None:
            kept.write_if_due(estimator._summed, estimator.solver_)
    if n_seen not in (None, estimator.n_rows_):
        n_added = estimator.n_rows_
        estimator._forget()
        raise InvalidInputError(f"{n_seen:,} rows were looked at and {n_added:,} added up: {_ANEW}")
    estimator.is_fitted_ = True
    stream.progress.say(f"{estimator.n_rows_:,} rows added up, {start:,} of them before", begun)


def _look_at(estimator: GrowingRegressor, stream: CheckedPieces) -> int:
    """A first pass: what is needed to begin, or all rows where these are few; how many there are."""
    streams, device = Streams.from_random_state(estimator.random_state), resolve_device(estimator.device)
    look, held, solver = FirstLook(streams.seed), list[Block](), None
    for X, y in stream.blocks("looking at rows"):
        look = look.plus(X, y)
        solver = solver or estimator._solver_of_many(look.n_rows, device)
        if solver is None:
            held.append((X.copy(), y.copy()))
        else:
            held.clear()
    if solver is None:
        estimator._held, estimator.n_rows_ = joined(held), look.n_rows
    else:
        begun = estimator._begun(solver, look, streams, device, stream.progress)
        estimator._summed, estimator.solver_ = begun, begun.solver
        estimator.n_rows_ = 0
    return look.n_rows


def _two_parts(piece: Any) -> tuple[Any, Any]:
    try:
        X, y = piece
    except (TypeError, ValueError) as error:
        raise InvalidInputError("a piece should be a pair (X, y)") from error
    return X, y
