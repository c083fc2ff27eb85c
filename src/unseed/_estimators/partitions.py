"""Rows of Dask arrays and frames, added up where their partitions are: sums come here, and the rows to begin on."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_X_y

from unseed._checks import fault_of
from unseed._estimators.first_look import BEGIN_ROWS, Block, FirstLook, joined
from unseed._estimators.summed import SummedRows
from unseed._machine import resolve_device
from unseed._progress import Progress
from unseed._random import Streams
from unseed._resampling import hashed
from unseed.engines import RowSums
from unseed.errors import InvalidInputError, UnseedError

if TYPE_CHECKING:
    from unseed._estimators.growing import GrowingRegressor

_WAVES, _FEWEST_IN_A_WAVE, _ADDED_AT_ONCE = 20, 16, 4
_SAFE = 8.0  # standard deviations by which more rows of a sample are asked for than are wanted


@dataclass(frozen=True)
class Partitions:
    """Partitions of X and y, pair by pair, as tasks of Dask.

    Attributes
    ----------
    pairs : sequence of (delayed X, delayed y)
    known_sizes : sequence of int, or None
        Rows of each, where they have been looked at before.
    """

    pairs: Sequence[tuple[Any, Any]]
    known_sizes: Sequence[int] | None = None

    @cached_property
    def sizes(self) -> Sequence[int]:
        """Rows of each, every one of which has been found to be usable, on the workers."""
        if self.known_sizes is not None:
            return self.known_sizes
        shapes = self._asked(_shape, [()] * len(self.pairs))
        for fault in (shape for shape in shapes if isinstance(shape, str)):
            raise InvalidInputError(fault)
        full = [(number, shape) for number, shape in enumerate(shapes, 1) if shape[0]]
        if not full:
            raise InvalidInputError("X has no rows in any of its partitions")
        first = full[0]
        for number, shape in full:
            if shape[1:] != first[1][1:]:
                raise InvalidInputError(
                    f"partition {number} has {shape[1]} features and {shape[2]} outputs, and partition {first[0]} has "
                    f"{first[1][1]} and {first[1][2]}"
                )
        return [shape[0] for shape in shapes]

    @property
    def n_rows(self) -> int:
        """Of all partitions."""
        return sum(self.sizes)

    @property
    def starts(self) -> list[int]:
        """Position of the first row of each."""
        return [int(start) for start in np.cumsum([0, *self.sizes[:-1]])]

    def rows(self, places: Sequence[int] | None = None) -> tuple[Any, Any]:
        """Rows of some partitions, or all, here."""
        places = [place for place, size in enumerate(self.sizes) if size] if places is None else places
        found = _computed(part for place in places for part in self.pairs[place])
        return _stacked(found[::2]), _stacked(found[1::2])

    def example(self) -> tuple[Any, Any]:
        """One row, with the names of its columns."""
        place = next(place for place, size in enumerate(self.sizes) if size)
        X, y = _computed(_task(_head, part) for part in self.pairs[place])
        return X, y

    def first_look(self, seed: int) -> FirstLook:
        """What `FirstLook` sees of all rows."""
        share = (BEGIN_ROWS + _SAFE * BEGIN_ROWS**0.5) / self.n_rows
        looks = self._asked(_look, [(start, seed, share) for start in self.starts])
        first = joined(look[0] for look in looks)
        sample, hashes = joined(look[1] for look in looks), np.concatenate([look[2] for look in looks])
        lowest = np.sort(hashes.argsort(kind="stable")[:BEGIN_ROWS])
        return FirstLook(seed, self.n_rows, first, (sample[0][lowest], sample[1][lowest]), hashes[lowest])

    def added_to(self, summed: SummedRows, progress: Progress) -> SummedRows:
        """Sums with all rows, added up on the workers in a tree."""
        begun = _sent(replace(summed, sums=summed.sums.before(0)))
        total = summed.sums
        with progress.steps("adding partitions", len(waves(len(self.pairs)))) as step:
            for places in waves(len(self.pairs)):
                parts = [
                    _task(_sums, place + 1, *self.pairs[place], begun, summed.sums.n_rows + self.starts[place])
                    for place in places
                ]
                while len(parts) > 1:
                    groups = (parts[at : at + _ADDED_AT_ONCE] for at in range(0, len(parts), _ADDED_AT_ONCE))
                    parts = [_task(_added, *group) for group in groups]
                total = total + _computed(parts)[0]
                step()
        return replace(summed, sums=total)

    def _asked(self, function: Callable[..., Any], options: Sequence[tuple[Any, ...]]) -> list[Any]:
        pairs = enumerate(zip(self.pairs, options, strict=True), 1)
        return _computed(_task(function, number, *pair, *own) for number, (pair, own) in pairs)


def waves(n_partitions: int) -> list[range]:
    """Partitions that are added up before their sum comes here: in some twenty steps, so that one can see how far it is.

    Examples
    --------
    >>> waves(20)
    [range(0, 16), range(16, 20)]
    """
    size = max(_FEWEST_IN_A_WAVE, -(-n_partitions // _WAVES))
    return [range(start, min(start + size, n_partitions)) for start in range(0, n_partitions, size)]


def partitions_of(X: Any, y: Any) -> Partitions | None:
    """Of Dask arrays and frames; None where X and y are something else."""
    is_dask = [type(values).__module__.split(".")[0] in ("dask", "dask_expr") for values in (X, y)]
    if not any(is_dask):
        return None
    if not all(is_dask):
        here, there = ("X", "y") if is_dask[1] else ("y", "X")
        raise InvalidInputError(f"{there} is a collection of Dask and {here} is not: give both as arrays or frames of Dask")
    for name, values in (("X", X), ("y", y)):
        if np.isnan([size for sizes in getattr(values, "chunks", ()) for size in sizes]).any():
            raise InvalidInputError(
                f"{name} is a Dask array whose chunk sizes are not known: call {name} = {name}.compute_chunk_sizes() first, or "
                "give the frame itself"
            )
    of_x, of_y = (_tasks(values) for values in (X, y))
    known = [values.chunks[0] for values in (X, y) if hasattr(values, "chunks")]
    if len(of_x) != len(of_y) or len(set(known)) == 2:
        x_rows, y_rows = (f"rows {values.chunks[0]}" if hasattr(values, "chunks") else "rows" for values in (X, y))
        raise InvalidInputError(
            f"X and y are cut at different rows ({len(of_x)} partitions of {x_rows:.60}, {len(of_y)} of {y_rows:.60}): call "
            "y = y.rechunk(...) or y.repartition(...) so that partitions go together"
        )
    return Partitions(list(zip(of_x, of_y, strict=True)))


def fit_partitions(estimator: GrowingRegressor, partitions: Partitions) -> GrowingRegressor:
    """As `fit` with all rows; few rows come here."""
    estimator._begin()
    streams, device = Streams.from_random_state(estimator.random_state), resolve_device(estimator.device)
    solver = estimator._solver_of_many(partitions.n_rows, device)
    if solver is None:
        return estimator.fit(*partitions.rows())
    estimator._checked(*partitions.example(), None)
    estimator.__dict__.pop("_unit", None)  # partitions are added up in the user's
    progress = estimator._progress()
    begun = estimator._begun(solver, partitions.first_look(streams.seed), streams, device, progress)
    estimator._summed, estimator.solver_ = partitions.added_to(begun, progress), begun.solver
    estimator._changed()
    estimator.is_fitted_ = True
    return estimator


def grow_by_partitions(estimator: GrowingRegressor, partitions: Partitions) -> GrowingRegressor:
    """As `partial_fit`; where there are no sums yet, as many partitions come here as it takes to begin."""
    before = dict(vars(estimator))
    try:
        return _grown(estimator, partitions)
    except BaseException:  # whatever it is, the model is the one before, and not one of some partitions
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


def _grown(estimator: GrowingRegressor, partitions: Partitions) -> GrowingRegressor:
    sizes = partitions.sizes  # all are looked at before one is used
    if "is_fitted_" in vars(estimator):
        estimator._checked(*partitions.example(), estimator._outputs_before())
    places = [place for place, size in enumerate(sizes) if size]
    while places and (estimator._summed is None or "is_fitted_" not in vars(estimator)):
        estimator.partial_fit(*partitions.rows([places.pop(0)]))
    if places:
        rest = Partitions([partitions.pairs[place] for place in places], [sizes[place] for place in places])
        assert estimator._summed is not None
        estimator._summed = rest.added_to(estimator._summed, estimator._progress())
        estimator._changed()
    return estimator


def _task(function: Callable[..., Any], *arguments: Any) -> Any:
    """A call that a worker makes."""
    from dask.delayed import delayed

    return delayed(function)(*arguments)


def _sent(value: object) -> Any:
    """An object that goes to every worker that needs it, once."""
    from dask.delayed import delayed

    return delayed(value, traverse=False)


def _computed(tasks: Iterable[Any]) -> list[Any]:
    """Their results, by the scheduler that is active."""
    from dask.base import compute

    run: Callable[..., Sequence[Any]] = compute
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        try:
            return list(run(*tasks))
        except _given_up() as error:
            raise UnseedError(
                f"workers of the cluster died again and again while they had {error.task}, which is most often a lack of "
                "memory: cut X and y into smaller partitions, or give every worker more memory"
            ) from error


def _given_up() -> Any:
    """What a scheduler raises about a task whose workers die; with Dask alone there is none."""
    try:
        from distributed.scheduler import KilledWorker
    except ImportError:
        return ()
    return KilledWorker


def _tasks(values: Any) -> list[Any]:
    if getattr(values, "ndim", 1) == 2 and hasattr(values, "rechunk"):
        values = values.rechunk({1: -1})
    return list(np.ravel(values.to_delayed()))


def _checked(number: int, X: Any, y: Any) -> Block:
    """Arrays of a partition, on the worker that has it."""
    if len(X) != len(y):
        raise InvalidInputError(
            f"partition {number} has {len(X)} rows of X and {len(y)} of y: cut both at the same rows (repartition, rechunk)"
        )
    if not len(X):
        return np.empty((0, *X.shape[1:])), np.empty((0, 1 if y.ndim == 1 else y.shape[1]))
    given = X, y
    try:
        X, y = check_X_y(X, y, dtype=np.float64, multi_output=True, y_numeric=True)
    except ValueError as error:
        raise InvalidInputError(f"partition {number}: {fault_of(*given, error)}") from error
    return X, np.asarray(y, dtype=np.float64).reshape(len(y), -1)


def _shape(number: int, X: Any, y: Any) -> tuple[int, int, int] | str:
    """Rows, features and outputs, or what is wrong with them: of several bad partitions the first shall be named."""
    try:
        X, y = _checked(number, X, y)
    except InvalidInputError as error:
        return str(error)
    return len(X), X.shape[1], y.shape[1]


def _look(number: int, X: Any, y: Any, start: int, seed: int, share: float) -> tuple[Block, Block, Any]:
    """First rows of all, if there are any among these, and rows with hashes below ``share``."""
    X, y = _checked(number, X, y)
    hashes = hashed(np.arange(start, start + len(X)), seed, "rows to begin on")
    chosen, n_first = hashes < share, max(0, BEGIN_ROWS - start)
    return (X[:n_first], y[:n_first]), (X[chosen], y[chosen]), hashes[chosen]


def _sums(number: int, X: Any, y: Any, begun: SummedRows, start: int) -> RowSums:
    at = replace(begun, sums=begun.sums.before(start))
    return at.plus(*_checked(number, X, y)).sums.without_spaces()


def _added(*parts: RowSums) -> RowSums:
    return reduce(RowSums.__add__, parts)


def _head(part: Any) -> Any:
    return part[:1]


def _stacked(parts: Sequence[Any]) -> Any:
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    import pandas as pd

    return pd.concat(parts)
