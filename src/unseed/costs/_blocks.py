"""Work and memory of blocks on one or several machines, and of a network on all rows beside them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from unseed._machine import available_bytes, gigabytes
from unseed._solvers import Work
from unseed.engines._blocks import landmarks_for

if TYPE_CHECKING:
    from unseed.costs._job import Job

_BYTES = 8  # float64
_SMALLEST_BLOCK = 64
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

    def work(self, rows: int, landmarks: int, outputs: int) -> list[Work]:
        """A preconditioner of some rows, then a pass over all pairs of rows for every iteration, and one for the residual."""
        n, r, option = rows, landmarks, "centre='full'"
        passes = self.iterations(n, r) + 1
        return [
            Work("gram", (r,)),
            Work("factorisation", (r,), 2),
            Work("pair", (n, r)),
            Work("multiplication", (n, r, r), 1.5),  # one triangular solve, one product
            Work("solvers.symmetric", (n, n), passes / 2, option),
            Work("solvers.product", (outputs, 2 * n * r + r**2), passes, option),
        ]


def fitting(job: Job) -> list[Work]:
    """The process that asks reads all rows itself; machines solve a block each at a time, and the last round may be short."""
    size, rounds = job.rows / job.n_blocks, math.ceil(job.n_blocks / job.machines)
    solve = Work("solvers.mixed", (size,), asked_by="precision='mixed'") if job.is_mixed else Work("factorisation", (size,))
    centre = [] if job.centre is None else job.centre.work(job.rows, _landmarks(job), job.outputs)
    each = [Work("task", (1,)), Work("gram", (size,)), solve]
    return [Work("row", (job.rows,)), *(rounds * work for work in each), *centre]


def predicting(job: Job) -> list[Work]:
    """Blocks in files are read by the machines, blocks in memory are looked at by the process that has them."""
    in_turn = math.ceil(job.n_blocks / (job.machines if job.is_stored else 1))
    passes = in_turn / job.n_blocks + (job.centre is not None)
    return [Work("row", (job.points,)), Work("task", (in_turn,)), Work("entry", (job.points, job.rows), passes)]


def peak_bytes(job: Job) -> int:
    """Matrices of the blocks at work, and the rows that are held."""
    size = -(-job.rows // job.n_blocks)
    at_once = 2 * job.workers * job.machines + 2  # blocks that are waiting, sent or coming back
    rows_held = min(job.rows, at_once * size) if job.is_stored else job.rows  # by the process that asks
    matrix = (12 if job.is_mixed else 8) * size**2  # a float32 factor stands beside its matrix
    of_centre = 0
    if job.centre is not None:  # the preconditioner, all rows once more, and the columns of conjugate gradients
        n, r = job.rows, _landmarks(job)
        of_centre = _BYTES * (n * r + 2 * r**2 + n * (2 * job.features + 6 * job.outputs))
    return 2 * _BYTES * rows_held * _numbers_of_a_row(job) + max(job.workers * matrix, of_centre)


def disk_bytes(job: Job) -> int:
    """Rows, labels and dual weights of blocks in files, at most."""
    return _BYTES * job.rows * _numbers_of_a_row(job) if job.is_stored else 0


def assumption(job: Job) -> str:
    """What only the data know; nothing without a network on all rows."""
    if job.centre is None:
        return ""
    number = job.centre.iterations(job.rows, _landmarks(job))
    return f"{number} iterations find the centre (they may be {job.centre.max_iterations})"


def smaller_blocks(job: Job, block: int) -> str:
    """Blocks in files, one at a time, so small that half of what is available is enough."""
    available = available_bytes(job.device)
    other = replace(job, is_stored=True, centre=None, workers=1, block=block)
    while peak_bytes(other) > available / 2 and block > _SMALLEST_BLOCK:
        block //= 2
        other = replace(other, block=block)
    options = f"block_size={block}, folder=..., n_jobs=1" + (", centre='blocks'" if job.centre is not None else "")
    return f"BlockwisePNCRegressor({options}) keeps rows in files and needs {gigabytes(peak_bytes(other))}"


def _landmarks(job: Job) -> int:
    return landmarks_for(job.rows, job.device)


def _numbers_of_a_row(job: Job) -> int:
    return job.features + 2 * job.outputs
