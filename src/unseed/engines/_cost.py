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
from unseed.engines._protocol import Task
from unseed.engines._tangent import POINTS_AT_A_TIME
from unseed.engines._trials import NetworkRates, seconds_of_a_step
from unseed.networks import NetworkBatch


def _nothing(*sizes: int) -> list[Work]:
    return []


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
    may_end_early : bool
        Whether training stops by itself, and the work is that of all the steps it may take.
    trials : mapping of name to function
        Rates of the engine's own: each function times itself on a few rows and returns the seconds of one unit, a function of
        the work's sizes, or an object whose attributes are such; ``Work("name", ...)`` or ``Work("name.attribute", ...)`` is
        priced by it.

    Examples
    --------
    >>> def predicting(points):
    ...     return [Work("entry", (1000, points))]
    >>> cost = Cost([Work("my pass", (1000,))], predicting, Memory(8000), trials={"my pass": lambda: 1e-6})
    >>> cost.predicting(10)
    [Work(rate='entry', sizes=(1000, 10), times=1.0, asked_by='')]
    """

    fitting: Sequence[Work]
    predicting: Callable[[int], Sequence[Work]]
    memory: Memory
    influence: Callable[[int], Sequence[Work]] = _nothing
    posterior: Callable[[int, int], Sequence[Work]] = _nothing
    may_end_early: bool = False
    trials: Mapping[str, Callable[[], object]] = field(default_factory=dict)


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
        influence=lambda points: [Work("multiplication", (points, n, n))],
        posterior=lambda points, checked: [Work("entry", (n, points)), _whitening(points + checked, n)],
    )


def linearized_cost(task: Task, plan: Plan, batch: NetworkBatch, training: Training) -> Cost:
    """A tangent kernel and a system for each replicate, whose factors are there for whatever else is asked."""
    sizes = plan.distinct_rows
    solving = [work for n in sizes for work in training.closed_form_work(n * batch.n_outputs, task.labels.shape[1])]
    tangents = [Work("network.tangent", (n, n)) for n in sizes]
    n = len(task.X)
    return Cost(
        [Work("network.start", (len(sizes),)), *tangents, *solving],
        lambda points: [Work("network.tangent", (n, points)) for n in sizes],
        network_memory(batch, plan, 1, 8),
        influence=partial(_influence, n, n * batch.n_outputs),
        posterior=partial(_posterior, n, n * batch.n_outputs),
        trials={"network": lambda: NetworkRates.measure(task, batch, torch.float64)},
    )


def network_cost(
    task: Task, plan: Plan, batch: NetworkBatch, trainer: Trainer, dtype: torch.dtype, at_once: Callable[[int], int]
) -> Cost:
    """Networks that are trained, ``at_once(rows)`` replicates together; the one on all rows is linearised where it is asked."""
    n, size, sizes = len(task.X), len(task.X) * batch.n_outputs, plan.distinct_rows
    n_groups = task.labels.shape[1]
    training = [n_groups * work for m in sizes for work in trainer.network_work(m, batch.n_outputs)]
    linearised = [Work("network.tangent", (n, n)), Work("factorisation", (size,))]
    step = partial(seconds_of_a_step, task, plan, batch, trainer, at_once, n_groups)
    return Cost(
        [Work("network.start", (len(sizes),)), *training],
        lambda points: [Work("network.forward", (n_groups, points, len(sizes)))],
        network_memory(batch, plan, n_groups, dtype.itemsize),
        influence=lambda points: [*linearised, *_influence(n, size, points)],
        posterior=lambda points, checked: [*linearised, *_posterior(n, size, points, checked)],
        may_end_early=trainer.may_end_early,
        trials={"network": lambda: NetworkRates.measure(task, batch, dtype, step)},
    )


def _influence(n_rows: int, size: int, points: int) -> list[Work]:
    """All points at once."""
    return [*_crossing(n_rows, points, max(1, points)), Work("multiplication", (points, size, size))]


def _posterior(n_rows: int, size: int, points: int, checked: int) -> list[Work]:
    """A few points at a time, each time with the signals of all rows."""
    return [*_crossing(n_rows, points, POINTS_AT_A_TIME), _whitening(points + checked, size)]


def _crossing(n_rows: int, points: int, at_a_time: int) -> list[Work]:
    signals = n_rows * math.ceil(points / at_a_time)
    return [Work("network.tangent.pair", (n_rows, points)), Work("network.tangent.row", (signals,))]


def _whitening(columns: int, size: int) -> Work:
    return Work("multiplication", (columns, size, size), 0.5)
