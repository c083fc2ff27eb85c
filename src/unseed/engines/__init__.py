"""Engines train networks on resample plans."""

from unseed.engines.base import Engine, Task, Trained
from unseed.engines.kernel import KernelEngine, KernelReplicates

__all__ = ["Engine", "KernelEngine", "KernelReplicates", "Task", "Trained"]
