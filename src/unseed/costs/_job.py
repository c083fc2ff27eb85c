"""What is to be done, and the work of it: the choice of a network, the engine's own work, what the interval asks.

The formulas are in `docs/scaling.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from joblib import effective_n_jobs

from unseed._checks import check_whole_number
from unseed._estimators import PNCRegressor
from unseed._estimators.first_look import BEGIN_ROWS
from unseed._estimators.training import PLAIN_NETWORK, RIVAL_ROWS, is_module
from unseed._machine import resolve_device
from unseed._random import Streams
from unseed._resampling import HashedPlan, Resamples
from unseed._selection import AutoNetwork
from unseed._solvers import Work
from unseed.engines import (
    AllRows,
    Cost,
    Engine,
    Exact,
    KernelEngine,
    Landmarks,
    Network,
    Solver,
    Task,
    all_rows_cost,
    landmark_cost,
    landmark_count,
    resolve_engine,
    resolve_solver,
)
from unseed.errors import InvalidInputError, NotAvailableError
from unseed.intervals import Batching, IntervalMethod, hashed_plan, resolve_interval
from unseed.losses import is_bent, resolve_loss
from unseed.networks import MLP

TYPICAL_NETWORK = MLP(depth=1, activation="erf", bias_scale=1.0, scale_inputs=True)
"""Stands for one that is yet to be chosen."""

GROUPS = 2  # base and auxiliary network of every replicate
_EVALUATIONS = (520, 48, 42, 10)  # of the stages of a choice: counted on four data sets, 430 to 640, 48 to 49, 42
_MORE_TO_POLISH = 50  # in the stage before the last, where there is a last one
_CHECKED_ROWS = 1500  # of which posterior variances are looked at once, of errors and of the amplitude
_MISFIT = 0.04  # seconds until curves are laid through their errors


@dataclass(frozen=True)
class Job:
    """What is to be done.

    Attributes
    ----------
    rows, features, points, outputs : int
        Training rows and their features, new points, columns of y.
    interval : interval method
    engine : engine
    network : MLP or function that makes a torch module
        A typical one where it is yet to be chosen.
    solver : Exact, AllRows or Landmarks
        How rows are handled.
    chooses : bool
        Whether the network is chosen from the data.
    workers : int
        Replicates at a time: they need memory, the cores are busy already.
    device : torch device

    Examples
    --------
    >>> Job(rows=10**6, features=16, solver=Landmarks(count=500)).landmarks
    [500]
    """

    rows: int
    features: int
    points: int = 0
    outputs: int = 1
    interval: IntervalMethod = field(default_factory=Batching)
    engine: Engine = field(default_factory=KernelEngine)
    network: Network = TYPICAL_NETWORK
    solver: Solver = field(default_factory=Exact)
    chooses: bool = False
    workers: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    def __post_init__(self) -> None:
        for name in ("rows", "features", "outputs", "workers"):
            check_whole_number(name, getattr(self, name), at_least=1)
        check_whole_number("points", self.points, at_least=0)
        resolve_solver(self.solver, self.engine, self.rows, self.device)

    @classmethod
    def of(cls, estimator: Any, rows: int, features: int, points: int = 0, outputs: int = 1) -> Job:
        """What fitting an estimator to so many rows, and asking it for intervals, comes to."""
        if not isinstance(estimator, PNCRegressor):
            raise NotAvailableError(f"a forecast is for PNCRegressor, not for {estimator}")
        estimator._check_options()  # what fit would refuse, in the same words
        if is_bent(resolve_loss(estimator.loss)):
            raise NotAvailableError(f"a forecast is for loss='squared' so far, not for loss={estimator.loss!r}")
        device, engine = resolve_device(estimator.device), resolve_engine(estimator.engine)
        solver = resolve_solver(estimator.solver, engine, rows, device)
        interval = resolve_interval(estimator.interval, rows, has_posterior="posterior" in engine.capabilities)
        job = cls(rows, features, points, outputs, interval, engine, solver=solver, device=device)
        return replace(job, workers=_at_a_time(estimator.n_jobs))._with_network(estimator.network)

    def _with_network(self, network: Any) -> Job:
        if isinstance(network, MLP) or is_module(network):
            return replace(self, network=network)
        if not self.engine.converges:  # then nothing is chosen
            return replace(self, network=PLAIN_NETWORK)
        return replace(self, chooses=True)

    @property
    def landmarks(self) -> list[int]:
        """Landmarks of each space: of one, or of two where rows are summed up for a network that is chosen; none if exact."""
        if isinstance(self.solver, Exact):
            return []
        given = self.solver.count if isinstance(self.solver, Landmarks) else self.solver.landmarks
        n_spaces = 2 if self.chooses and isinstance(self.solver, Landmarks) else 1
        return [min(self.rows, given or landmark_count(self.rows, n_spaces, self.device))] * n_spaces

    @cached_property
    def plan(self) -> Resamples:
        """Resamples of the interval method."""
        return hashed_plan(self.interval, Streams(0)) if self.landmarks else self.interval.plan(self.rows, Streams(0))

    @property
    def task(self) -> Task:
        """Rows and labels in shape and place, without memory for more than one of them."""
        X = torch.zeros(1, self.features, dtype=torch.float64, device=self.device)
        labels = X.new_zeros(1, GROUPS, self.outputs)
        return Task(X.expand(self.rows, -1), labels.expand(self.rows, -1, -1), self.network, 0.0)

    @cached_property
    def cost(self) -> Cost:
        """What the engine says, or what sums over rows come to."""
        if isinstance(self.plan, HashedPlan):
            sums = landmark_cost(self.rows, self.plan, self.landmarks, searches=self.chooses)
            if isinstance(self.solver, AllRows):
                return all_rows_cost(sums, self.rows, self.outputs, self.landmarks, self.solver.tolerance)
            return sums
        return self.engine.cost(self.task, self.plan)

    @property
    def work(self) -> dict[str, list[Work]]:
        """Of the choice of a network, of fitting, and of predicting with what the interval asks beyond it."""
        fitting, predicting = [Work("start"), *self.cost.fitting], list(self.cost.predicting(self.points))
        if self.interval.uses_posterior:  # of the points, and of the training rows that were checked
            predicting += [*self.cost.posterior(self.points, min(_CHECKED_ROWS, self.rows)), Work("second", (_MISFIT,))]
            if not self.landmarks and self.engine.is_infinite and self.chooses and self.rows <= RIVAL_ROWS:
                fitting += [Work("gram", (self.rows,)), Work("factorisation", (self.rows,))]
        elif self.interval.uses_influence:
            predicting += self.cost.influence(self.points)
        return {"choosing": self._choosing, "fitting": fitting, "predicting": predicting}

    @property
    def _choosing(self) -> list[Work]:
        """Some stages; an evaluation is cubic in the rows of its stage."""
        if not self.chooses:
            return []
        known = min(self.rows, BEGIN_ROWS) if self.landmarks else self.rows
        stages = [min(rows, known) for rows in AutoNetwork().stages(known)]
        threads = min(2, torch.get_num_threads())  # climbs of the later stages run beside each other
        evaluations = _EVALUATIONS[0] * (stages[0] / 256) ** 2
        for before, rows, some in zip(stages, stages[1:], _EVALUATIONS[1:], strict=False):
            if rows > before:
                evaluations += some * (rows / 256) ** 2.5 / threads
        if stages[3] > stages[2]:
            evaluations += _MORE_TO_POLISH * (stages[2] / 256) ** 2.5 / threads
        return [Work("evaluation", (evaluations,))]


def _at_a_time(n_jobs: int | None) -> int:
    if n_jobs == 0:
        raise InvalidInputError("n_jobs=0 runs nothing; use 1, 2, … or -1 for every core")
    return int(effective_n_jobs(n_jobs))
