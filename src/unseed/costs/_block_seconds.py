"""Seconds of blocks on one or several machines, and of a network on all rows beside them."""

from __future__ import annotations

import math

from unseed.costs._job import FullCentre, Job
from unseed.costs._rates import Rates


def fitting_seconds(job: Job, rates: Rates) -> float:
    """The process that asks reads all rows itself; machines solve a block each at a time, and the last round may be short."""
    size = job.rows / job.n_blocks
    solve = rates.mixed if job.is_mixed else rates.factorisation
    each = rates.task + rates.gram(size) + solve(size)
    seconds = rates.row * job.rows + math.ceil(job.n_blocks / job.machines) * each
    return seconds if job.centre is None else seconds + _centre(job, job.centre, rates)


def predicting_seconds(job: Job, rates: Rates) -> float:
    """Blocks in files are read by the machines, blocks in memory are looked at by the process that has them."""
    in_turn = math.ceil(job.n_blocks / (job.machines if job.is_stored else 1))
    each = rates.task + rates.entry * job.points * job.rows / job.n_blocks
    of_centre = 0.0 if job.centre is None else rates.entry * job.points * job.rows
    return rates.row * job.points + in_turn * each + of_centre


def _centre(job: Job, centre: FullCentre, rates: Rates) -> float:
    """A preconditioner of some rows, then conjugate gradients: a pass over all pairs of rows for every iteration."""
    known = rates.of_solvers("centre='full'")
    n, r = job.rows, job.landmarks
    features = rates.pair * n * r + 1.5 * rates.multiplication * n * r**2  # one triangular solve, one product
    preconditioner = rates.gram(r) + 2 * rates.factorisation(r) + features
    each = known.symmetric * n**2 / 2 + known.product * job.outputs * (2 * n * r + r**2)
    return preconditioner + (centre.iterations(n, r) + 1) * each  # and one that tells the residual
