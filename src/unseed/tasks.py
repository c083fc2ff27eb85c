"""Joblib tasks whose results are taken one by one, on any backend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from joblib import Parallel, effective_n_jobs, parallel_config
from joblib.parallel import get_active_backend

from unseed.errors import InvalidInputError

_PATIENCE = 10  # seconds until a scheduler must have answered


def outcomes(
    tasks: Iterable[Any], n_jobs: int | None, *, ahead: int, prefer: str | None = None, ordered: bool = True
) -> Iterator[Any]:
    """Results of tasks while later ones are still running.

    Backends that only return all results at once (Ray, multiprocessing) are given the tasks in waves.

    Parameters
    ----------
    tasks : iterable of joblib.delayed calls
    n_jobs : int or None
    ahead : int
        Tasks for each worker that are taken from the iterable before their results are wanted.
    prefer : {"threads", "processes"} or None
        Where the caller of the library has not chosen a backend.
    ordered : bool
        False allows results to come in the order in which they are ready.

    Examples
    --------
    >>> from joblib import delayed
    >>> list(outcomes((delayed(abs)(i) for i in (-1, -2)), n_jobs=1, ahead=2))
    [1, 2]
    """
    yield from begun(tasks, n_jobs, ahead=ahead, prefer=prefer, ordered=ordered)


def begun(
    tasks: Iterable[Any], n_jobs: int | None, *, ahead: int, prefer: str | None = None, ordered: bool = True
) -> Iterator[Any]:
    """The same, the first of them at work already when this returns, where the backend can do so; all must be taken."""
    backend, _ = get_active_backend(prefer=prefer)
    if not getattr(backend, "supports_return_generator", False):
        return _in_waves(tasks, n_jobs, ahead, prefer)
    return_as = "generator" if ordered else "generator_unordered"
    found: Iterator[Any] = Parallel(n_jobs, prefer=prefer, return_as=return_as, pre_dispatch=f"{ahead}*n_jobs")(tasks)
    return found


def _in_waves(tasks: Iterable[Any], n_jobs: int | None, ahead: int, prefer: str | None) -> Iterator[Any]:
    waiting = iter(tasks)
    with Parallel(n_jobs, prefer=prefer, pre_dispatch="all") as parallel:  # workers stay from wave to wave
        while wave := list(islice(waiting, ahead * effective_n_jobs(n_jobs))):
            yield from parallel(wave)


def shares_memory(n_jobs: int | None) -> bool:
    """Whether tasks run in this process, and can look at one matrix without its being sent to each."""
    backend, _ = get_active_backend(prefer="threads")
    return bool(getattr(backend, "supports_sharedmem", False)) or effective_n_jobs(n_jobs) == 1


@contextmanager
def on_cluster(address: str | None) -> Iterator[None]:
    """Within it tasks go to the workers of a Dask scheduler; of None, where they would have gone.

    Parameters
    ----------
    address : str or None
        Such as ``"tcp://10.0.0.5:8786"``.
    """
    if address is None:
        yield
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise InvalidInputError(f"cluster={address!r} needs Dask; install it with: pip install 'unseed[cluster]'") from error
    try:
        client: Any = Client(address, timeout=_PATIENCE)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise InvalidInputError(
            f"cluster={address!r}: no Dask scheduler answers there; start one with: dask scheduler, and give its address"
        ) from error
    with client, parallel_config(backend="dask"):
        if not effective_n_jobs():
            raise InvalidInputError(f"cluster={address!r} has no workers; start some with: dask worker {address}")
        yield
