"""What blocks take on one or several machines, and a network on all rows beside them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from unseed._machine import gigabytes
from unseed._solvers import Work
from unseed.engines import Cost, Memory
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

    def beside(self, blocks: Cost, job: Job) -> Cost:
        """A preconditioner of some rows, then a pass over all pairs of rows for every iteration, and one for the residual."""
        n, r, option = job.rows, landmarks_for(job.rows, job.device), "centre='full'"
        iterations = self.iterations(n, r)
        fitting = [
            Work("gram", (r,)),
            Work("factorisation", (r,), 2),
            Work("pair", (n, r)),
            Work("multiplication", (n, r, r), 1.5),  # one triangular solve, one product
            Work("solvers.symmetric", (n, n), (iterations + 1) / 2, option),
            Work("solvers.product", (job.outputs, 2 * n * r + r**2), iterations + 1, option),
        ]
        return replace(
            blocks,
            fitting=[*blocks.fitting, *fitting],
            predicting=lambda points: [*blocks.predicting(points), Work("entry", (points, n))],
            assumed=f"{iterations} iterations find the centre (they may be {self.max_iterations})",
        )


def block_cost(job: Job) -> Cost:
    """The process that asks reads all rows itself; machines solve a block each at a time, and the last round may be short."""
    size, rounds = job.rows / job.n_blocks, math.ceil(job.n_blocks / job.machines)
    solve = Work("solvers.mixed", (size,), asked_by="precision='mixed'") if _is_mixed(job) else Work("factorisation", (size,))
    # Blocks in files are read by the machines, blocks in memory are looked at by the process that has them.
    in_turn = rounds if job.is_stored else job.n_blocks

    def predicting(points: int) -> list[Work]:
        return [Work("row", (points,)), Work("task", (in_turn,)), Work("entry", (points, size), in_turn)]

    cost = Cost(
        [Work("row", (job.rows,)), *(rounds * work for work in (Work("task"), Work("gram", (size,)), solve))],
        predicting,
        Memory(_bytes(job), f"{job.rows:,} rows need {{}}", lambda available: _smaller(job, available)),
        disk=_BYTES * job.rows * _numbers_of_a_row(job) if job.is_stored else 0,
    )
    return cost if job.centre is None else job.centre.beside(cost, job)


def _bytes(job: Job) -> int:
    """Matrices of the blocks at work, and the rows that are held."""
    size = -(-job.rows // job.n_blocks)
    at_once = 2 * job.workers * job.machines + 2  # blocks that are waiting, sent or coming back
    rows_held = min(job.rows, at_once * size) if job.is_stored else job.rows  # by the process that asks
    matrix = (12 if _is_mixed(job) else 8) * size**2  # a float32 factor stands beside its matrix
    of_centre = 0
    if job.centre is not None:  # the preconditioner, all rows once more, and the columns of conjugate gradients
        n, r = job.rows, landmarks_for(job.rows, job.device)
        of_centre = _BYTES * (n * r + 2 * r**2 + n * (2 * job.features + 6 * job.outputs))
    return 2 * _BYTES * rows_held * _numbers_of_a_row(job) + max(job.workers * matrix, of_centre)


def _smaller(job: Job, available: int) -> str:
    """Blocks in files, one at a time, so small that half of what is available is enough."""
    block = job.block or job.rows
    other = replace(job, is_stored=True, centre=None, workers=1)
    while _bytes(other) > available / 2 and block > _SMALLEST_BLOCK:
        block //= 2
        other = replace(other, block=block)
    options = f"block_size={block}, folder=..., n_jobs=1" + (", centre='blocks'" if job.centre is not None else "")
    return f"BlockwisePNCRegressor({options}) keeps rows in files and needs {gigabytes(_bytes(other))}"


def _numbers_of_a_row(job: Job) -> int:
    return job.features + 2 * job.outputs


def _is_mixed(job: Job) -> bool:
    return getattr(job.engine, "precision", "double") == "mixed"
