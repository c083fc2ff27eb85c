"""What intervals cost, as ratios within one run on one machine: against the floor, and against what else there is."""

from __future__ import annotations

import platform
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

from unseed.estimators import PNCRegressor
from unseed.intervals import Batching, CheapBootstrap
from unseed.kernels import ntk
from unseed.networks import MLP
from unseed.results import FloatArray

OURS = "unseed: cheap bootstrap, R = 4"
MAPIE = "MAPIE: jackknife after bootstrap, MLPRegressor"
LAPLACE = "laplace-torch: trained network, last layer"
REPLICATIONS, POINTS, FEATURES, REGULARIZATION = 4, 256, 16, 1e-6
_REST = 0.25  # seconds between jobs: threads of the last one's libraries spin for a while before they sleep
NETWORK = MLP(bias_scale=1.0, scale_inputs=True)
PATIENCE = 20.0  # a job that has taken so many seconds is not repeated


@dataclass(frozen=True)
class Problem:
    """Rows to learn from and points to be asked at."""

    X: FloatArray
    y: FloatArray
    X_new: FloatArray

    @classmethod
    def draw(cls, n_rows: int, n_features: int = FEATURES, n_points: int = POINTS) -> Problem:
        """Sum of sines with a tenth of noise."""
        rng = np.random.default_rng(0)
        X, X_new = rng.normal(size=(n_rows, n_features)), rng.normal(size=(n_points, n_features))
        return cls(X, np.sin(X).sum(axis=1) + 0.1 * rng.standard_normal(n_rows), X_new)


def jobs(problem: Problem) -> dict[str, Callable[[], Any]]:
    """Everything that is timed, by name: ours, the floor, the same mathematics by others, and other methods."""
    X, y, X_new = problem.X, problem.y, problem.X_new
    ridge = torch.from_numpy(ntk(X, network=NETWORK) + REGULARIZATION * len(X) * np.eye(len(X)))
    found: dict[str, Callable[[], Any]] = {
        OURS: lambda: _ours().fit(X, y).predict_interval(X_new),
        "one bare Cholesky factorisation": lambda: torch.linalg.cholesky(ridge),
        "one bare Gram matrix": lambda: ntk(X, network=NETWORK),
        "the same by KernelRidge, R + 1 times": lambda: _kernel_ridge(problem),
        "Gaussian process of scikit-learn": lambda: _gaussian_process(problem),
        "deep ensemble of 5 MLPRegressors": lambda: _ensemble(problem),
    }
    optional = {"mapie": (MAPIE, _mapie), "laplace": (LAPLACE, _laplace)}
    for package, (name, job) in optional.items():
        if _works(package):
            found[name] = partial(job, problem)
    return found


def _works(package: str) -> bool:
    """Whether an optional package is there and can be imported: one built for another torch is there and cannot."""
    try:
        import_module(package)
    except Exception:
        return False
    return True


def measure(
    n_rows: int, repetitions: int, report: Callable[[str], None], only: tuple[str, ...] | None = None
) -> dict[str, Any]:
    """Median seconds of every job, or of some, and ratios to ours; jobs take turns, so that a slow moment hits all."""
    found = jobs(Problem.draw(n_rows))
    timed: dict[str, list[float]] = {name: [] for name in found if only is None or name in only}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers that do not converge say so, and that is not the point here
        for repetition in range(repetitions + 1):
            for name, values in timed.items():
                if sum(values) < PATIENCE:
                    time.sleep(_REST)
                    elapsed = _seconds(found[name])
                    if repetition or elapsed > PATIENCE:  # the first round only warms up
                        values.append(elapsed)
                    report(name)
    seconds = {name: statistics.median(values) for name, values in timed.items()}
    ratios = {name: value / seconds[OURS] for name, value in seconds.items()}
    return {"rows": n_rows, "seconds": seconds, "ratios": ratios, "machine": machine()}


def growth(repetitions: int, report: Callable[[str], None]) -> dict[str, Any]:
    """Seconds of ours along five axes, and the exponent of each: the slope of log seconds against log size."""
    return {axis.name: axis.measure(repetitions, report) for axis in AXES}


