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
from unseed._estimators import BlockwisePNCRegressor, PNCRegressor
from unseed._estimators.block_work import workers_for
from unseed._estimators.training import PLAIN_NETWORK, RIVAL_ROWS, is_module
from unseed._machine import resolve_device
from unseed._random import Streams
from unseed._resampling import Plan
from unseed._selection import AutoNetwork
from unseed._solvers import Work
from unseed.costs._blocks import FullCentre, block_cost
from unseed.engines import Cost, Engine, KernelEngine, Network, Task, block_rows, resolve_engine
from unseed.errors import InvalidInputError, NotAvailableError
from unseed.intervals import Batching, IntervalMethod, resolve_interval
from unseed.networks import MLP

TYPICAL_NETWORK = MLP(depth=1, activation="erf", bias_scale=1.0, scale_inputs=True)
"""Stands for one that is yet to be chosen."""

GROUPS = 2  # base and auxiliary network of every replicate
_EVALUATIONS = (520, 48, 42)  # of the three stages of a choice: counted on four data sets, 430 to 640, 48 to 49, 42
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
        Of blocks a KernelEngine, whose precision is theirs.
    network : MLP or function that makes a torch module
        A typical one where it is yet to be chosen.
    block : int or None
        Rows of a block, where rows are trained on in blocks.
    is_stored : bool
        Whether blocks are kept in files.
    centre : FullCentre or None
        The network on all rows, where there is one beside the blocks.
    chooses : bool
        Whether the network is chosen from the data.
    machines : int
        As many machines like this one share the blocks.
    workers : int
        Blocks or replicates at a time on each machine: they need memory, its cores are busy already.
    device : torch device

    Examples
    --------
    >>> Job(rows=10**6, features=16, block=2048, machines=8).n_blocks
    488
    """

    rows: int
    features: int
    points: int = 0
    outputs: int = 1
    interval: IntervalMethod = field(default_factory=Batching)
    engine: Engine = field(default_factory=KernelEngine)
    network: Network = TYPICAL_NETWORK
    block: int | None = None
    is_stored: bool = False
    centre: FullCentre | None = None
    chooses: bool = False
    machines: int = 1
    workers: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    def __post_init__(self) -> None:
        for name in ("rows", "features", "outputs", "machines", "workers"):
            check_whole_number(name, getattr(self, name), at_least=1)
        check_whole_number("points", self.points, at_least=0)
        if self.block is not None:
            check_whole_number("block", self.block, at_least=1)
            if not (self.engine.is_infinite and self.engine.converges):
                raise InvalidInputError(f"block={self.block} has no engine={self.engine}; use KernelEngine(), or block=None")
            if self.is_stored and self.centre is not None:
                raise InvalidInputError(f"centre={self.centre} holds all rows in memory; use is_stored=False, or centre=None")
            return
        for name, unused in (("machines", 1), ("is_stored", False), ("centre", None)):
            if getattr(self, name) != unused:
                raise InvalidInputError(
                    f"{name}={getattr(self, name)!r} is for blocks, and block=None has none; use block=2048, or {name}={unused}"
                )

    @classmethod
    def of(cls, estimator: Any, rows: int, features: int, points: int = 0, outputs: int = 1) -> Job:
        """What fitting an estimator to so many rows, and asking it for intervals, comes to."""
        if not isinstance(estimator, (PNCRegressor, BlockwisePNCRegressor)):
            raise NotAvailableError(f"a forecast is for PNCRegressor and BlockwisePNCRegressor, not for {estimator}")
        estimator._check_options()  # what fit would refuse, in the same words
        job = cls(rows, features, points, outputs, device=resolve_device(estimator.device))
        if isinstance(estimator, BlockwisePNCRegressor):
            return job._in_blocks(estimator)._with_network(estimator.network)
        engine = resolve_engine(estimator.engine)
        interval = resolve_interval(estimator.interval, rows, has_posterior="posterior" in engine.capabilities)
        job = replace(job, engine=engine, interval=interval, workers=_at_a_time(estimator.n_jobs))
        return job._with_network(estimator.network)

    def _in_blocks(self, estimator: BlockwisePNCRegressor) -> Job:
        block = block_rows(self.rows, self.device) if estimator.block_size == "auto" else int(estimator.block_size)
        block = max(1, min(block, self.rows // 2))
        return replace(
            self,
            engine=KernelEngine(precision=estimator.precision),
            block=block,
            is_stored=estimator.folder is not None,
            centre=FullCentre(estimator.tolerance, estimator.max_iterations) if estimator.centre == "full" else None,
            workers=_at_a_time(workers_for(estimator.n_jobs, self.device, block)),
        )

    def _with_network(self, network: Any) -> Job:
        if isinstance(network, MLP) or is_module(network):
            return replace(self, network=network)
        if not self.engine.converges:  # then nothing is chosen
            return replace(self, network=PLAIN_NETWORK)
        return replace(self, chooses=True)

    @property
    def n_blocks(self) -> int:
        """Blocks of about equal size; 0 where rows are trained on together."""
        return 0 if self.block is None else max(2, round(self.rows / self.block))

    @cached_property
    def plan(self) -> Plan:
        """Resamples of the interval method."""
        return self.interval.plan(self.rows, Streams(0))

    @property
    def task(self) -> Task:
        """Rows and labels in shape and place, without memory for more than one of them."""
        X = torch.zeros(1, self.features, dtype=torch.float64, device=self.device)
        labels = X.new_zeros(1, GROUPS, self.outputs)
        return Task(X.expand(self.rows, -1), labels.expand(self.rows, -1, -1), self.network, 0.0)

    @cached_property
    def cost(self) -> Cost:
        """What the engine says, or what blocks come to."""
        return self.engine.cost(self.task, self.plan) if self.block is None else block_cost(self)

    @property
    def work(self) -> dict[str, list[Work]]:
        """Of the choice of a network, of fitting, and of predicting with what the interval asks beyond it."""
        fitting, predicting = [Work("start"), *self.cost.fitting], list(self.cost.predicting(self.points))
        if self.block is None and self.interval.uses_posterior:  # of the points, and of the training rows that were checked
            predicting += [*self.cost.posterior(self.points, min(_CHECKED_ROWS, self.rows)), Work("second", (_MISFIT,))]
            if self.engine.is_infinite and self.chooses and self.rows <= RIVAL_ROWS:
                fitting += [Work("gram", (self.rows,)), Work("factorisation", (self.rows,))]
        elif self.block is None and self.interval.uses_influence:
            predicting += self.cost.influence(self.points)
        return {"choosing": self._choosing, "fitting": fitting, "predicting": predicting}

    @property
    def _choosing(self) -> list[Work]:
        """Three stages; an evaluation is cubic in the rows of its stage."""
        if not self.chooses:
            return []
        stages = [min(rows, self.block or self.rows) for rows in AutoNetwork().stages]
        threads = min(2, torch.get_num_threads())  # climbs of the later stages run beside each other
        evaluations = _EVALUATIONS[0] * (stages[0] / 256) ** 2
        for before, rows, some in zip(stages, stages[1:], _EVALUATIONS[1:], strict=False):
            if rows > before:
                evaluations += some * (rows / 256) ** 2.5 / threads
        return [Work("evaluation", (evaluations,))]


def _at_a_time(n_jobs: int | None) -> int:
    if n_jobs == 0:
        raise InvalidInputError("n_jobs=0 runs nothing; use 1, 2, … or -1 for every core")
    return int(effective_n_jobs(n_jobs))
