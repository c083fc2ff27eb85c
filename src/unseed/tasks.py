"""Joblib tasks whose results are taken one by one, on any backend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from joblib import Parallel, effective_n_jobs
from joblib.parallel import get_active_backend


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
    backend, _ = get_active_backend(prefer=prefer)
    if getattr(backend, "supports_return_generator", False):
        return_as = "generator" if ordered else "generator_unordered"
        yield from Parallel(n_jobs, prefer=prefer, return_as=return_as, pre_dispatch=f"{ahead}*n_jobs")(tasks)
        return
    waiting = iter(tasks)
    with Parallel(n_jobs, prefer=prefer, pre_dispatch="all") as parallel:  # workers stay from wave to wave
        while wave := list(islice(waiting, ahead * effective_n_jobs(n_jobs))):
            yield from parallel(wave)
