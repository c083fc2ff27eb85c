"""Engines train networks on resample plans."""

from unseed._solvers import Work
from unseed.engines._anchored import AnchoredPosterior, AnchoredReplicates
from unseed.engines._blocks import BlockFit, FullFit, block_rows
from unseed.engines._cost import Cost
from unseed.engines._forecast import Memory
from unseed.engines._kernel import KernelEngine, KernelReplicates
from unseed.engines._linearized import LinearizedEngine, LinearizedReplicates
from unseed.engines._network import NetworkEngine, NetworkReplicates
from unseed.engines._protocol import Convergence, Engine, KnowsOtherSeeds, KnowsPosterior, LeftOut, Network, Task, Trained
from unseed.engines._stacks import HostCounts, StackedSets
from unseed.engines._starts import make_batch
from unseed.engines._stored import StoredBlock, TrainedBlock, store_block
from unseed.engines._tangent import TangentFit

__all__ = [
    "AnchoredPosterior",
    "AnchoredReplicates",
    "BlockFit",
    "Convergence",
    "Cost",
    "Engine",
    "FullFit",
    "HostCounts",
    "KernelEngine",
    "KernelReplicates",
    "KnowsOtherSeeds",
    "KnowsPosterior",
    "LeftOut",
    "LinearizedEngine",
    "LinearizedReplicates",
    "Memory",
    "Network",
    "NetworkEngine",
    "NetworkReplicates",
    "StackedSets",
    "StoredBlock",
    "TangentFit",
    "Task",
    "Trained",
    "TrainedBlock",
    "Work",
    "block_rows",
    "make_batch",
    "store_block",
]
