"""What the engines take, in amounts of operations: whoever has rates of a machine makes seconds of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch

from unseed._resampling import Plan
from unseed._solvers import Training, Work
from unseed.engines._cohorts import Trainer
from unseed.engines._forecast import Memory, kernel_memory, network_memory, shares_one_gram
from unseed.engines._tangent import POINTS_AT_A_TIME
from unseed.engines._task import Task
from unseed.engines._trials import NetworkRates, seconds_of_a_step
from unseed.networks import NetworkBatch

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
    disk : int
        Bytes that are kept in files.
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
    disk: int = 0
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
        influence=lambda points: [_whitening(2 * points, n)],
        posterior=lambda points, checked: [Work("entry", (n, points)), _whitening(points + checked, n)],
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
        trials={"network": lambda: NetworkRates.measure(task, batch, torch.float64)},
    )


def network_cost(
    task: Task, plan: Plan, batch: NetworkBatch, trainer: Trainer, dtype: torch.dtype, at_once: Callable[[int], int]
) -> Cost:
    """Networks that are trained, ``at_once(rows)`` replicates together; the one on all rows is linearised where it is asked."""
    n, k, n_groups, sizes = len(task.X), batch.n_outputs, task.labels.shape[1], plan.distinct_rows
    step = partial(seconds_of_a_step, task, plan, batch, trainer, at_once, n_groups)
    return Cost(
        [Work("network.start", (len(sizes),)), *(n_groups * work for m in sizes for work in trainer.network_work(m, k))],
        lambda points: [Work("network.forward", (n_groups, points, len(sizes)))],
        network_memory(batch, plan, n_groups, dtype.itemsize),
        *_linearised(n, k, [Work("network.tangent", (n, n)), Work("factorisation", (n * k,))]),
        trials={"network": lambda: NetworkRates.measure(task, batch, dtype, step)},
    )


def _linearised(n_rows: int, n_outputs: int, factor: list[Work]) -> tuple[Influence, Posterior]:
    """Of influence values at all points at once; of a posterior at a few at a time, each time with the signals of all rows."""
    size = n_rows * n_outputs

    def crossing(points: int, at_a_time: int) -> list[Work]:
        signals = n_rows * math.ceil(points / at_a_time)
        return [*factor, Work("network.tangent.pair", (n_rows, points)), Work("network.tangent.row", (signals,))]

    return (
        lambda points: [*crossing(points, max(1, points)), _whitening(2 * points, size)],
        lambda points, checked: [*crossing(points, POINTS_AT_A_TIME), _whitening(points + checked, size)],
    )


def _whitening(columns: int, size: int) -> Work:
    """A triangular solve; a whole solve is two."""
    return Work("multiplication", (columns, size, size), 0.5)
