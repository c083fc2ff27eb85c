"""Random starts of finite networks: one per replicate, the same on every device."""

from __future__ import annotations

import torch
from torch import Tensor

from unseed._random import Streams
from unseed.engines._protocol import Task
from unseed.errors import InvalidInputError
from unseed.networks import MLP
from unseed.networks._batch import MLPBatch, NetworkBatch
from unseed.networks._module import ModuleBatch

WIDTH_PER_ROW = 32  # the paper's choice


def make_batch(task: Task, width: int | None, dtype: torch.dtype = torch.float64) -> NetworkBatch:
    """Architecture of the task's networks: the engine's width, else the network's own, else 32 per row."""
    n_outputs = task.labels.shape[2]
    if isinstance(task.network, MLP):
        return MLPBatch(task.network, task.X.shape[1], n_outputs, width or task.network.width or WIDTH_PER_ROW * len(task.X))
    if width is not None:
        raise InvalidInputError(f"width={width} belongs to an MLP; a torch module has its own")
    return ModuleBatch.of(task.network, task.X[:2], n_outputs, dtype)


def draw_starts(
    batch: NetworkBatch, n_replicates: int, streams: Streams, device: torch.device, dtype: torch.dtype = torch.float64
) -> Tensor:
    """θᵇ of every replicate, drawn on the CPU from the replicate's own stream. Shape (n_replicates, p)."""
    starts = [batch.draw(streams.generator("start", r)).to(dtype) for r in range(n_replicates)]
    return torch.stack(starts).to(device)
