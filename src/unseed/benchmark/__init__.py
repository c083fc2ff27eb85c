"""What intervals cost, as ratios within one run on one machine: against the floor, and against what else there is."""

from unseed.benchmark.growth import AXES, Axis, exponent
from unseed.benchmark.memory import PeakMemory, peak_bytes
from unseed.benchmark.peers import CHOLESKY, ENTRIES, GRAM, LAPLACE, MAPIE, OURS, SAME, jobs, left_out
from unseed.benchmark.problem import FEATURES, NETWORK, POINTS, REGULARIZATION, REPLICATIONS, Problem, ours
from unseed.benchmark.timing import PATIENCE, REST, Benchmark, machine, seconds
from unseed.benchmark.words import describe

__all__ = [
    "AXES",
    "CHOLESKY",
    "ENTRIES",
    "FEATURES",
    "GRAM",
    "LAPLACE",
    "MAPIE",
    "NETWORK",
    "OURS",
    "PATIENCE",
    "POINTS",
    "REGULARIZATION",
    "REPLICATIONS",
    "REST",
    "SAME",
    "Axis",
    "Benchmark",
    "PeakMemory",
    "Problem",
    "describe",
    "exponent",
    "jobs",
    "left_out",
    "machine",
    "ours",
    "peak_bytes",
    "seconds",
]
