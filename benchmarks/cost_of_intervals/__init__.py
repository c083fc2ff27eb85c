"""What intervals cost, as ratios within one run on one machine: against the floor, and against what else there is."""

from cost_of_intervals.growth import AXES, Axis, exponent
from cost_of_intervals.memory import PeakMemory, peak_bytes
from cost_of_intervals.peers import CHOLESKY, ENTRIES, GRAM, LAPLACE, MAPIE, OURS, SAME, jobs, left_out
from cost_of_intervals.problem import FEATURES, NETWORK, POINTS, REGULARIZATION, REPLICATIONS, Problem, ours
from cost_of_intervals.timing import PATIENCE, REST, Benchmark, machine, seconds
from cost_of_intervals.words import describe

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
