"""How fast a machine is: a few rates, measured in a second or two."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch

from unseed._selection.criteria import evidence
from unseed._selection.landscape import Architecture, Landscape
from unseed._solvers import Converged, WeightedRidge
from unseed._threads import one_thread
from unseed.costs._finite import NetworkRates
from unseed.costs._job import TYPICAL_NETWORK, Job
from unseed.costs._solvers import SolverRates
from unseed.costs._timing import Growth, best_seconds, busy_seconds
from unseed.engines import BlockFit
from unseed.engines._systems import cut_out
from unseed.errors import InvalidInputError
from unseed.kernels import PopulationKernel
from unseed.networks import MLP

# Of a CPU also a power of two, whose columns compete for the same lines of its caches.
_SIZES = {"cpu": (768, 2048, 2304), "cuda": (8192, 12288)}


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
        Those of stopped training, mixed precision and a centre on all rows, for jobs that ask for one of them.
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

    @classmethod
    def for_job(cls, job: Job) -> Rates:
        """All that a job's forecast needs, on this machine, as busy as it is now."""
        network = job.network if isinstance(job.network, MLP) else TYPICAL_NETWORK
        rates = cls.measure(job.features, job.device, network)
        if not job.is_infinite:
            rates = replace(rates, network=NetworkRates.measure(job))
        if not isinstance(job.training, Converged) or job.is_mixed or job.centre is not None:
            rates = replace(rates, solvers=SolverRates.measure(network, _some_rows(job.features, job.device)))
        return rates

    @classmethod
    def measure(cls, n_features: int, device: torch.device | None = None, network: MLP = TYPICAL_NETWORK) -> Rates:
        """Those of the kernel engine and of blocks, on this machine, as busy as it is now."""
        where = device or torch.device("cpu")
        sizes, X, rng = _SIZES[where.type], _some_rows(n_features, where), np.random.default_rng(1)
        kernel = PopulationKernel(network)
        points = kernel.profile(X)
        few = 4096 if where.type == "cuda" else 1024
        some, ones = kernel.profile(torch.tensor(rng.normal(size=(few, n_features)), device=where)), X.new_ones(few, 1)
        entry = best_seconds(lambda: kernel.ntk_product(points, some, ones), where) / (len(X) * few)
        seconds = {}
        for n in sizes:
            part = points[slice(0, n)]
            gram = kernel.ntk_gram(part)
            pair = best_seconds(partial(kernel.ntk_gram, part), where, 3) / (n * (n + 1) / 2)
            kept = torch.from_numpy(np.flatnonzero(rng.random(n) < 0.632)).to(where)
            cut = best_seconds(partial(cut_out, gram, gram.diagonal(), kept), where, 3) / len(kept) ** 2
            gram.diagonal().add_(gram.diagonal().mean())
            counts = gram.new_ones(n)
            seconds[n] = busy_seconds(partial(WeightedRidge.factorise, counts=counts, regularization=0.0), gram)
            factor = WeightedRidge.factorise(gram, counts, 0.0)
        large = max(sizes)
        factorisation = Growth.fitted(seconds)
        columns = torch.ones(large, 512, dtype=X.dtype, device=where)
        multiplication = best_seconds(lambda: factor.whiten(columns), where) / (large**2 / 2 * 512)
        return cls(
            factorisation.cubic,
            factorisation.quadratic,
            entry,
            pair,
            cut,
            multiplication,
            _evaluation(X[:256]),
            _handling(n_features, where),
            _task(network, X),
        )

    def factorisation(self, n: float) -> float:
        """C(n)."""
        return Growth(self.cubic, self.quadratic)(n)

    def mixed(self, n: float) -> float:
        """A solve with a float32 factor."""
        return self.of_solvers("precision='mixed'").mixed(n)

    def of_solvers(self, option: str) -> SolverRates:
        """Those that an option needs, or an error that names it."""
        if self.solvers is None:
            raise InvalidInputError(f"these rates know nothing of {option}; take Rates.for_job(job)")
        return self.solvers

    def gram(self, n: float) -> float:
        """A symmetric matrix of the kernel."""
        return self.pair * n**2 / 2


def _some_rows(n_features: int, device: torch.device) -> torch.Tensor:
    return torch.tensor(np.random.default_rng(0).normal(size=(max(_SIZES[device.type]), n_features)), device=device)


def _evaluation(X: torch.Tensor) -> float:
    labels = torch.sin(X[:, :1])
    landscape = Landscape(X, labels, Architecture("erf", 1), evidence)
    point = np.array([-1.0, 0.0, 0.0, -3.0])
    with one_thread():
        return best_seconds(lambda: landscape.score_and_slope(point), X.device)


def _task(network: MLP, X: torch.Tensor) -> float:
    few, labels = X[:32], X.new_ones(32, 1)
    return best_seconds(lambda: BlockFit.solve(network, few, labels, 0.1), X.device)


def _handling(n_features: int, device: torch.device) -> float:
    n_rows = 1 << 16
    rng = np.random.default_rng(0)
    X, order = rng.normal(size=(n_rows, n_features)), rng.permutation(n_rows)
    return best_seconds(lambda: ((torch.from_numpy(X[order]) - 1.0) / 2.0).to(device), device) / n_rows
