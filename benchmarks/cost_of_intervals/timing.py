"""Taking the time of jobs, so that an end in the middle leaves what is known by then."""

from __future__ import annotations

import platform
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from cost_of_intervals.floors import Job
from cost_of_intervals.growth import AXES, Axis, exponent
from cost_of_intervals.memory import PeakMemory
from cost_of_intervals.peers import OURS, in_short, jobs, left_out
from cost_of_intervals.problem import Problem

PATIENCE = 20.0  # a job that has taken so many seconds is not repeated
REST = 0.25  # seconds between jobs: threads of the last one's libraries spin for a while before they sleep


@dataclass
class Growth:
    """What is known along one axis, by size."""

    seconds: dict[int, float] = field(default_factory=dict)
    peaks: dict[int, int | None] = field(default_factory=dict)

    def figures(self) -> dict[str, Any]:
        """As plain data."""
        return {"seconds": self.seconds, "peak_added_bytes": self.peaks, "exponent": exponent(self.seconds)}


@dataclass
class Benchmark:
    """All jobs on one machine; `figures` tells what is known, at any moment.

    Parameters
    ----------
    n_rows : int
    repetitions : int
        Timings of each job, after one that warms up and tells its memory; the median counts.
    report : callable
        Told the name of everything that is timed.
    """

    n_rows: int
    repetitions: int
    report: Callable[[str], None] = lambda name: None
    timings: dict[str, list[float]] = field(default_factory=dict)
    peaks: dict[str, int | None] = field(default_factory=dict)
    growth: dict[str, Growth] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    memory: PeakMemory = field(default_factory=PeakMemory)
    is_complete: bool = False

    def run(self) -> None:
        """Everything."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # peers that do not converge say so, and that is not the point here
            self.time_peers()
            for axis in AXES:
                self.time_growth(axis)
        self.is_complete = True

    def time_peers(self) -> None:
        """Every job in turns, so that a slow moment hits all; one that fails is left out."""
        self.left_out |= left_out()
        found = jobs(Problem.draw(self.n_rows))
        self.timings = {name: [] for name in found}
        for repetition in range(self.repetitions + 1):
            for name in [*self.timings]:
                if sum(self.timings[name]) < PATIENCE:
                    try:
                        self._time(name, found[name], is_warm=repetition > 0)
                    except Exception as error:
                        self._leave_out(name, error)

    def time_growth(self, axis: Axis) -> None:
        """Ours at every size of an axis; a size that fails is left out."""
        known = self.growth[axis.name] = Growth()
        for size in axis.sizes:
            name = f"{axis.name} = {size}"
            try:
                job = axis.job(size)
                self.memory.begin()
                job()
                peak = self.memory.added()
                known.seconds[size] = statistics.median(seconds(job) for _ in range(self.repetitions))
                known.peaks[size] = peak
            except Exception as error:
                self.left_out[name] = in_short(error)
            self.report(name)

    def figures(self) -> dict[str, Any]:
        """What is known by now, as plain data: median seconds, ratios to ours, memory beyond what was there before."""
        medians = {name: statistics.median(values) for name, values in self.timings.items() if values}
        return {
            "rows": self.n_rows,
            "complete": self.is_complete,
            "seconds": medians,
            "ratios": {name: value / medians[OURS] for name, value in medians.items()} if OURS in medians else {},
            "peak_added_bytes": self.peaks,
            "left_out": self.left_out,
            "machine": machine(),
            "growth": {name: known.figures() for name, known in self.growth.items()},
            "peak_bytes": self.memory.of_process(),
        }

    def _time(self, name: str, job: Job, *, is_warm: bool) -> None:
        time.sleep(REST)
        if not is_warm:
            self.memory.begin()
        elapsed = seconds(job)
        if not is_warm:
            self.peaks[name] = self.memory.added()
        if is_warm or elapsed > PATIENCE:  # the first round only warms up
            self.timings[name].append(elapsed)
        self.report(name)

    def _leave_out(self, name: str, error: Exception) -> None:
        if name == OURS:  # nothing to compare with
            raise error
        self.left_out[name] = in_short(error)
        self.timings.pop(name)
        self.peaks.pop(name, None)


def seconds(job: Job) -> float:
    """How long a job takes now."""
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def machine() -> dict[str, Any]:
    """Where it is measured."""
    return {"python": platform.python_version(), "torch": torch.__version__, "threads": torch.get_num_threads()}
