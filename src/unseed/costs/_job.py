"""What is to be done, in numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from joblib import effective_n_jobs

from unseed._checks import check_whole_number
from unseed._estimators import BlockwisePNCRegressor, PNCRegressor
from unseed._estimators.block_work import workers_for
from unseed._estimators.options import PLAIN_NETWORK, is_module, resolve_engine
from unseed._machine import resolve_device
from unseed._random import Streams
from unseed._resampling import Plan
from unseed._solvers import SGD, Converged, GaussNewton, GradientDescent, Training
from unseed.engines import Engine, KernelEngine, LinearizedEngine, Network, NetworkEngine, block_rows
from unseed.engines._blocks import landmarks_for
from unseed.errors import InvalidInputError, NotAvailableError
from unseed.intervals import Batching, IntervalMethod, resolve_interval
from unseed.networks import MLP

TYPICAL_NETWORK = MLP(depth=1, activation="erf", bias_scale=1.0, scale_inputs=True)
"""Stands for one that is yet to be chosen."""

_TYPICAL_ITERATIONS = 16  # to a residual of 1e-6: 1, 4, 4, 14, 16, 16, 17 were counted, and 79 where there was hardly any noise
_ITERATIONS_OF_ALL = 2  # where the preconditioner has seen every row


@dataclass(frozen=True)
class FullCentre:
    """One network on all rows, by conjugate gradients, beside the blocks.

    Examples
    --------
    >>> FullCentre().iterations(20_000, landmarks=2048), FullCentre(max_iterations=10).iterations(20_000, landmarks=2048)
    (16, 10)
    """

    tolerance: float = 1e-6
    max_iterations: int = 200

    def iterations(self, rows: int, landmarks: int) -> int:
        """A typical number, in proportion to the digits that are wanted: the number itself only the data know."""
        typical = math.ceil(_TYPICAL_ITERATIONS * max(0.0, math.log10(1 / self.tolerance)) / 6)
        return max(1, min(self.max_iterations, typical, _ITERATIONS_OF_ALL if landmarks >= rows else typical))


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
            if not (self.is_infinite and self.engine.converges):
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
        interval = resolve_interval(estimator.interval, rows, has_posterior=engine.converges)
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
    def is_infinite(self) -> bool:
        """Whether networks have infinite width: the kernel engine, and blocks."""
        return isinstance(self.engine, KernelEngine)

    @property
    def training(self) -> Training:
        """How long networks are trained that are trained in closed form."""
        return self.engine.training if isinstance(self.engine, (KernelEngine, LinearizedEngine)) else Converged()

    @property
    def is_mixed(self) -> bool:
        """Whether a float32 factor may do where none is kept."""
        return isinstance(self.engine, KernelEngine) and self.engine.precision == "mixed"

    @property
    def n_blocks(self) -> int:
        """Blocks of about equal size; 0 where rows are trained on together."""
        return 0 if self.block is None else max(2, round(self.rows / self.block))

    @property
    def landmarks(self) -> int:
        """Rows of the preconditioner of the network on all rows."""
        return landmarks_for(self.rows, self.device)

    @property
    def trainer(self) -> GaussNewton | GradientDescent | SGD | None:
        """What trains finite networks, where they are trained."""
        if not isinstance(self.engine, NetworkEngine):
            return None
        return self.engine.resolve_trainer(self.rows * self.outputs, is_mlp=isinstance(self.network, MLP))

    @cached_property
    def plan(self) -> Plan:
        """Resamples of the interval method."""
        return self.interval.plan(self.rows, Streams(0))

    @property
    def replicate_rows(self) -> list[int]:
        """Distinct rows of every replicate."""
        return [int(n) for n in np.count_nonzero(self.plan.counts, axis=1)]

    @property
    def choosing_rows(self) -> int:
        """Rows that a choice of the network may look at."""
        return self.rows if self.block is None else self.block


def _at_a_time(n_jobs: int | None) -> int:
    if n_jobs == 0:
        raise InvalidInputError("n_jobs=0 runs nothing; use 1, 2, … or -1 for every core")
    return int(effective_n_jobs(n_jobs))
