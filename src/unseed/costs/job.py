"""What is to be done, in numbers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from joblib import effective_n_jobs

from unseed.engines import Engine, KernelEngine, Network, NetworkEngine, block_rows
from unseed.errors import NotAvailableError
from unseed.estimators import BlockwisePNCRegressor, PNCRegressor
from unseed.estimators.options import PLAIN_NETWORK, is_module, resolve_engine
from unseed.intervals import Batching, IntervalMethod, resolve_interval
from unseed.machine import resolve_device
from unseed.networks import MLP
from unseed.random import Streams
from unseed.resampling import Plan
from unseed.solvers import SGD, GaussNewton, GradientDescent

TYPICAL_NETWORK = MLP(depth=1, activation="erf", bias_scale=1.0, scale_inputs=True)
"""Stands for one that is yet to be chosen."""


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
    block : int or None
        Rows of a block, where rows are trained on in blocks.
    chooses : bool
        Whether the network is chosen from the data.
    machines : int
        As many machines like this one share the blocks.
    workers : int
        Blocks at a time on each machine: they need memory, its cores are busy with one already.
    device : torch device
    """

    rows: int
    features: int
    points: int = 0
    outputs: int = 1
    interval: IntervalMethod = field(default_factory=Batching)
    engine: Engine = field(default_factory=KernelEngine)
    network: Network = TYPICAL_NETWORK
    block: int | None = None
    chooses: bool = False
    machines: int = 1
    workers: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @classmethod
    def of(cls, estimator: Any, rows: int, features: int, points: int = 0, outputs: int = 1) -> Job:
        """What fitting an estimator to so many rows, and asking it for intervals, comes to."""
        if not isinstance(estimator, (PNCRegressor, BlockwisePNCRegressor)):
            raise NotAvailableError(f"a forecast is for PNCRegressor and BlockwisePNCRegressor, not for {estimator}")
        device = resolve_device(estimator.device)
        job = cls(rows, features, points, outputs, device=device)
        if isinstance(estimator, BlockwisePNCRegressor):
            block = block_rows(rows, device) if estimator.block_size == "auto" else int(estimator.block_size)
            job = replace(job, block=max(1, min(block, rows // 2)), workers=_workers(estimator.n_jobs, device))
            return job._with_network(estimator.network)
        engine = resolve_engine(estimator.engine)
        interval = resolve_interval(estimator.interval, rows, has_posterior=engine.converges)
        return replace(job, engine=engine, interval=interval)._with_network(estimator.network)

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


def _workers(n_jobs: int | None, device: torch.device) -> int:
    """Blocks at a time: of oneself as many as there are cores, and one on a GPU."""
    if n_jobs is None:
        return torch.get_num_threads() if device.type == "cpu" else 1
    return int(effective_n_jobs(n_jobs))
