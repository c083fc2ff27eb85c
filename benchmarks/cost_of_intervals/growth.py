"""Seconds of ours as one size grows and the others stay."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from cost_of_intervals.floors import Job
from cost_of_intervals.problem import Problem, ours
from unseed.intervals import Batching, CheapBootstrap


@dataclass(frozen=True)
class Axis:
    """One size that grows while the others stay."""

    name: str
    sizes: tuple[int, ...]
    job: Callable[[int], Job]


def exponent(seconds: Mapping[int, float]) -> float | None:
    """Slope of log seconds against log size over the larger half of the sizes, where fixed costs no longer count.

    Examples
    --------
    >>> round(exponent({2: 9.0, 4: 0.4, 8: 1.6}), 6)
    2.0
    """
    large = [*seconds][-max(2, (len(seconds) + 1) // 2) :]
    if len(large) < 2:
        return None
    return float(np.polyfit(np.log(large), np.log([seconds[size] for size in large]), 1)[0])


def _rows(n_rows: int) -> Job:
    problem = Problem.draw(n_rows)
    return lambda: ours().fit(problem.X, problem.y).predict_interval(problem.X_new)


def _features(n_features: int) -> Job:
    problem = Problem.draw(1024, n_features=n_features)
    return lambda: ours().fit(problem.X, problem.y).predict_interval(problem.X_new)


def _points(n_points: int) -> Job:
    problem = Problem.draw(1024, n_points=n_points)
    fitted = ours().fit(problem.X, problem.y)
    return lambda: fitted.predict_interval(problem.X_new)


def _replications(count: int) -> Job:
    problem = Problem.draw(1024)
    return lambda: ours().set_params(interval=CheapBootstrap(count)).fit(problem.X, problem.y)


def _batches(count: int) -> Job:
    problem = Problem.draw(4096)
    return lambda: ours().set_params(interval=Batching(count)).fit(problem.X, problem.y)


AXES = (
    Axis("rows", (256, 512, 1024, 2048, 4096, 8192), _rows),
    Axis("features", (4, 16, 64, 256), _features),
    Axis("points", (1000, 4000, 16000, 64000), _points),
    Axis("replications", (2, 4, 8, 16, 32), _replications),
    Axis("batches", (2, 4, 8, 16, 32), _batches),
)
