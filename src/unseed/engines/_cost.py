"""What the engines take: operations, for whoever has rates of a machine, and memory, before anything is allocated."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch
from joblib import effective_n_jobs

from unseed._machine import available_bytes, gigabytes
from unseed._resampling import Plan
from unseed._solvers import Training, Work
from unseed.engines._cohorts import Cohorts
from unseed.engines._tangent import POINTS_AT_A_TIME
from unseed.engines._task import Task
from unseed.engines._trials import NetworkRates
from unseed.errors import NotEnoughMemoryError
from unseed.networks import NetworkBatch

LARGE_ROWS = 4096
"""From so many rows on, all cores factorise a system together, one after the other: the fastest way where they are free."""

_BYTES = 8  # float64


@dataclass(frozen=True)
class Memory:
    """What a plan holds at its peak, and what would fit where that does not.

    Parameters
    ----------
    bytes : int, or function of n_jobs
    words : str
        Who needs them; the amount stands in place of ``{}``.
    remedy : function of the bytes that are available, or None
        Names something that fits. Without it a plan that needs more than there is is begun all the same.

    Examples
    --------
    >>> Memory(8 * 1000**2, "1,000 rows need {}").needed()
    8000000
    """

    bytes: int | Callable[[int | None], int]
    words: str = "training needs {}"
    remedy: Callable[[int], str] | None = None

    def needed(self, n_jobs: int | None = None) -> int:
        """Bytes, with so many workers."""
        return self.bytes(n_jobs) if callable(self.bytes) else self.bytes

    def shortage(self, device: torch.device, n_jobs: int | None = None) -> str | None:
        """Why it does not fit, and what would; None where it fits."""
        needed, available = self.needed(n_jobs), available_bytes(device)
        if needed <= available:
            return None
        remedy = "use fewer rows or a smaller network" if self.remedy is None else self.remedy(available)
        return f"{self.words.format(gigabytes(needed))} and {gigabytes(available)} are available; {remedy}"

    def check(self, device: torch.device, n_jobs: int | None = None) -> None:
        """Refuse what cannot fit, where something is known that can."""
        lack = self.shortage(device, n_jobs)
        if lack is not None and self.remedy is not None:
            raise NotEnoughMemoryError(lack)


Influence = Callable[[int], Sequence[Work]]
Posterior = Callable[[int, int], Sequence[Work]]


@dataclass(frozen=True)
class Cost:
    """What it takes to train the networks of a plan and to ask them.

    Parameters
    ----------
    fitting : sequence of Work
    predicting : function of the number of points
        Work of every network's predictions.
    memory : Memory
        At the peak of fitting.
    influence : function of the number of points
        Work of influence values, beyond that of predictions.
    posterior : function of the number of points and of rows that are checked
        The same of posterior variances.
    trials : mapping of name to function
        Rates of the engine's own: each function times itself on a few rows and returns the seconds of one unit, a function of
        the work's sizes, or an object whose attributes are such; ``Work("name", ...)`` or ``Work("name.attribute", ...)`` is
        priced by it.
    assumed : str
        A number that only the data know.

    Examples
    --------
    >>> def predicting(points):
    ...     return [Work("entry", (1000, points))]
    >>> cost = Cost([Work("my pass", (1000,))], predicting, Memory(8000), trials={"my pass": lambda: 1e-6})
    >>> cost.predicting(10)
    [Work(rate='entry', sizes=(1000, 10), times=1.0, asked_by='', at_most=False)]
    """

    fitting: Sequence[Work]
    predicting: Callable[[int], Sequence[Work]]
    memory: Memory
    influence: Influence = lambda points: ()
    posterior: Posterior = lambda points, checked: ()
    trials: Mapping[str, Callable[[], object]] = field(default_factory=dict)
    assumed: str = ""


def kernel_cost(task: Task, plan: Plan, training: Training, copies: int, *, is_mixed: bool) -> Cost:
    """Gram matrices, a system for each replicate, and one pass over the cross-kernel."""
    n, sizes, shares = len(task.X), plan.distinct_rows, shares_one_gram(plan)
    fitting = [Work("gram", (m,)) for m in ([n] if shares else sizes)]
    fitting += [Work("cut", (m, m)) for m in sizes if shares and m < n]
    for r, m in enumerate(sizes):
        if is_mixed and r not in plan.reference:  # their factors are in float64
            fitting.append(Work("solvers.mixed", (m,), asked_by="precision='mixed'"))
        else:
            fitting += training.closed_form_work(m, task.labels.shape[2])
    return Cost(
        [*fitting, Work("task", (len(sizes),))],
        lambda points: [Work("row", (points,)), Work("entry", (n, points))],
        kernel_memory(plan, copies),
        influence=lambda points: [whitening(2 * points, n)],
        posterior=lambda points, checked: [Work("entry", (n, points)), whitening(points + checked, n)],
    )


def linearized_cost(task: Task, plan: Plan, batch: NetworkBatch, training: Training) -> Cost:
    """A tangent kernel and a system for each replicate, whose factors are there for whatever else is asked."""
    sizes, columns = plan.distinct_rows, task.labels.shape[1]
    solving = [work for n in sizes for work in training.closed_form_work(n * batch.n_outputs, columns)]
    return Cost(
        [Work("network.start", (len(sizes),)), *(Work("network.tangent", (n, n)) for n in sizes), *solving],
        lambda points: [Work("network.tangent", (n, points)) for n in sizes],
        network_memory(batch, plan, 1, 8),
        *_linearised(len(task.X), batch.n_outputs, []),
        trials={"network": lambda: NetworkRates.measure(task, batch)},
    )


def network_cost(cohorts: Cohorts) -> Cost:
    """Networks that are trained, some replicates together; the one on all rows is linearised where it is asked."""
    task, plan, batch, n_groups = cohorts.task, cohorts.plan, cohorts.batch, cohorts.n_groups
    n, k, sizes, trainer = len(task.X), batch.n_outputs, plan.distinct_rows, cohorts.trainer
    return Cost(
        [Work("network.start", (len(sizes),)), *(n_groups * work for m in sizes for work in trainer.network_work(m, k))],
        lambda points: [Work("network.forward", (n_groups, points, len(sizes)))],
        network_memory(batch, plan, n_groups, cohorts.dtype.itemsize),
        *_linearised(n, k, [Work("network.tangent", (n, n)), Work("factorisation", (n * k,))]),
        trials={"network": lambda: NetworkRates.measure(task, batch, cohorts)},
    )


def _linearised(n_rows: int, n_outputs: int, factor: list[Work]) -> tuple[Influence, Posterior]:
    """Of influence values at all points at once; of a posterior at a few at a time, each time with the signals of all rows."""
    size = n_rows * n_outputs

    def crossing(points: int, at_a_time: int) -> list[Work]:
        signals = n_rows * math.ceil(points / at_a_time)
        return [*factor, Work("network.tangent.pair", (n_rows, points)), Work("network.tangent.row", (signals,))]

    return (
        lambda points: [*crossing(points, max(1, points)), whitening(2 * points, size)],
        lambda points, checked: [*crossing(points, POINTS_AT_A_TIME), whitening(points + checked, size)],
    )


def whitening(columns: int, size: int) -> Work:
    """A triangular solve; a whole solve is two."""
    return Work("multiplication", (columns, size, size), 0.5)


def kernel_memory(plan: Plan, copies: int = 0) -> Memory:
    """Of the n-by-n matrices alive at once: the shared Gram matrix, the factors kept, and those being made.

    A factor takes the place of its kernel matrix; ``copies`` is the number of matrices that a solver needs beside it: none for
    a Cholesky factor on a CPU and one on a GPU, four for an eigendecomposition. Measured peaks lie within a third of it.
    """
    words = f"{plan.n_rows:,} rows need {{}} for their kernel matrices"
    return Memory(partial(_bytes_of_matrices, plan, copies), words, partial(_more_batches, plan.n_rows))


def network_memory(batch: NetworkBatch, plan: Plan, n_groups: int, bytes_per_number: int) -> Memory:
    """Parameters of all networks, what training one replicate's networks holds, and their tangent kernel.

    Of a torch module the activations are not known, and not counted; what is, is no reason to refuse it.
    """
    rows, n_networks = max(plan.distinct_rows), len(plan.counts)

    def needed(batch: NetworkBatch) -> int:
        # starts and trained parameters, and a few copies while a replicate's networks train
        parameters = batch.n_parameters * ((1 + n_groups) * n_networks + 4 * n_groups)
        activations = 6 * n_groups * rows * batch.activations_per_row
        return bytes_per_number * (parameters + activations) + 3 * _BYTES * (rows * batch.n_outputs) ** 2

    if batch.width is None:
        return Memory(needed(batch), f"{plan.n_rows:,} rows need {{}}")

    def narrower(available: int) -> str:
        width = batch.width or 1
        while width > 1 and needed(batch.resized(width)) > available / 2:
            width //= 2
        return f"a width of {width:,} needs {gigabytes(needed(batch.resized(width)))}"

    return Memory(needed(batch), f"{n_networks} networks of width {batch.width:,} on {rows:,} rows need {{}}", narrower)


def shares_one_gram(plan: Plan) -> bool:
    """Whether one Gram matrix of all rows is cheaper than one per replicate (it is not for disjoint batches)."""
    return sum(rows**2 for rows in plan.distinct_rows) > plan.n_rows**2


def systems_at_a_time(n_tasks: int, n_jobs: int | None, largest: int = 0) -> int:
    """Systems at a time: as many as asked for; of oneself as many as there are cores, unless one system needs them all."""
    asked, cores = int(effective_n_jobs(n_jobs)), torch.get_num_threads()
    return asked if asked > 1 else (cores if cores <= n_tasks and largest < LARGE_ROWS else 1)


def _bytes_of_matrices(plan: Plan, copies: int, n_jobs: int | None) -> int:
    n_rows, distinct = plan.n_rows, plan.distinct_rows
    kept = sum(distinct[r] ** 2 for r in plan.reference)
    shares = shares_one_gram(plan)
    made = [rows for r, rows in enumerate(distinct) if not shares or r not in plan.reference]
    at_once = min(systems_at_a_time(len(distinct), n_jobs, max(made)), len(distinct))
    making = at_once * (1 + copies) * max(made) ** 2
    if not shares:
        return _BYTES * (kept + making - max(made) ** 2)
    # cut out of the matrix that becomes the factor of all rows
    return _BYTES * (n_rows**2 + max(making, kept - n_rows**2 + copies * n_rows**2))


def _more_batches(n_rows: int, available: int) -> str:
    """Batching that half of what is available is enough for."""

    def needed(n_batches: int) -> int:
        return _BYTES * (n_batches + 1) * (-(-n_rows // n_batches)) ** 2

    n_batches = 2
    while needed(n_batches) > available / 2 and n_batches < n_rows // 2:
        n_batches *= 2
    return (
        f"interval=Batching(batches={n_batches}) solves blocks of {-(-n_rows // n_batches):,} rows "
        f"and needs {gigabytes(needed(n_batches))}"
    )
