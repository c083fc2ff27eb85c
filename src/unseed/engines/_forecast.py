"""What a plan will need, before anything is allocated, and what would fit instead."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from joblib import effective_n_jobs

from unseed._machine import available_bytes, gigabytes
from unseed._resampling import Plan
from unseed.errors import NotEnoughMemoryError
from unseed.networks import MLPBatch, NetworkBatch

LARGE_ROWS = 4096
"""From so many rows on, all cores factorise a system together, one after the other: the fastest way where they are free."""

_BYTES = 8  # float64


def _n_rows(plan: Plan) -> int:
    return int(plan.counts.shape[1])


def _distinct_rows(plan: Plan) -> list[int]:
    return [int((counts > 0).sum()) for counts in plan.counts]


def shares_one_gram(plan: Plan) -> bool:
    """Whether one Gram matrix of all rows is cheaper than one per replicate (it is not for disjoint batches)."""
    return sum(rows**2 for rows in _distinct_rows(plan)) > _n_rows(plan) ** 2


def systems_at_a_time(n_tasks: int, n_jobs: int | None, largest: int = 0) -> int:
    """Systems at a time: as many as asked for; of oneself as many as there are cores, unless one system needs them all."""
    asked, cores = int(effective_n_jobs(n_jobs)), torch.get_num_threads()
    return asked if asked > 1 else (cores if cores <= n_tasks and largest < LARGE_ROWS else 1)


def bytes_needed(plan: Plan, n_jobs: int | None = None, copies: int = 0) -> int:
    """Peak of the n-by-n matrices alive at once: the shared Gram matrix, the factors kept, and those being made.

    A factor takes the place of its kernel matrix; ``copies`` is the number of matrices that a solver needs beside it: none for
    a Cholesky factor on a CPU and one on a GPU, four for an eigendecomposition. Measured peaks lie within a third of it.
    """
    n_rows, distinct = _n_rows(plan), _distinct_rows(plan)
    kept = sum(distinct[r] ** 2 for r in plan.reference)
    if not shares_one_gram(plan):
        at_once = min(systems_at_a_time(len(distinct), n_jobs, max(distinct)), len(distinct))
        return _BYTES * (kept + (at_once * (1 + copies) - 1) * max(distinct) ** 2)
    others = [rows for r, rows in enumerate(distinct) if r not in plan.reference]
    at_once = min(systems_at_a_time(len(distinct), n_jobs, max(others)), len(distinct))
    cut = (1 + copies) * max(rows**2 for rows in others)  # out of the matrix that becomes the factor of all rows
    return _BYTES * (n_rows**2 + max(at_once * cut, kept - n_rows**2 + copies * n_rows**2))


def _batching_bytes(n_rows: int, n_batches: int) -> int:
    rows = -(-n_rows // n_batches)
    return _BYTES * (n_batches + 1) * rows**2


def check_memory(plan: Plan, device: torch.device, n_jobs: int | None = None, copies: int = 0) -> None:
    """Refuse a plan that cannot fit, and name the batching that would."""
    needed, available = bytes_needed(plan, n_jobs, copies), available_bytes(device)
    if needed <= available:
        return
    n_rows = _n_rows(plan)
    n_batches = 2
    while _batching_bytes(n_rows, n_batches) > available / 2 and n_batches < n_rows // 2:
        n_batches *= 2
    block, fits = -(-n_rows // n_batches), _batching_bytes(n_rows, n_batches)
    raise NotEnoughMemoryError(
        f"{n_rows:,} rows need {gigabytes(needed)} for their kernel matrices and {gigabytes(available)} are available; "
        f"interval=Batching(batches={n_batches}) solves blocks of {block:,} rows and needs {gigabytes(fits)}"
    )


def network_bytes(batch: NetworkBatch, plan: Plan, n_groups: int, bytes_per_number: int) -> int:
    """Parameters of all networks, what training one replicate's networks holds, and their tangent kernel.

    Of a torch module the activations are not known, and not counted.
    """
    rows = max(_distinct_rows(plan))
    if isinstance(batch, MLPBatch):
        n_parameters, activations = batch.n_parameters, 6 * n_groups * rows * batch.width * batch.network.depth
    else:
        n_parameters, activations = len(batch.draw(np.random.default_rng(0))), 0
    # starts and trained parameters, and a few copies while a replicate's networks train
    parameters = n_parameters * ((1 + n_groups) * len(plan.counts) + 4 * n_groups)
    return bytes_per_number * (parameters + activations) + 3 * _BYTES * (rows * batch.n_outputs) ** 2


def check_network_memory(batch: NetworkBatch, plan: Plan, n_groups: int, bytes_per_number: int, device: torch.device) -> None:
    """Refuse networks so wide that their parameters and one replicate's activations cannot fit, and name a width that can."""
    if not isinstance(batch, MLPBatch):
        return
    available = available_bytes(device)

    def needed(width: int) -> int:
        return network_bytes(replace(batch, width=width), plan, n_groups, bytes_per_number)

    if needed(batch.width) <= available:
        return
    width = batch.width
    while width > 1 and needed(width) > available / 2:
        width //= 2
    raise NotEnoughMemoryError(
        f"{len(plan.counts)} networks of width {batch.width:,} on {max(_distinct_rows(plan)):,} rows need "
        f"{gigabytes(needed(batch.width))} and {gigabytes(available)} are available; a width of {width:,} needs "
        f"{gigabytes(needed(width))}"
    )
