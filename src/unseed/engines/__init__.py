"""Engines train networks on resample plans."""

from unseed.engines.anchored import AnchoredPosterior, AnchoredReplicates
from unseed.engines.base import Convergence, Engine, KnowsOtherSeeds, KnowsPosterior, LeftOut, Network, Task, Trained
from unseed.engines.blocks import BlockFit, FullFit, block_rows
from unseed.engines.kernel import KernelEngine, KernelReplicates
from unseed.engines.linearized import LinearizedEngine, LinearizedReplicates
from unseed.engines.network import NetworkEngine, NetworkReplicates
from unseed.engines.stacks import HostCounts, StackedSets
from unseed.engines.starts import make_batch
from unseed.engines.stored import StoredBlock, TrainedBlock, store_block
from unseed.engines.tangent import TangentFit

__all__ = [
    "AnchoredPosterior",
    "AnchoredReplicates",
    "BlockFit",
    "Convergence",
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
    "Network",
    "NetworkEngine",
    "NetworkReplicates",
    "StackedSets",
    "StoredBlock",
    "TangentFit",
    "Task",
    "Trained",
    "TrainedBlock",
    "block_rows",
    "make_batch",
    "store_block",
]
