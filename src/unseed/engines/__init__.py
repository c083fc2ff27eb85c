"""Engines train networks on resample plans; `Engine` and `Trained` are open to yours."""

from unseed._findings import Finding
from unseed._listing import listed, not_known
from unseed._solvers import Work
from unseed.engines._all_rows import AllRowsReplicates, restore_summed
from unseed.engines._cost import Cost, Memory
from unseed.engines._expansions import AnchoredReplicates
from unseed.engines._kernel import KernelEngine, KernelReplicates
from unseed.engines._landmarks import LandmarkReplicates
from unseed.engines._linearized import LinearizedEngine, LinearizedReplicates
from unseed.engines._network import NetworkEngine, NetworkReplicates
from unseed.engines._protocol import Capability, Convergence, Engine, LeftOut, Trained
from unseed.engines._row_costs import all_rows_cost, landmark_cost, landmark_memory
from unseed.engines._row_sums import ROWS_AT_A_TIME, RowSums, landmark_count, spaces_among
from unseed.engines._solver import SOLVERS, AllRows, Exact, Landmarks, Solver, check_solver, resolve_solver
from unseed.engines._stacks import HostCounts, StackedSets
from unseed.engines._tangent import TangentFit
from unseed.engines._task import NewPoints, Probe, Task
from unseed.networks import Network

__all__ = [
    "ENGINES",
    "ROWS_AT_A_TIME",
    "SOLVERS",
    "AllRows",
    "AllRowsReplicates",
    "AnchoredReplicates",
    "Capability",
    "Convergence",
    "Cost",
    "Engine",
    "Exact",
    "Finding",
    "HostCounts",
    "KernelEngine",
    "KernelReplicates",
    "LandmarkReplicates",
    "Landmarks",
    "LeftOut",
    "LinearizedEngine",
    "LinearizedReplicates",
    "Memory",
    "Network",
    "NetworkEngine",
    "NetworkReplicates",
    "NewPoints",
    "Probe",
    "RowSums",
    "Solver",
    "StackedSets",
    "TangentFit",
    "Task",
    "Trained",
    "Work",
    "all_rows_cost",
    "check_solver",
    "landmark_cost",
    "landmark_count",
    "landmark_memory",
    "resolve_engine",
    "resolve_solver",
    "restore_summed",
    "spaces_among",
]

ENGINES: dict[str, type[Engine]] = listed(
    kernel="unseed.engines._kernel:KernelEngine",
    linearized="unseed.engines._linearized:LinearizedEngine",
    network="unseed.engines._network:NetworkEngine",
)
"""The one list of engines: by these names they are asked for, and by their classes' names they are kept in files."""


def resolve_engine(engine: object) -> Engine:
    """Engine of that name, or the object itself."""
    if isinstance(engine, str) and engine in ENGINES:
        return ENGINES[engine]()
    if isinstance(engine, Engine) and not isinstance(engine, type):
        return engine
    raise not_known("engine", engine, ENGINES, "an object such as NetworkEngine(width=512)")
