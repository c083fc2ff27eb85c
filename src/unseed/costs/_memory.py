"""What a job holds at its peak, and what would fit where that does not."""

from __future__ import annotations

from dataclasses import replace

from unseed._machine import available_bytes, gigabytes
from unseed.costs._finite import check_memory_of_networks
from unseed.costs._job import Job
from unseed.engines import KernelEngine
from unseed.engines._forecast import bytes_needed
from unseed.errors import NotEnoughMemoryError

_BYTES = 8  # float64
_SMALLEST_BLOCK = 64


def peak_bytes(job: Job) -> int:
    """Large matrices of a job with networks of infinite width; of blocks also all rows that are held."""
    if job.block is not None:
        return _bytes_of_blocks(job)
    assert isinstance(job.engine, KernelEngine)
    return bytes_needed(job.plan, job.workers, job.engine.copies(job.device))


def disk_bytes(job: Job) -> int:
    """Rows, labels and dual weights of blocks in files, at most."""
    return _BYTES * job.rows * _numbers_of_a_row(job) if job.is_stored else 0


def shortage(job: Job, needed: int) -> str | None:
    """Why a job of so many bytes does not fit, and what would, in one sentence; None where it fits.

    Examples
    --------
    >>> job = Job(rows=1000, features=4)
    >>> shortage(job, peak_bytes(job)) is None
    True
    """
    available = available_bytes(job.device)
    if needed <= available:
        return None
    try:
        if job.block is None and isinstance(job.engine, KernelEngine):
            job.engine.check_memory(job.plan, job.device, job.workers)
        elif job.block is None:
            check_memory_of_networks(job)
    except NotEnoughMemoryError as error:
        return str(error)
    remedy = "use fewer rows or a smaller network" if job.block is None else _smaller_blocks(job, job.block, available)
    return f"{job.rows:,} rows need {gigabytes(needed)} and {gigabytes(available)} are available; {remedy}"


def _bytes_of_blocks(job: Job) -> int:
    size = -(-job.rows // job.n_blocks)
    at_once = 2 * job.workers * job.machines + 2  # blocks that are waiting, sent or coming back
    rows_held = min(job.rows, at_once * size) if job.is_stored else job.rows  # by the process that asks
    held = 2 * _BYTES * rows_held * _numbers_of_a_row(job)
    matrix = (12 if job.is_mixed else 8) * size**2  # a float32 factor stands beside its matrix
    return held + max(job.workers * matrix, _bytes_of_centre(job))


def _bytes_of_centre(job: Job) -> int:
    """Of the network on all rows: the preconditioner, all rows once more, and the columns of conjugate gradients."""
    if job.centre is None:
        return 0
    n, r = job.rows, job.landmarks
    return _BYTES * (n * r + 2 * r**2 + n * (2 * job.features + 6 * job.outputs))


def _numbers_of_a_row(job: Job) -> int:
    return job.features + 2 * job.outputs


def _smaller_blocks(job: Job, block: int, available: int) -> str:
    """Blocks in files, one at a time, so small that half of what is available is enough."""
    other = replace(job, is_stored=True, centre=None, workers=1, block=block)
    while peak_bytes(other) > available / 2 and block > _SMALLEST_BLOCK:
        block //= 2
        other = replace(other, block=block)
    options = f"block_size={block}, folder=..., n_jobs=1" + (", centre='blocks'" if job.centre is not None else "")
    return f"BlockwisePNCRegressor({options}) keeps rows in files and needs {gigabytes(peak_bytes(other))}"
