"""How fast a machine is, by a few rates that take a second or two to measure; and what a job takes at that speed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from unseed._machine import duration, gigabytes
from unseed._selection.objective import Architecture, ScaleObjective, evidence
from unseed._solvers import Converged, DualRidge, GradientDescent, GradientFlow, Work, solve_ridge
from unseed._threads import one_thread
from unseed._told import telling_once
from unseed.costs._job import TYPICAL_NETWORK, Job
from unseed.engines import Engine
from unseed.engines._systems import Solver, System, cut_out
from unseed.engines._trials import NetworkRates, best_seconds, busy_seconds, seconds_of
from unseed.errors import InvalidInputError
from unseed.kernels import PopulationKernel
from unseed.networks import MLP

# Of a CPU also a power of two, whose columns compete for the same lines of its caches.
_SIZES = {"cpu": (768, 2048, 2304), "cuda": (8192, 12288)}
_EIGEN_SIZES = {"cpu": (512, 1536), "cuda": (1024, 4096)}
_STEPS, _RIDGE, _READ_ROWS = 20, 1e-3, 1 << 16
_FEW_ROWS, _LONG = 256, 0.25  # rows on which a kernel is tried first, and the seconds that its matrix of more may take


@dataclass(frozen=True)
class Growth:
    """Seconds of something cubic in n: cubic · n³/3 + quadratic · n².

    Examples
    --------
    >>> Growth(cubic=3e-9, quadratic=0.0)(1000)
    1.0
    """

    cubic: float
    quadratic: float

    def __call__(self, n: float) -> float:
        """Seconds."""
        return self.cubic * n**3 / 3 + self.quadratic * n**2

    @classmethod
    def measure(cls, X: Tensor, solver: Solver, sizes: tuple[int, ...]) -> Growth:
        """Of systems of a few sizes, with their matrices there."""
        n = np.array(sizes)
        each = np.array([_solve_seconds(X[:rows], solver) / rows**2 for rows in sizes])
        slope = float(np.polyfit(n, each, 1)[0])
        whole = each.mean() / n.mean()  # if nothing of it were quadratic
        slope = min(max(slope, whole / 2), whole)  # a busy moment at the small size must not turn the large ones around
        return cls(float(3 * slope), float(each.mean() - slope * n.mean()))


@dataclass(frozen=True)
class SolverRates:
    """Seconds of solvers other than a Cholesky factor in float64.

    Attributes
    ----------
    spectral : Growth
        Of training that was stopped, by eigenvectors.
    mixed : Growth
        Of a solve with a float32 factor and float64 iterations.
    product : float
        Of an entry of a matrix that is there in a product with a vector.
    symmetric : float
        Of a pair of points in a product of the kernel with itself, no matrix being held.
    """

    spectral: Growth
    mixed: Growth
    product: float
    symmetric: float

    @classmethod
    def measure(cls, network: MLP, X: Tensor) -> SolverRates:
        """By the library's own functions, on some of these rows."""
        eigen = _EIGEN_SIZES[X.device.type]
        spectral = Growth.measure(X, Solver(GradientFlow(time=1.0), _RIDGE), eigen)
        mixed = Growth.measure(X, Solver(Converged(), _RIDGE, is_mixed=True), _SIZES[X.device.type])
        descent = GradientDescent(steps=_STEPS, rate=1e-6)  # so slow that nothing diverges, and few enough to be taken
        stepping = _solve_seconds(X[: max(eigen)], Solver(descent, _RIDGE)) / ((_STEPS + 1) * max(eigen) ** 2)
        kernel = PopulationKernel(network)
        X = _affordable(X, kernel)
        product = best_seconds(partial(kernel.ntk_gram_product, kernel.profile(X), X[:, :1]), X.device, 3)
        return cls(spectral, mixed, stepping, product / (len(X) ** 2 / 2))


