"""How many rows are handled: all at once, by iterations over all of them, or summed up in a space of landmarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from unseed._checks import check_number, check_whole_number
from unseed._machine import available_bytes
from unseed.engines._protocol import Engine
from unseed.errors import InvalidInputError

_EXACT_ROWS, _EXACT_ROWS_ON_A_GPU, _ALL_ROWS = 10_000, 30_000, 20_000
"""Up to here ``"auto"`` holds all rows at once, and their matrix where there is memory for it."""

_BYTES_OF_A_PAIR = 4  # of rows; where so much is not free, rows are summed up

_FEWEST_ROWS = 64


@dataclass(frozen=True)
class Exact:
    """All rows at once: an n-by-n matrix, n³/3 operations.

    Examples
    --------
    >>> Exact()
    Exact()
    """


@dataclass(frozen=True)
class Landmarks:
    """Rows are summed up in the space of a few of them: n M² operations, M² numbers, whatever the number of rows.

    Parameters
    ----------
    count : int or None
        Landmarks of each network; fewer where the others add nothing. None has as many as cost about a minute on two cores, or
        a few seconds on a GPU.
    time_budget : float or None
        Seconds that a fit may take, as well as this machine tells in a trial: as many landmarks as that buys. The fitted
        ``solver_`` has their number.

    Examples
    --------
    >>> Landmarks(count=1024)
    Landmarks(count=1024)
    >>> Landmarks(time_budget=600)
    Landmarks(time_budget=600)
    """

    count: int | None = None
    time_budget: float | None = None

    def __post_init__(self) -> None:
        if self.count is not None:
            check_whole_number("count", self.count, at_least=2, reason="one function is no space")
        if self.time_budget is not None:
            check_number("time_budget", self.time_budget, above=0)
            if self.count is not None:
                raise InvalidInputError(
                    f"Landmarks(count={self.count}, time_budget={self.time_budget:g}): either says how many there are: "
                    "give one of them"
                )

    def __repr__(self) -> str:
        return f"Landmarks(count={self.count})" if self.time_budget is None else f"Landmarks(time_budget={self.time_budget:g})"


@dataclass(frozen=True)
class AllRows:
    """The network on all rows, by conjugate gradients; intervals around it are those of landmarks.

    Every iteration computes the kernel of all pairs of rows anew and holds none of it; landmarks keep iterations few, and say
    how much parts of the rows and resamples differ. Rows are held, and a prediction costs a pass over all of them.

    Parameters
    ----------
    tolerance : float
        Of the residual, relative to the labels.
    landmarks : int or None
        Landmarks of each network, as in ``Landmarks(count=...)``.

    Examples
    --------
    >>> AllRows(tolerance=1e-6)
    AllRows(tolerance=1e-06, landmarks=None)
    """

    tolerance: float = 1e-3
    landmarks: int | None = None

    def __post_init__(self) -> None:
        check_number("tolerance", self.tolerance, above=0)
        if self.landmarks is not None:
            check_whole_number("landmarks", self.landmarks, at_least=2, reason="one function is no space")


Solver = Exact | AllRows | Landmarks
SOLVERS: dict[str, type[Solver]] = {"exact": Exact, "all_rows": AllRows, "landmarks": Landmarks}


def landmarks_in_words(sizes: Sequence[int]) -> str:
    """How many there are, space by space.

    Examples
    --------
    >>> [landmarks_in_words(sizes) for sizes in ([1024], [1024, 1024], [1024, 318])]
    ['1,024 landmarks', '2 × 1,024 landmarks', '1,024 + 318 landmarks']
    """
    is_same = len(sizes) > 1 and len(set(sizes)) == 1
    return f"{f'{len(sizes)} × {sizes[0]:,}' if is_same else ' + '.join(f'{size:,}' for size in sizes)} landmarks"


def check_solver(solver: object) -> None:
    """Refuse what is not a way to handle rows."""
    is_name = isinstance(solver, str) and (solver == "auto" or solver in SOLVERS)
    if not is_name and not isinstance(solver, Solver):
        raise InvalidInputError(
            f"solver={solver!r} is not known; use 'auto', 'exact', 'all_rows', 'landmarks' or an object such "
            "as Landmarks(count=...)"
        )


def resolve_solver(solver: str | Solver, engine: Engine, n_rows: int, device: torch.device) -> Solver:
    """What handles so many rows; ``"auto"`` sums up rows that are too many for a matrix, where the engine can."""
    check_solver(solver)
    can_sum = engine.is_infinite and engine.converges
    if isinstance(solver, str) and solver == "auto":
        return _solver_for(n_rows, device) if can_sum else Exact()
    found = SOLVERS[solver]() if isinstance(solver, str) else solver
    if not isinstance(found, Exact) and not can_sum:
        raise InvalidInputError(
            f"solver={solver!r} is for engine='kernel' trained to convergence, and engine={engine} is not; use solver='exact'"
        )
    if not isinstance(found, Exact) and n_rows < _FEWEST_ROWS:
        raise InvalidInputError(
            f"solver={solver!r} draws parts of the rows by their hashes and needs at least {_FEWEST_ROWS}; X has {n_rows}: use "
            "solver='exact'"
        )
    return found


def _solver_for(n_rows: int, device: torch.device) -> Solver:
    """Rows that are too many for a factorisation, or for memory, by iterations; more of them by landmarks."""
    if n_rows <= (_EXACT_ROWS_ON_A_GPU if device.type == "cuda" else _EXACT_ROWS):
        return Exact()
    has_room = n_rows <= _ALL_ROWS and _BYTES_OF_A_PAIR * n_rows**2 <= available_bytes(device)
    return AllRows() if has_room else Landmarks()
