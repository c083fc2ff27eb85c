"""How fast a machine is: a few rates, measured in a second or two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch

from unseed.costs.finite import NetworkRates
from unseed.costs.job import TYPICAL_NETWORK, Job
from unseed.costs.timing import best_seconds, seconds_of
from unseed.engines import BlockFit
from unseed.engines.systems import cut_out
from unseed.kernels import PopulationKernel
from unseed.machine import finish, on_all_cores, one_thread
from unseed.networks import MLP
from unseed.selection.criteria import evidence
from unseed.selection.landscape import Architecture, Landscape
from unseed.solvers import WeightedRidge


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

    @classmethod
    def for_job(cls, job: Job) -> Rates:
        """All that a job's forecast needs, on this machine, as busy as it is now."""
        network = job.network if isinstance(job.network, MLP) else TYPICAL_NETWORK
        rates = cls.measure(job.features, job.device, network)
        return rates if job.is_infinite else replace(rates, network=NetworkRates.measure(job))

    @classmethod
    def measure(cls, n_features: int, device: torch.device | None = None, network: MLP = TYPICAL_NETWORK) -> Rates:
        """Those of the kernel engine and of blocks, on this machine, as busy as it is now."""
        where = device or torch.device("cpu")
        # Of a CPU also a power of two, whose columns compete for the same lines of its caches.
        sizes = (8192, 12288) if where.type == "cuda" else (768, 2048, 2304)
        rng = np.random.default_rng(0)
        X = torch.tensor(rng.normal(size=(max(sizes), n_features)), device=where)
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
            seconds[n], factor = _best_factorisation(gram, where)
        large = max(sizes)
        cubic, quadratic = _fitted(seconds)
        columns = torch.ones(large, 512, dtype=X.dtype, device=where)
        multiplication = best_seconds(lambda: factor.whiten(columns), where) / (large**2 / 2 * 512)
        return cls(
            cubic,
            quadratic,
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
        return self.cubic * n**3 / 3 + self.quadratic * n**2

    def gram(self, n: float) -> float:
        """A symmetric matrix of the kernel."""
        return self.pair * n**2 / 2


def _fitted(seconds: dict[int, float]) -> tuple[float, float]:
    """Cubic and quadratic rate of a factorisation from a few sizes."""
    n, each = np.array(list(seconds)), np.array([taken / n**2 for n, taken in seconds.items()])
    slope = float(np.polyfit(n, each, 1)[0])
    whole = each.mean() / n.mean()  # if nothing of it were quadratic
    slope = min(max(slope, whole / 2), whole)  # a busy moment at the small size must not turn the large ones around
    return 3 * slope, float(each.mean() - slope * n.mean())


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


def _best_factorisation(gram: torch.Tensor, device: torch.device) -> tuple[float, WeightedRidge]:
    """Seconds of one when every core is busy with one of its own, and a factor."""
    counts = torch.ones(len(gram), dtype=gram.dtype, device=device)
    cores = torch.get_num_threads() if device.type == "cpu" else 1
    at_once = min(cores, 4)
    times = []
    for _ in range(3):
        matrices = [gram.clone() for _ in range(at_once)]
        factors: list[WeightedRidge] = []

        def factorise(matrix: torch.Tensor, factors: list[WeightedRidge] = factors) -> None:
            factors.append(WeightedRidge.factorise(matrix, counts, 0.0))

        times.append(seconds_of(partial(_all, factorise, matrices, device), device) / cores)
    return min(times), factors[0]


def _all(function: Callable[[torch.Tensor], None], matrices: list[torch.Tensor], device: torch.device) -> None:
    finish(on_all_cores(function, matrices, device, len(matrices)))