@dataclass(frozen=True)
class Rates:
    """How fast a machine is.

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
    row : float
        Seconds of a row that is read in random order, put into units and sent to the device.
    task : float
        Seconds of a system of almost no rows.
    start : float
        Seconds that any fit takes.
    network : NetworkRates or None
        Those of finite networks, for the engines that have them.
    solvers : SolverRates or None
        Those of stopped training, mixed precision and networks on all rows, for jobs that ask for one of them.
    own : mapping
        Those that an engine's own trials have found, by name.
    """

    cubic: float
    quadratic: float
    entry: float
    pair: float
    cut: float
    multiplication: float
    evaluation: float
    row: float = 0.0
    task: float = 0.0
    start: float = 0.02
    network: NetworkRates | None = None
    solvers: SolverRates | None = None
    own: Mapping[str, Any] = field(default_factory=dict)
    second: ClassVar[float] = 1.0  # the rate of what takes the same time anywhere

    @classmethod
    @telling_once
    def for_job(cls, job: Job) -> Rates:
        """All that a job's forecast needs, on this machine, as busy as it is now."""
        return cls.measure(job.features, job.device, _kernel_network(job)).completed(job)

    @classmethod
    def measure(cls, n_features: int, device: torch.device | None = None, network: MLP = TYPICAL_NETWORK) -> Rates:
        """Those of the kernel engine, on this machine, as busy as it is now."""
        where = device or torch.device("cpu")
        X, rng, kernel = _some_rows(n_features, where), np.random.default_rng(1), PopulationKernel(network)
        tried = _affordable(X, kernel)
        points, some, ones = kernel.profile(tried), kernel.profile(tried + 1.0), X.new_ones(len(tried), 1)
        entry = best_seconds(lambda: kernel.ntk_product(points, some, ones), where) / len(tried) ** 2
        pair = best_seconds(partial(kernel.ntk_gram, points), where, 3) / (len(tried) * (len(tried) + 1) / 2)
        gram, kept = _typical_gram(X), torch.from_numpy(np.flatnonzero(rng.random(len(X)) < 0.632)).to(where)
        cut = best_seconds(partial(cut_out, gram, gram.diagonal(), kept), where, 3) / len(kept) ** 2
        factor, columns = DualRidge.factorise(gram, X.new_ones(len(X)), _RIDGE), X.new_ones(len(X), 512)
        multiplication = best_seconds(lambda: factor.whiten(columns), where) / (len(X) ** 2 / 2 * 512)
        factorisation = Growth.measure(X, Solver(Converged(), _RIDGE), _SIZES[where.type])
        objective = ScaleObjective(X[:256], torch.sin(X[:256, :1]), Architecture("erf", 1), evidence)
        with one_thread():
            evaluation = best_seconds(lambda: objective.score_and_slope(np.array([-1.0, 0.0, 0.0, -3.0])), where)
        task = best_seconds(lambda: _solved(kernel, X[:32]), where)
        many, order = rng.normal(size=(_READ_ROWS, n_features)), rng.permutation(_READ_ROWS)
        row = best_seconds(lambda: ((torch.from_numpy(many[order]) - 1.0) / 2.0).to(where), where) / _READ_ROWS
        growth = factorisation.cubic, factorisation.quadratic
        return cls(*growth, entry, pair, cut, multiplication, evaluation, row, task)

    def completed(self, job: Job) -> Rates:
        """With those that this job needs beyond: the trials of its engine, and the solvers that it asks for."""
        found: dict[str, Any] = {name: trial() for name, trial in job.cost.trials.items()}
        if any(amount.rate.startswith("solvers.") for work in job.work.values() for amount in work):
            found["solvers"] = SolverRates.measure(_kernel_network(job), _some_rows(job.features, job.device))
        known = {rate.name: found.pop(rate.name) for rate in fields(self) if rate.name in found}
        return replace(self, own={**self.own, **found}, **known)

    def factorisation(self, n: float) -> float:
        """C(n)."""
        return Growth(self.cubic, self.quadratic)(n)

    def gram(self, n: float) -> float:
        """A symmetric matrix of the kernel."""
        return self.pair * n**2 / 2

    def price(self, work: Iterable[Work], engine: Engine) -> float:
        """Seconds of an engine's work."""
        return sum(self._seconds(part, engine) for part in work)

    def _seconds(self, work: Work, engine: Engine) -> float:
        name, _, attribute = work.rate.partition(".")
        rate = self.own[name] if name in self.own else getattr(self, name, None)
        if rate is None:
            asked_by = work.asked_by or f"engine={engine}"
            raise InvalidInputError(f"these rates know nothing of {asked_by}; take Rates.for_job(job)")
        if attribute:
            rate = attrgetter(attribute)(rate)
        each: float = rate(*work.sizes) if callable(rate) else rate * math.prod(work.sizes)
        return work.times * each


