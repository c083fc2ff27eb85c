"""Timings, and how fast finite networks of one architecture are: every operation tried on a few rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from unseed._random import Streams
from unseed._threads import on_all_cores
from unseed.engines._cohorts import Cohorts
from unseed.engines._task import Task
from unseed.networks import NetworkBatch

_AT_ONCE = 4  # matrices of a trial, at most
_TRIED_ROWS = {"cpu": 512, "cuda": 2048}  # what keeps the device busy
_TRIED_NUMBERS = {"cpu": 1 << 26, "cuda": 1 << 28}  # activations of a trial of training, at most


def best_seconds(function: Callable[[], object], device: torch.device, repetitions: int = 4) -> float:
    """The least of a few timings: whatever else the machine does only adds."""
    return min(seconds_of(function, device) for _ in range(repetitions))


def seconds_of(function: Callable[[], object], device: torch.device) -> float:
    """One timing, to the end of what was begun on a GPU."""
    _wait(device)
    start = time.perf_counter()
    function()
    _wait(device)
    return time.perf_counter() - start


def busy_seconds(function: Callable[[Tensor], object], matrix: Tensor, repetitions: int = 3) -> float:
    """Seconds of one when every core is busy with one of its own; the function may overwrite what it is given."""
    device = matrix.device
    cores = torch.get_num_threads() if device.type == "cpu" else 1
    at_once = min(cores, _AT_ONCE)
    times = []
    for _ in range(repetitions):
        matrices = [matrix.clone() for _ in range(at_once)]
        times.append(seconds_of(lambda: on_all_cores(function, matrices, device, at_once), device) / cores)  # noqa: B023
    return min(times)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


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
    """

    forward: float
    step: float
    tangent: TangentRates
    training_tangent: TangentRates
    start: float

    @classmethod
    def measure(cls, task: Task, batch: NetworkBatch, cohorts: Cohorts | None = None) -> NetworkRates:
        """Trials on a few rows; of training, where there are cohorts to be trained."""
        device, dtype = task.X.device, torch.float64 if cohorts is None else cohorts.dtype
        generator = Streams(0).generator("start")
        start = best_seconds(lambda: batch.draw(generator), torch.device("cpu"), 2)
        parameters = batch.draw(generator).to(device)[None]
        rows = _TRIED_ROWS[device.type] // (1 if batch.is_explicit else 8)  # a module's Jacobian is slow
        X = _like(task.X, rows)
        tangent = TangentRates.measure(batch, parameters, X)
        training = TangentRates.measure(batch, parameters.to(dtype), X.to(dtype)) if dtype != torch.float64 else tangent
        forward = best_seconds(lambda: batch.outputs(parameters, X[None]), device) / rows
        step = 0.0 if cohorts is None else _seconds_of_a_step(cohorts, parameters.to(dtype))
        return cls(forward, step, tangent, training, start)


def _seconds_of_a_step(cohorts: Cohorts, start: Tensor) -> float:
    """Of a row of one network, trained together with those it will be trained with."""
    batch, X, sizes, n_groups = cohorts.batch, cohorts.task.X, cohorts.plan.distinct_rows, cohorts.n_groups
    numbers, device = batch.activations_per_row or batch.n_parameters, X.device
    seconds = 0.0
    for group in cohorts.groups:
        longest = sizes[group[0]]
        together = min(len(group), cohorts.at_once(longest))
        n_networks = n_groups * together
        rows = max(1, min(cohorts.trainer.rows_of_a_step(longest), _TRIED_NUMBERS[device.type] // (n_networks * numbers)))
        networks = start.expand(n_networks, -1).contiguous()
        some = _like(X, rows).to(start.dtype).expand(n_networks, -1, -1).contiguous()
        weights = torch.ones(n_networks, rows, batch.n_outputs, dtype=some.dtype, device=device)
        each = best_seconds(lambda: batch.evaluate(networks, some).pull(weights), device) / rows  # noqa: B023
        seconds += each * longest * len(group) / together
    return seconds / (n_groups * sum(sizes))


def _like(X: Tensor, n_rows: int) -> Tensor:
    """Random rows of the same shape, on the same device."""
    generator = torch.Generator().manual_seed(0)
    return torch.randn(n_rows, *X.shape[1:], generator=generator, dtype=torch.float64).to(X.device)
