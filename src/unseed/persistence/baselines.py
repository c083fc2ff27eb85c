"""A network with dropout, and blocks of rows: the predictors that are not replicates of a plan."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from unseed.engines import BlockFit
from unseed.networks import MLP, MLPBatch
from unseed.persistence.finite import check_length, get_batch, put_batch
from unseed.persistence.record import Draft, Record
from unseed.persistence.rows import get_scaling, put_scaling
from unseed.predictors import DropoutNetwork
from unseed.random import Streams
from unseed.scaling import Scaling


def put_dropout(draft: Draft, network: DropoutNetwork) -> None:
    """Parameters, rate and seed."""
    put_scaling(draft.part("scaling"), network.scaling)
    put_batch(draft, network.batch)
    draft.put("parameters", network.parameters)
    draft.put("noise_variance", network.noise_variance)
    draft.facts.update(rate=float(network.rate), seed=network.streams.seed)


def get_dropout(record: Record, network: object, device: torch.device) -> DropoutNetwork:
    """The network again."""
    scaling = get_scaling(record.part("scaling"))
    k = len(scaling.y_mean)
    if not isinstance(network, MLP):
        raise record.fault("a network with dropout must be an MLP")
    batch = get_batch(record, network, torch.zeros(1, *scaling.x_mean.shape), k, torch.float64)
    assert isinstance(batch, MLPBatch)
    parameters = record.tensor("parameters", device, 1, None)
    check_length(record, batch, parameters.shape[1])
    rate, streams = record.fact("rate", float), Streams(record.whole_number("seed"))
    if not 0 < rate < 1:
        raise record.fault(f"rate={rate} should be between 0 and 1")
    return DropoutNetwork(batch, parameters, rate, scaling, streams, record.array("noise_variance", k))


def put_blocks(draft: Draft, blocks: Sequence[BlockFit], scaling: Scaling) -> None:
    """Rows and dual weights of all blocks, one after the other."""
    put_scaling(draft.part("scaling"), scaling)
    draft.facts["lengths"] = [len(block.X) for block in blocks]
    for name in ("X", "dual"):
        draft.put(name, torch.cat([getattr(block, name) for block in blocks]))
    draft.put("squares", torch.stack([block.squares for block in blocks]))
    draft.put("trace", torch.tensor([block.trace for block in blocks], dtype=torch.float64))


def get_blocks(record: Record, device: torch.device) -> tuple[list[BlockFit], Scaling]:
    """The blocks again, each in memory of its own."""
    scaling, lengths = get_scaling(record.part("scaling")), record.fact("lengths", list)
    if len(lengths) < 2 or not all(type(length) is int and length > 0 for length in lengths):
        raise record.fault("lengths of blocks should be positive, and two of them at least")
    n, k = sum(lengths), len(scaling.y_mean)
    rows = torch.split(record.tensor("X", device, n, *scaling.x_mean.shape), lengths)
    duals = torch.split(record.tensor("dual", device, n, k), lengths)
    squares, traces = record.tensor("squares", device, len(lengths), k), record.array("trace", len(lengths))
    parts = zip(rows, duals, squares, traces, strict=True)
    return [BlockFit(X.clone(), dual.clone(), sums.clone(), float(trace)) for X, dual, sums, trace in parts], scaling
