"""How fast finite networks of one architecture are: every operation tried on a few rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from unseed._random import Streams
from unseed._solvers import SGD
from unseed.costs._job import Job
from unseed.costs._timing import best_seconds
from unseed.engines import NetworkEngine, Task, make_batch
from unseed.engines._cohorts import Trainer, groups_of_similar_size
from unseed.engines._forecast import check_network_memory, network_bytes
from unseed.networks import NetworkBatch

GROUPS = 2  # base and auxiliary network of every replicate
_TRIED_ROWS = {"cpu": 512, "cuda": 2048}  # what keeps the device busy
_TRIED_NUMBERS = {"cpu": 1 << 26, "cuda": 1 << 28}  # activations of a trial of training, at most


@dataclass(frozen=True)
class TangentRates:
    """A tangent kernel between n and m rows takes row · (n + m) + pair · n m seconds, the factor of each left out."""

    row: float
    pair: float

    @classmethod
    def measure(cls, batch: NetworkBatch, parameters: Tensor, X: Tensor) -> TangentRates:
        """From a quarter of the rows, and from all."""
        few, many = len(X) // 4, len(X)
        small, large = (
            best_seconds(partial(batch.cross_kernel, parameters, X[None, :n], X[None, :n]), X.device, 3) for n in (few, many)
        )
        pair = max(0.0, large - 4 * small) / (12 * few**2)
        return cls(max(0.0, large - pair * many**2) / (2 * many), pair)

    def __call__(self, n: float, m: float) -> float:
        """Seconds."""
        return self.row * (n + m) + self.pair * n * m


@dataclass(frozen=True)
class NetworkRates:
    """Seconds of one network.

    Attributes
    ----------
    forward : float
        Of a row's output, in float64.
    step : float
        Of a row's output and its share of a gradient, in the precision of training.
    tangent, training_tangent : TangentRates
        In float64, and in the precision of training.
    start : float
        Of a random start.
    bytes : int
        Memory of the job.
    """

    forward: float
    step: float
    tangent: TangentRates
    training_tangent: TangentRates
    start: float
    bytes: int

    @classmethod
    def measure(cls, job: Job) -> NetworkRates:
        """Trials on a few rows; those of training on as many networks at once as are trained together."""
        dtype = _precision(job)
        batch = _batch(job, dtype)
        exact = batch.in_double()
        generator = Streams(0).generator("start")
        start = best_seconds(lambda: batch.draw(generator), torch.device("cpu"), 2)
        parameters = batch.draw(generator).to(job.device)[None]
        rows = _TRIED_ROWS[job.device.type] // (1 if batch.is_explicit else 8)  # a module's Jacobian is slow
        X = _rows(job, rows)
        tangent = TangentRates.measure(exact, parameters, X)
        training = TangentRates.measure(batch, parameters.to(dtype), X.to(dtype)) if dtype != torch.float64 else tangent
        return cls(
            forward=best_seconds(lambda: exact.outputs(parameters, X[None]), job.device) / rows,
            step=0.0 if job.trainer is None else _step(batch, parameters.to(dtype), job, job.trainer),
            tangent=tangent,
            training_tangent=training,
            start=start,
            bytes=network_bytes(batch, job.plan, GROUPS, dtype.itemsize),
        )


def _step(batch: NetworkBatch, parameters: Tensor, job: Job, trainer: Trainer) -> float:
    """Seconds of a row of one network in a step, trained together with those it will be trained with."""
    assert isinstance(job.engine, NetworkEngine)
    width = batch.activations_per_row or batch.n_parameters
    seconds, trained = 0.0, 0
    for group in groups_of_similar_size(job.plan, trainer):
        longest = rows = job.replicate_rows[group[0]]
        at_once = min(len(group), job.engine.replicates_at_once(rows, GROUPS, batch, trainer, job.device))
        n_networks = GROUPS * at_once
        if isinstance(trainer, SGD):
            rows = min(rows, trainer.batch_size)
        rows = max(1, min(rows, _TRIED_NUMBERS[job.device.type] // (n_networks * width)))
        networks = parameters.expand(n_networks, -1).contiguous()
        X = _rows(job, rows).to(parameters.dtype).expand(n_networks, -1, -1).contiguous()
        weights = torch.ones(n_networks, rows, job.outputs, dtype=X.dtype, device=X.device)
        each = best_seconds(lambda: batch.evaluate(networks, X).pull(weights), X.device) / rows  # noqa: B023
        seconds += each * longest * len(group) / at_once
        trained += sum(job.replicate_rows[r] for r in group)
    return seconds / (GROUPS * trained)


def check_memory_of_networks(job: Job) -> None:
    """Refuse networks whose memory is not there, and name a width that would fit."""
    dtype = _precision(job)
    check_network_memory(_batch(job, dtype), job.plan, GROUPS, dtype.itemsize, job.device)


def _precision(job: Job) -> torch.dtype:
    """Of training."""
    dtype: torch.dtype = getattr(torch, job.engine.dtype) if isinstance(job.engine, NetworkEngine) else torch.float64
    return dtype


def _batch(job: Job, dtype: torch.dtype) -> NetworkBatch:
    X = _rows(job, 1).expand(job.rows, -1)  # one row in memory; a width may depend on how many there are
    labels = X.new_zeros(1, GROUPS, job.outputs).expand(job.rows, -1, -1)
    return make_batch(Task(X, labels, job.network, 0.0), getattr(job.engine, "width", None), dtype)


def _rows(job: Job, n_rows: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(n_rows, job.features, generator=generator, dtype=torch.float64).to(job.device)