@dataclass(frozen=True)
class Axis:
    """One size that grows while the others stay."""

    name: str
    sizes: tuple[int, ...]
    job: Callable[[int], Callable[[], Any]]

    def measure(self, repetitions: int, report: Callable[[str], None]) -> dict[str, Any]:
        """Median seconds at every size; the exponent is that of the larger half, where fixed costs no longer count."""
        seconds = {}
        for size in self.sizes:
            run = self.job(size)
            run()
            seconds[size] = statistics.median(_seconds(run) for _ in range(repetitions))
            report(f"{self.name} = {size}")
        large = self.sizes[-max(2, (len(self.sizes) + 1) // 2) :]
        slope = np.polyfit(np.log(large), np.log([seconds[size] for size in large]), 1)[0]
        return {"seconds": seconds, "exponent": float(slope)}


def _rows(n_rows: int) -> Callable[[], Any]:
    problem = Problem.draw(n_rows)
    return lambda: _ours().fit(problem.X, problem.y).predict_interval(problem.X_new)


def _features(n_features: int) -> Callable[[], Any]:
    problem = Problem.draw(1024, n_features=n_features)
    return lambda: _ours().fit(problem.X, problem.y).predict_interval(problem.X_new)


def _points(n_points: int) -> Callable[[], Any]:
    problem = Problem.draw(1024, n_points=n_points)
    fitted = _ours().fit(problem.X, problem.y)
    return lambda: fitted.predict_interval(problem.X_new)


def _replications(count: int) -> Callable[[], Any]:
    problem = Problem.draw(1024)
    return lambda: _ours().set_params(interval=CheapBootstrap(count)).fit(problem.X, problem.y)


def _batches(count: int) -> Callable[[], Any]:
    problem = Problem.draw(4096)
    return lambda: _ours().set_params(interval=Batching(count)).fit(problem.X, problem.y)


AXES = (
    Axis("rows", (256, 512, 1024, 2048, 4096, 8192), _rows),
    Axis("features", (4, 16, 64, 256), _features),
    Axis("points", (1000, 4000, 16000, 64000), _points),
    Axis("replications", (2, 4, 8, 16, 32), _replications),
    Axis("batches", (2, 4, 8, 16, 32), _batches),
)


def machine() -> dict[str, Any]:
    """Where it was measured."""
    return {"python": platform.python_version(), "torch": torch.__version__, "threads": torch.get_num_threads()}


def peak_bytes() -> int:
    """Largest memory of this process so far."""
    if find_spec("resource") is None:  # not on Windows
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def describe(result: dict[str, Any]) -> str:
    """A table for the screen."""
    lines = [f"n = {result['rows']}, d = {FEATURES}, {POINTS} new points, {result['machine']['threads']} threads"]
    lines += list(_lines(result["seconds"], result["ratios"]))
    for axis, found in result["growth"].items():
        times = ", ".join(f"{size}: {1e3 * seconds:.0f} ms" for size, seconds in found["seconds"].items())
        lines.append(f"against {axis}: {times}; exponent {found['exponent']:.2f}")
    lines.append(f"peak memory of this process: {result['peak_bytes'] / 1e9:.2f} GB")
    return "\n".join(lines)


def _lines(seconds: dict[str, float], ratios: dict[str, float]) -> Iterator[str]:
    for name, value in seconds.items():
        yield f"  {name:40} {1e3 * value:10.1f} ms   {ratios[name]:8.2f} ×"


def _ours() -> PNCRegressor:
    return PNCRegressor(interval=CheapBootstrap(REPLICATIONS), network=NETWORK, regularization=REGULARIZATION, random_state=0)


def _kernel_ridge(problem: Problem) -> None:
    from sklearn.kernel_ridge import KernelRidge

    rng, n = np.random.default_rng(0), len(problem.X)
    for rows in (np.arange(n), *(rng.integers(n, size=n) for _ in range(REPLICATIONS))):
        X = problem.X[rows]
        fitted = KernelRidge(alpha=REGULARIZATION * n, kernel="precomputed").fit(ntk(X, network=NETWORK), problem.y[rows])
        fitted.predict(ntk(problem.X_new, X, network=NETWORK))


def _gaussian_process(problem: Problem) -> None:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel

    fitted = GaussianProcessRegressor(RBF() + WhiteKernel(), normalize_y=True).fit(problem.X, problem.y)
    fitted.predict(problem.X_new, return_std=True)


def _ensemble(problem: Problem) -> None:
    from sklearn.neural_network import MLPRegressor

    for seed in range(5):
        MLPRegressor(max_iter=500, random_state=seed).fit(problem.X, problem.y).predict(problem.X_new)


def _seconds(job: Callable[[], Any]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def _mapie(problem: Problem) -> None:
    from mapie.regression import JackknifeAfterBootstrapRegressor
    from sklearn.neural_network import MLPRegressor

    fitted = JackknifeAfterBootstrapRegressor(MLPRegressor(max_iter=500, random_state=0), confidence_level=0.95, random_state=0)
    fitted.fit_conformalize(problem.X, problem.y).predict_interval(problem.X_new)


def _laplace(problem: Problem) -> None:
    """A network trained as laplace-torch's own examples do, then its last layer's posterior and its precision tuned."""
    from laplace import Laplace
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    X, y, X_new = (torch.tensor(values, dtype=torch.float32) for values in (problem.X, problem.y[:, None], problem.X_new))
    model = torch.nn.Sequential(torch.nn.Linear(X.shape[1], 100), torch.nn.ReLU(), torch.nn.Linear(100, 1))
    loader = DataLoader(TensorDataset(X, y), batch_size=200, shuffle=True)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(500):
        for inputs, labels in loader:
            optimiser.zero_grad()
            torch.autograd.backward(torch.nn.functional.mse_loss(model(inputs), labels))
            optimiser.step()
    posterior = Laplace(model, "regression", subset_of_weights="last_layer", hessian_structure="full")
    posterior.fit(loader)
    posterior.optimize_prior_precision()
    posterior(X_new)
