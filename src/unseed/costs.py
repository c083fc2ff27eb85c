"""What a job will take, before it is begun: time and memory from a few rates of this machine.

With C(n) the seconds of a Cholesky factorisation, e those of a kernel entry (a little more in a symmetric matrix, which is
written) and p new points; matrices that are cut out of another cost a little too:

    cheap bootstrap    n²/2 · e + C(n) + R · C(0.632 n)        points   n p · e
    half sampling      n²/2 · e + C(n) + R · C(n/2)            points   n p · e
    sectioning         n²/2 · e + C(n) + m' · C(n/m')          points   n p · e
    truth              sectioning, and its rival's n²/2 · e + C(n); points   n p · e and n² p multiplications
    batching           n²/2m' · e + m' · C(n/m')               points   n p · e
    jackknife          n²/2 · e + C(n)                         points   n p · e and 2 n² p multiplications
    blocks of b rows   n b/2 · e + n/b · C(b)                  points   n p · e
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from joblib import effective_n_jobs

from unseed.engines import KernelEngine, block_rows
from unseed.engines.forecast import bytes_needed, shares_one_gram
from unseed.errors import NotAvailableError
from unseed.estimators import BlockwisePNCRegressor, PNCRegressor
from unseed.estimators.pnc import RIVAL_ROWS
from unseed.intervals import Batching, InfinitesimalJackknife, IntervalMethod, TruthInterval, resolve_interval
from unseed.kernels import PopulationKernel
from unseed.machine import gigabytes, one_thread, resolve_device
from unseed.networks import MLP
from unseed.random import Streams
from unseed.resampling import Plan
from unseed.selection import AutoNetwork
from unseed.selection.criteria import evidence
from unseed.selection.landscape import Architecture, Landscape
from unseed.solvers import WeightedRidge

TYPICAL_NETWORK = MLP(depth=1, activation="erf", bias_scale=1.0, scale_inputs=True)
"""Stands for one that is yet to be chosen."""

_EVALUATIONS = (520, 48, 42)  # of the three stages of a choice: counted on four data sets, 430 to 640, 48 to 49, 42
_CHECKED_ROWS = 1500  # of which posterior variances are looked at once, of errors and of the amplitude


@dataclass(frozen=True)
class Rates:
    """How fast a machine is, measured in a second or two.

    Attributes
    ----------
    cubic, quadratic : float
        C(n) = cubic · n³/3 + quadratic · n² seconds.
    entry : float
        Seconds of a kernel entry in a product.
    pair : float
        Seconds of a pair of points in a symmetric matrix, writing it twice included.
    cut : float
        Seconds of an entry of a matrix that is cut out of another.
    multiplication : float
        Seconds of a multiplication in a triangular solve.
    evaluation : float
        Seconds of one evaluation of the evidence, gradient included, at 256 rows, on one thread.
    start : float
        Seconds that any fit takes.
    """

    cubic: float
    quadratic: float
    entry: float
    pair: float
    cut: float
    multiplication: float
    evaluation: float
    start: float = 0.02

    @classmethod
    def measure(cls, n_features: int, device: torch.device | None = None, network: MLP = TYPICAL_NETWORK) -> Rates:
        """On this machine, as busy as it is now."""
        where = device or torch.device("cpu")
        sizes = (4096, 12288) if where.type == "cuda" else (768, 2304)
        rng = np.random.default_rng(0)
        X = torch.tensor(rng.normal(size=(max(sizes), n_features)), device=where)
        kernel = PopulationKernel(network)
        points = kernel.profile(X)
        some, few = points[slice(0, sizes[1])], points[slice(0, 512)]
        entry = _best(lambda: kernel.ntk_product(some, few, X[:512, :1]), where) / (sizes[1] * 512)
        seconds = {}
        for n in sizes:
            part = points[slice(0, n)]
            gram = kernel.ntk_gram(part)
            pair = _best(partial(kernel.ntk_gram, part), where, 2) / (n * (n + 1) / 2)
            cut = 3 * _best(gram.clone, where, 2) / n**2  # gathered, mirrored, touched for the first time
            gram.diagonal().add_(gram.diagonal().mean())
            seconds[n], factor = _best_factorisation(gram, where)
        small, large = sizes
        whole = 3 * seconds[large] / large**3  # if nothing of it were quadratic
        cubic = 3 * (seconds[large] / large**2 - seconds[small] / small**2) / (large - small)
        cubic = min(max(cubic, whole / 2), whole)  # a busy moment at the small size must not turn the large ones around
        quadratic = seconds[large] / large**2 - cubic * large / 3
        columns = torch.ones(large, 512, dtype=X.dtype, device=where)
        multiplication = _best(lambda: factor.whiten(columns), where) / (large**2 / 2 * 512)
        return cls(cubic, quadratic, entry, pair, cut, multiplication, _evaluation(X[:256]))

    def factorisation(self, n: float) -> float:
        """C(n)."""
        return self.cubic * n**3 / 3 + self.quadratic * n**2

    def gram(self, n: float) -> float:
        """A symmetric matrix of the kernel."""
        return self.pair * n**2 / 2


@dataclass(frozen=True)
class Job:
    """What is to be done.

    Attributes
    ----------
    rows, features, points, outputs : int
        Training rows and their features, new points, columns of y.
    interval : interval method
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
    interval: IntervalMethod = Batching()  # noqa: RUF009 (frozen)
    block: int | None = None
    chooses: bool = False
    machines: int = 1
    workers: int = 1
    device: torch.device = torch.device("cpu")  # noqa: RUF009 (immutable)

    @classmethod
    def of(cls, estimator: Any, rows: int, features: int, points: int = 0, outputs: int = 1) -> Job:
        """What fitting an estimator to so many rows, and asking it for intervals, comes to."""
        device = resolve_device(estimator.device)
        job = cls(rows, features, points, outputs, chooses=not isinstance(estimator.network, MLP), device=device)
        if isinstance(estimator, BlockwisePNCRegressor):
            block = block_rows(rows, device) if estimator.block_size == "auto" else int(estimator.block_size)
            return replace(job, block=max(1, min(block, rows // 2)), workers=_workers(estimator.n_jobs, device))
        is_known = isinstance(estimator, PNCRegressor) and isinstance(estimator.engine, (str, KernelEngine))
        if not is_known or estimator.engine in ("linearized", "network"):
            raise NotAvailableError(f"a forecast is for the kernel engine and for blocks, not for {estimator}")
        return replace(job, interval=resolve_interval(estimator.interval, rows, has_posterior=True))

    @cached_property
    def plan(self) -> Plan:
        """Resamples of the interval method."""
        return self.interval.plan(self.rows, Streams(0))

    @property
    def choosing_rows(self) -> int:
        """Rows that a choice of the network may look at."""
        return self.rows if self.block is None else self.block


@dataclass(frozen=True)
class Forecast:
    """What a job will take.

    Attributes
    ----------
    choosing, fitting, predicting : float
        Seconds.
    bytes : int
        Peak of the large matrices; blocks also hold all rows.
    """

    choosing: float
    fitting: float
    predicting: float
    bytes: int

    @property
    def seconds(self) -> float:
        """All together."""
        return self.choosing + self.fitting + self.predicting

    def __str__(self) -> str:
        parts = [f"{name} {_duration(value)}" for name, value in self._parts() if value]
        return f"about {_duration(self.seconds)} ({', '.join(parts)}) and {gigabytes(self.bytes)} of memory"

    def _parts(self) -> list[tuple[str, float]]:
        return [("choosing the network", self.choosing), ("fitting", self.fitting), ("predicting", self.predicting)]


def _workers(n_jobs: int | None, device: torch.device) -> int:
    """Blocks at a time: of oneself as many as there are cores, and one on a GPU."""
    if n_jobs is None:
        return torch.get_num_threads() if device.type == "cpu" else 1
    return int(effective_n_jobs(n_jobs))


def forecast(job: Job, rates: Rates) -> Forecast:
    """Time and memory of a job on a machine with these rates.

    Examples
    --------
    >>> rates = Rates(cubic=2e-11, quadratic=0.0, entry=5e-9, pair=5e-9, cut=1e-9, multiplication=1e-11, evaluation=0.006)
    >>> print(forecast(Job(rows=10**6, features=16, points=1000, block=2048), rates))
    about 38 s (fitting 33 s, predicting 5.0 s) and 0.3 GB of memory
    """
    choosing = _choosing(job, rates) if job.chooses else 0.0
    predicting = rates.entry * job.rows * job.points / job.machines
    if job.block is not None:
        blocks = job.rows / job.block
        fitting = blocks * (rates.gram(job.block) + rates.factorisation(job.block)) / job.machines
        held = 8 * job.rows * (job.features + 2 * job.outputs) // job.machines
        return Forecast(choosing, rates.start + fitting, predicting, 8 * job.workers * job.block**2 + 2 * held)
    distinct = [int((counts > 0).sum()) for counts in job.plan.counts]
    shares = shares_one_gram(job.plan)
    fitting = rates.gram(job.rows) if shares else sum(map(rates.gram, distinct))
    fitting += sum(map(rates.factorisation, distinct))
    if shares:
        fitting += rates.cut * sum(n**2 for n in distinct if n < job.rows)
    if isinstance(job.interval, TruthInterval):
        if job.chooses and job.rows <= RIVAL_ROWS:
            fitting += rates.gram(job.rows) + rates.factorisation(job.rows)
        # posterior variances of the points, and of the training rows that were checked
        predicting += rates.multiplication * (job.points + min(_CHECKED_ROWS, job.rows)) * job.rows**2 / 2
    if isinstance(job.interval, InfinitesimalJackknife):
        predicting += rates.multiplication * job.points * job.rows**2
    copies = 1 if job.device.type == "cuda" else 0
    return Forecast(choosing, rates.start + fitting, predicting, bytes_needed(job.plan, copies=copies))


def _choosing(job: Job, rates: Rates) -> float:
    """Three stages; an evaluation is cubic in the rows of its stage."""
    stages = [min(rows, job.choosing_rows) for rows in AutoNetwork().stages]
    threads = min(2, torch.get_num_threads())  # climbs of the later stages run beside each other
    total = _EVALUATIONS[0] * rates.evaluation * (stages[0] / 256) ** 2
    for before, rows, evaluations in zip(stages, stages[1:], _EVALUATIONS[1:], strict=False):
        if rows > before:
            total += evaluations * rates.evaluation * (rows / 256) ** 2.5 / threads
    return total


def _evaluation(X: torch.Tensor) -> float:
    labels = torch.sin(X[:, :1])
    landscape = Landscape(X, labels, Architecture("erf", 1), evidence)
    point = np.array([-1.0, 0.0, 0.0, -3.0])
    with one_thread():
        return _best(lambda: landscape.score_and_slope(point), X.device)


def _best_factorisation(gram: torch.Tensor, device: torch.device) -> tuple[float, WeightedRidge]:
    times = []
    counts = torch.ones(len(gram), dtype=gram.dtype, device=device)
    for _ in range(4):
        matrix = gram.clone()
        _synchronise(device)
        start = time.perf_counter()
        factor = WeightedRidge.factorise(matrix, counts, 0.0)
        _synchronise(device)
        times.append(time.perf_counter() - start)
    return min(times), factor


def _best(function: Callable[[], object], device: torch.device, repetitions: int = 4) -> float:
    times = []
    for _ in range(repetitions):
        _synchronise(device)
        start = time.perf_counter()
        function()
        _synchronise(device)
        times.append(time.perf_counter() - start)
    return min(times)


def _synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _duration(seconds: float) -> str:
    """Seconds, minutes, hours or days, two digits.

    Examples
    --------
    >>> [_duration(s) for s in (0.0123, 7.31, 61.0, 7300.0, 1e6)]
    ['12 ms', '7.3 s', '61 s', '2.0 h', '12 days']
    """
    if seconds < 1:
        return f"{1e3 * seconds:.0f} ms"
    for size, unit, limit in ((1, "s", 120), (60, "min", 120), (3600, "h", 72)):
        if seconds / size < limit:
            value = seconds / size
            return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"
    return f"{seconds / 86400:.0f} days"
