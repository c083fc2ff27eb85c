"""Time and memory of a job, from the rates of a machine.

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
and for each iteration n²/2 · e. `costs.blocks` has blocks on several machines.

Finite networks have no kernel to share: every replicate has a tangent kernel T(n, n) of its own. With G(n) the seconds of
outputs and gradient of n rows, and F(p) those of outputs alone, a replicate of n rows takes

    linearized         T(n, n) + C(n)                                            points   T(n, p)
    Gauss-Newton       2 steps · (T(n, n) + 6 C(n) + 8 G(n))                     points   2 F(p)
    descent            2 (steps + 1) · G(n)                                      points   2 F(p)
    mini-batches       2 epochs · 2 G(n)                                         points   2 F(p)

and the truth or the jackknife T(n, n) + C(n) of the network on all rows, and T(n, p) at the points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from unseed._estimators.recipe import RIVAL_ROWS
from unseed._machine import gigabytes
from unseed._selection import AutoNetwork
from unseed._solvers import SGD, Converged, GaussNewton, GradientDescent
from unseed.costs._block_seconds import fitting_seconds, predicting_seconds
from unseed.costs._finite import GROUPS, NetworkRates
from unseed.costs._job import Job
from unseed.costs._memory import disk_bytes, peak_bytes
from unseed.costs._rates import Rates
from unseed.engines._forecast import shares_one_gram
from unseed.errors import InvalidInputError

_EVALUATIONS = (520, 48, 42)  # of the three stages of a choice: counted on four data sets, 430 to 640, 48 to 49, 42
_CHECKED_ROWS = 1500  # of which posterior variances are looked at once, of errors and of the amplitude
_MISFIT = 0.04  # seconds until curves are laid through their errors
_TRIED_DAMPINGS, _GRADIENTS_OF_A_STEP = 6, 8
_GAUSS_NEWTON_STEPS = 18  # of the 30 it may take at most; 15 to 30 were counted
_STEPS_PER_ROW = 1.5  # up to which StoppedRidge goes step by step
_POINTS_OF_A_POSTERIOR = 32  # at a time, each time with the signals of all rows


@dataclass(frozen=True)
class Forecast:
    """What a job will take.

    Attributes
    ----------
    choosing, fitting, predicting : float
        Seconds.
    bytes : int
        Peak of the large matrices; of blocks also the rows that are held.
    may_end_early : bool
        Whether training stops by itself, and the time is that of all the steps it may take.
    disk : int
        Bytes of blocks that are kept in files.
    assumed : str
        A number that only the data know, and was assumed; nothing where there is none.
    """

    choosing: float
    fitting: float
    predicting: float
    bytes: int
    may_end_early: bool = False
    disk: int = 0
    assumed: str = ""

    @property
    def seconds(self) -> float:
        """All together."""
        return self.choosing + self.fitting + self.predicting

    def __str__(self) -> str:
        parts = [f"{name} {duration(value)}" for name, value in self._parts() if value]
        words = "at most about" if self.may_end_early else "about"
        disk = f", {gigabytes(self.disk)} on disk" if self.disk else ""
        assumed = f", if {self.assumed}" if self.assumed else ""
        return f"{words} {duration(self.seconds)} ({', '.join(parts)}) and {gigabytes(self.bytes)} of memory{disk}{assumed}"

    def _parts(self) -> list[tuple[str, float]]:
        return [("choosing the network", self.choosing), ("fitting", self.fitting), ("predicting", self.predicting)]


def forecast(job: Job, rates: Rates) -> Forecast:
    """Time and memory of a job on a machine with these rates.

    Examples
    --------
    >>> rates = Rates(cubic=2e-11, quadratic=0.0, entry=5e-9, pair=5e-9, cut=1e-9, multiplication=1e-11, evaluation=0.006)
    >>> print(forecast(Job(rows=10**6, features=16, points=1000, block=2048), rates))
    about 38 s (fitting 33 s, predicting 5.0 s) and 0.3 GB of memory
    """
    if job.block is not None:
        return _blocks(job, rates)
    return _infinite(job, rates) if job.is_infinite else _finite(job, rates)


def _blocks(job: Job, rates: Rates) -> Forecast:
    assumed = ""
    if job.centre is not None:
        number = job.centre.iterations(job.rows, job.landmarks)
        assumed = f"{number} iterations find the centre (they may be {job.centre.max_iterations})"
    fitting = rates.start + fitting_seconds(job, rates)
    times = _choosing(job, rates), fitting, predicting_seconds(job, rates)
    return Forecast(*times, peak_bytes(job), disk=disk_bytes(job), assumed=assumed)


def _infinite(job: Job, rates: Rates) -> Forecast:
    distinct, shares = job.replicate_rows, shares_one_gram(job.plan)
    fitting = rates.gram(job.rows) if shares else sum(map(rates.gram, distinct))
    kept = job.plan.reference  # their factors are in float64
    fitting += sum(_solving(job, rates, n, job.outputs, keeps_factor=r in kept) for r, n in enumerate(distinct))
    fitting += rates.task * len(distinct)
    if shares:
        fitting += rates.cut * sum(n**2 for n in distinct if n < job.rows)
    if job.interval.uses_posterior and job.chooses and job.rows <= RIVAL_ROWS:
        fitting += rates.gram(job.rows) + rates.factorisation(job.rows)
    entries = (1 + job.interval.uses_posterior) * job.rows
    predicting = (rates.row + rates.entry * entries) * job.points + _solves(job, rates, job.rows)
    return Forecast(_choosing(job, rates), rates.start + fitting, predicting, peak_bytes(job))


def _solving(job: Job, rates: Rates, n: int, columns: int, *, keeps_factor: bool) -> float:
    """Seconds of a system of n rows with its matrix there, by the way that the engine takes."""
    training = job.training
    if isinstance(training, Converged):
        return rates.mixed(n) if job.is_mixed and not keeps_factor else rates.factorisation(n)
    known = rates.of_solvers(f"training={training}")
    if isinstance(training, GradientDescent) and not isinstance(training.rate, str):
        products = training.steps * columns
        if products <= _STEPS_PER_ROW * n:
            return known.product * (products + 1) * n**2  # and a look at all entries, whether it may diverge
    return known.spectral(n)


def _finite(job: Job, rates: Rates) -> Forecast:
    speed = rates.network
    if speed is None:
        raise InvalidInputError(f"these rates know nothing of engine={job.engine}; take Rates.for_job(job)")
    trainer, sizes = job.trainer, job.replicate_rows
    if trainer is None:
        systems = (_solving(job, rates, n * job.outputs, GROUPS, keeps_factor=True) for n in sizes)
        trained = sum(speed.tangent(n, n) for n in sizes) + sum(systems)
        predicting = sum(speed.tangent(n, job.points) for n in sizes)
    else:
        trained = GROUPS * _training(trainer, job, rates, speed)
        predicting = GROUPS * speed.forward * job.points * len(sizes)
    if job.interval.uses_posterior or job.interval.uses_influence:
        predicting += _linearised(job, rates, speed)
    fitting = rates.start + speed.start * len(sizes) + trained
    return Forecast(_choosing(job, rates), fitting, predicting, speed.bytes, _may_end_early(trainer))


def _training(trainer: GaussNewton | GradientDescent | SGD, job: Job, rates: Rates, speed: NetworkRates) -> float:
    """Seconds of one network of every replicate."""
    gradient = speed.step * sum(job.replicate_rows)
    if isinstance(trainer, GradientDescent):
        return (trainer.steps + 1) * gradient
    if isinstance(trainer, SGD):
        return trainer.epochs * 2 * gradient  # rows are gathered too, and the loss of all is looked at once an epoch
    step = _GRADIENTS_OF_A_STEP * gradient
    for n in job.replicate_rows:
        damped = rates.factorisation(n * job.outputs) + rates.cut * (n * job.outputs) ** 2
        step += speed.training_tangent(n, n) + _TRIED_DAMPINGS * damped
    return min(trainer.steps, _GAUSS_NEWTON_STEPS) * step


def _linearised(job: Job, rates: Rates, speed: NetworkRates) -> float:
    """What a posterior or influence values need of the network on all rows."""
    n = job.rows
    size = _POINTS_OF_A_POSTERIOR if job.interval.uses_posterior else max(1, job.points)
    seconds = speed.tangent.pair * n * job.points + speed.tangent.row * n * math.ceil(job.points / size)
    if job.trainer is not None:  # nothing was factorised yet
        seconds += speed.tangent(n, n) + rates.factorisation(n * job.outputs)
    return seconds + _solves(job, rates, n * job.outputs)


def _may_end_early(trainer: GaussNewton | GradientDescent | SGD | None) -> bool:
    return isinstance(trainer, SGD) or (isinstance(trainer, GradientDescent) and trainer.tolerance is not None)


def _solves(job: Job, rates: Rates, size: int) -> float:
    """Triangular solves at the points, beyond the predictions themselves."""
    if job.interval.uses_posterior:  # posterior variances of the points, and of the training rows that were checked
        return _MISFIT + rates.multiplication * (job.points + min(_CHECKED_ROWS, job.rows)) * size**2 / 2
    return rates.multiplication * job.points * size**2 if job.interval.uses_influence else 0.0


def _choosing(job: Job, rates: Rates) -> float:
    """Three stages; an evaluation is cubic in the rows of its stage."""
    if not job.chooses:
        return 0.0
    stages = [min(rows, job.choosing_rows) for rows in AutoNetwork().stages]
    threads = min(2, torch.get_num_threads())  # climbs of the later stages run beside each other
    total = _EVALUATIONS[0] * rates.evaluation * (stages[0] / 256) ** 2
    for before, rows, evaluations in zip(stages, stages[1:], _EVALUATIONS[1:], strict=False):
        if rows > before:
            total += evaluations * rates.evaluation * (rows / 256) ** 2.5 / threads
    return total


def duration(seconds: float) -> str:
    """Seconds, minutes, hours or days, two digits.

    Examples
    --------
    >>> [duration(s) for s in (0.0123, 7.31, 61.0, 7300.0, 1e6)]
    ['12 ms', '7.3 s', '61 s', '2.0 h', '12 days']
    """
    if seconds < 1:
        return f"{1e3 * seconds:.0f} ms"
    for size, unit, limit in ((1, "s", 120), (60, "min", 120), (3600, "h", 72)):
        if seconds / size < limit:
            value = seconds / size
            return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"
    return f"{seconds / 86400:.0f} days"
