"""What intervals cost, as ratios within one run on one machine: against the floor, and against what else there is."""

from __future__ import annotations

import platform
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unseed.estimators import PNCRegressor
from unseed.intervals import CheapBootstrap
from unseed.kernels import ntk
from unseed.networks import MLP
from unseed.results import FloatArray

OURS = "unseed: cheap bootstrap, R = 4"
REPLICATIONS, POINTS, FEATURES, REGULARIZATION = 4, 256, 16, 1e-6
NETWORK = MLP(bias_scale=1.0, scale_inputs=True)
_SIZES = (256, 512, 1024, 2048)
_PATIENCE = 20.0  # a job that has taken so many seconds is not repeated


@dataclass(frozen=True)
class Problem:
    """Rows to learn from and points to be asked at."""

    X: FloatArray
    y: FloatArray
    X_new: FloatArray

    @classmethod
    def draw(cls, n_rows: int) -> Problem:
        """Sum of sines with a tenth of noise."""
        rng = np.random.default_rng(0)
        X, X_new = rng.normal(size=(n_rows, FEATURES)), rng.normal(size=(POINTS, FEATURES))
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
    return found


def measure(
    n_rows: int, repetitions: int, report: Callable[[str], None], only: tuple[str, ...] | None = None
) -> dict[str, Any]:
    """Median seconds of every job, or of some, and ratios to ours; jobs take turns, so that a slow moment hits all."""
    timed: dict[str, list[float]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers that do not converge say so, and that is not the point here
        for repetition in range(repetitions + 1):
            for name, job in jobs(Problem.draw(n_rows)).items():
                if (only is None or name in only) and sum(timed.get(name, ())) < _PATIENCE:
                    elapsed = _seconds(job)
                    if repetition or elapsed > _PATIENCE:  # the first round only warms up
                        timed.setdefault(name, []).append(elapsed)
                    report(name)
    seconds = {name: statistics.median(values) for name, values in timed.items()}
    ratios = {name: value / seconds[OURS] for name, value in seconds.items()}
    return {"rows": n_rows, "seconds": seconds, "ratios": ratios, "machine": machine()}


def growth(repetitions: int, report: Callable[[str], None]) -> dict[str, Any]:
    """Seconds of ours against n, and the exponent of the last doubling."""
    seconds = {}
    for n_rows in _SIZES:
        problem = Problem.draw(n_rows)

        def job(problem: Problem = problem) -> Any:
            return _ours().fit(problem.X, problem.y).predict_interval(problem.X_new)

        seconds[n_rows] = statistics.median(_seconds(job) for _ in range(repetitions + 1))
        report(f"n = {n_rows}")
    return {"seconds": seconds, "exponent": float(np.log2(seconds[_SIZES[-1]] / seconds[_SIZES[-2]]))}


def machine() -> dict[str, Any]:
    """Where it was measured."""
    return {"python": platform.python_version(), "torch": torch.__version__, "threads": torch.get_num_threads()}


def describe(result: dict[str, Any]) -> str:
    """A table for the screen."""
    lines = [f"n = {result['rows']}, d = {FEATURES}, {POINTS} new points, {result['machine']['threads']} threads"]
    lines += list(_lines(result["seconds"], result["ratios"]))
    times = ", ".join(f"{n}: {1e3 * s:.0f} ms" for n, s in result["growth"]["seconds"].items())
    lines.append(f"against n: {times}; exponent of the last doubling {result['growth']['exponent']:.2f}")
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
