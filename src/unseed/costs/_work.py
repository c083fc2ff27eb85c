"""A job's work in amounts of operations, and its memory: the engine's own, the choice of a network, the interval's questions.

With C(n) the seconds of a Cholesky factorisation, e those of a kernel entry (a little more in a symmetric matrix, which is
written) and p new points; matrices that are cut out of another cost a little too:

    cheap bootstrap    n²/2 · e + C(n) + R · C(0.632 n)        points   n p · e
    half sampling      n²/2 · e + C(n) + R · C(n/2)            points   n p · e
    sectioning         n²/2 · e + C(n) + m' · C(n/m')          points   n p · e
    truth              sectioning, and its rival's n²/2 · e + C(n) where the network is chosen, up to 4,096 rows;
                       points   2 n p · e and n² (p + q)/2 multiplications, q = min(n, 1,500) rows that are checked
    batching           n²/2m' · e + m' · C(n/m')               points   n p · e
    jackknife          n²/2 · e + C(n)                         points   n p · e and n² p multiplications
    blocks of b rows   n b/2 · e + n/b · C(b)                  points   n p · e

Replicates of which only the predictions are wanted take M(n) of a float32 factor in place of C(n) with precision="mixed".
Training that is stopped takes S(n) of an eigendecomposition in place of C(n), or a product with the matrix for each step and
output where steps · outputs are at most 1.5 n, the rate is a number, and no direction may diverge (which only the data
know, and is assumed). With r rows of the preconditioner, a network on all rows beside blocks adds 3/2 n r² multiplications
and for each iteration n²/2 · e.

Finite networks have no kernel to share: every replicate has a tangent kernel T(n, n) of its own. With G(n) the seconds of
outputs and gradient of n rows, and F(p) those of outputs alone, a replicate of n rows takes

    linearized         T(n, n) + C(n)                                            points   T(n, p)
    Gauss-Newton       2 steps · (T(n, n) + 6 C(n) + 8 G(n))                     points   2 F(p)
    descent            2 (steps + 1) · G(n)                                      points   2 F(p)
    mini-batches       2 epochs · 2 G(n)                                         points   2 F(p)

and the truth or the jackknife T(n, n) + C(n) of the network on all rows, and T(n, p) at the points.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from unseed._estimators.recipe import RIVAL_ROWS
from unseed._machine import available_bytes, gigabytes
from unseed._selection import AutoNetwork
from unseed._solvers import Work
from unseed.costs import _blocks as blocks
from unseed.costs._job import Job

_EVALUATIONS = (520, 48, 42)  # of the three stages of a choice: counted on four data sets, 430 to 640, 48 to 49, 42
_CHECKED_ROWS = 1500  # of which posterior variances are looked at once, of errors and of the amplitude
_MISFIT = 0.04  # seconds until curves are laid through their errors


@dataclass(frozen=True)
class JobWork:
    """Work of a job's parts; the first of them may be empty."""

    choosing: list[Work]
    fitting: list[Work]
    predicting: list[Work]

    @classmethod
    def of(cls, job: Job) -> JobWork:
        """The engine's own work, and what the interval asks beyond it."""
        start = Work("start", (1,))
        if job.block is not None:
            return cls(_choosing(job), [start, *blocks.fitting(job)], blocks.predicting(job))
        fitting, predicting = [start, *job.cost.fitting], list(job.cost.predicting(job.points))
        if job.interval.uses_posterior:  # of the points, and of the training rows that were checked
            predicting += [*job.cost.posterior(job.points, min(_CHECKED_ROWS, job.rows)), Work("second", (_MISFIT,))]
            if job.engine.is_infinite and job.chooses and job.rows <= RIVAL_ROWS:
                fitting += [Work("gram", (job.rows,)), Work("factorisation", (job.rows,))]
        elif job.interval.uses_influence:
            predicting += job.cost.influence(job.points)
        return cls(_choosing(job), fitting, predicting)


def _choosing(job: Job) -> list[Work]:
    """Three stages; an evaluation is cubic in the rows of its stage."""
    if not job.chooses:
        return []
    stages = [min(rows, job.block or job.rows) for rows in AutoNetwork().stages]
    threads = min(2, torch.get_num_threads())  # climbs of the later stages run beside each other
    evaluations = _EVALUATIONS[0] * (stages[0] / 256) ** 2
    for before, rows, some in zip(stages, stages[1:], _EVALUATIONS[1:], strict=False):
        if rows > before:
            evaluations += some * (rows / 256) ** 2.5 / threads
    return [Work("evaluation", (evaluations,))]


def peak_bytes(job: Job) -> int:
    """What is held at the peak of a job; of blocks also the rows."""
    return blocks.peak_bytes(job) if job.block is not None else job.cost.memory.needed(job.workers)


def shortage(job: Job, needed: int) -> str | None:
    """Why a job of so many bytes does not fit, and what would, in one sentence; None where it fits.

    Examples
    --------
    >>> job = Job(rows=1000, features=4)
    >>> shortage(job, 8 * 1000**2) is None
    True
    """
    available = available_bytes(job.device)
    if needed <= available:
        return None
    if job.block is None and (lack := job.cost.memory.shortage(job.device, job.workers)) is not None:
        return lack
    remedy = "use fewer rows or a smaller network" if job.block is None else blocks.smaller_blocks(job, job.block)
    return f"{job.rows:,} rows need {gigabytes(needed)} and {gigabytes(available)} are available; {remedy}"
