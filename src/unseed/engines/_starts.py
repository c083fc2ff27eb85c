"""Random starts of finite networks: one per replicate, the same on every device."""

from __future__ import annotations

import torch
from torch import Tensor

from unseed._random import Streams
from unseed.networks import NetworkBatch


def draw_starts(
    batch: NetworkBatch, n_replicates: int, streams: Streams, device: torch.device, dtype: torch.dtype = torch.float64
) -> Tensor:
    """θᵇ of every replicate, drawn on the CPU from the replicate's own stream. Shape (n_replicates, p)."""
    starts = [batch.draw(streams.generator("start", r)).to(dtype) for r in range(n_replicates)]
    return torch.stack(starts).to(device)