def _kernel_network(job: Job) -> MLP:
    return job.network if isinstance(job.network, MLP) else TYPICAL_NETWORK


def _solved(kernel: PopulationKernel, X: Tensor) -> Tensor:
    ones = X.new_ones(len(X), 1)
    return solve_ridge(kernel.ntk_gram(kernel.profile(X)), ones[:, 0], 0.1, ones, is_mixed=False)


def _some_rows(n_features: int, device: torch.device) -> torch.Tensor:
    return torch.tensor(np.random.default_rng(0).normal(size=(max(_SIZES[device.type]), n_features)), device=device)


def _affordable(X: Tensor, kernel: PopulationKernel) -> Tensor:
    """As many rows as have their matrix in no time: all of them, unless the kernel is a long series."""
    few = kernel.profile(X[:_FEW_ROWS])
    each = seconds_of(partial(kernel.ntk_gram, few), X.device) / len(few) ** 2
    return X[: max(_FEW_ROWS, int(math.sqrt(_LONG / each)))]


def _typical_gram(X: Tensor) -> Tensor:
    """A matrix to solve with: how long that takes is the same for any network's."""
    kernel = PopulationKernel(TYPICAL_NETWORK)
    return kernel.ntk_gram(kernel.profile(X))


def _solve_seconds(X: Tensor, solver: Solver) -> float:
    system = System(torch.arange(len(X)), X.new_ones(len(X)), torch.sin(X[:, None, :1]), False)
    return busy_seconds(lambda matrix: solver(matrix, system), _typical_gram(X))


@dataclass(frozen=True)
class Forecast:
    """What a job will take.

    Attributes
    ----------
    choosing, fitting, predicting : float
        Seconds.
    bytes : int
        Peak of the large matrices.
    may_end_early : bool
        Whether training stops by itself, and the time is that of all the steps it may take.
    assumed : str
        A number that only the data know, and was assumed; nothing where there is none.
    """

    choosing: float
    fitting: float
    predicting: float
    bytes: int
    may_end_early: bool = False
    assumed: str = ""

    @property
    def seconds(self) -> float:
        """All together."""
        return self.choosing + self.fitting + self.predicting

    def __str__(self) -> str:
        times = {"choosing the network": self.choosing, "fitting": self.fitting, "predicting": self.predicting}
        parts = [f"{name} {duration(value)}" for name, value in times.items() if value]
        words = "at most about" if self.may_end_early else "about"
        assumed = f", if {self.assumed}" if self.assumed else ""
        return f"{words} {duration(self.seconds)} ({', '.join(parts)}) and {gigabytes(self.bytes)} of memory{assumed}"


def forecast(job: Job, rates: Rates) -> Forecast:
    """Time and memory of a job on a machine with these rates.

    Examples
    --------
    >>> rates = Rates(cubic=2e-11, quadratic=0.0, entry=5e-9, pair=5e-9, cut=1e-9, multiplication=1e-11, evaluation=0.006)
    >>> print(forecast(Job(rows=4096, features=16, points=1000), rates))
    about 80 ms (fitting 59 ms, predicting 20 ms) and 0.0 GB of memory
    """
    return Forecast(
        **{part: rates.price(work, job.engine) for part, work in job.work.items()},
        bytes=job.cost.memory.needed(job.workers),
        may_end_early=any(amount.at_most for work in job.work.values() for amount in work),
        assumed=job.cost.assumed,
    )


def shortage(job: Job, needed: int) -> str | None:
    """Why a job of so many bytes does not fit, and what would, in one sentence; None where it fits.

    Examples
    --------
    >>> job = Job(rows=1000, features=4)
    >>> shortage(job, 8 * 1000**2) is None
    True
    """
    return replace(job.cost.memory, bytes=needed).shortage(job.device)
