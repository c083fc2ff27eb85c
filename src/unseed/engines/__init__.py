"""Engines train networks on resample plans."""

from unseed.engines.anchored import AnchoredPosterior, AnchoredReplicates
from unseed.engines.base import Convergence, Engine, KnowsOtherSeeds, KnowsPosterior, LeftOut, Network, Task, Trained
from unseed.engines.blocks import BlockFit
from unseed.engines.kernel import KernelEngine, KernelReplicates
from unseed.engines.linearized import LinearizedEngine, LinearizedReplicates
from unseed.engines.network import NetworkEngine, NetworkReplicates
from unseed.engines.starts import make_batch
from unseed.engines.tangent import TangentFit

__all__ = [
    "AnchoredPosterior",
    "AnchoredReplicates",
    "BlockFit",
    "Convergence",
    "Engine",
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
    "TangentFit",
    "Task",
    "Trained",
    "make_batch",
]
