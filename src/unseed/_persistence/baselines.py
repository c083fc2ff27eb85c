"""A network with dropout, and blocks of rows: the predictors that are not replicates of a plan."""

from __future__ import annotations

import torch

from unseed._persistence.finite import check_length, get_batch, put_batch
from unseed._persistence.record import Draft, Record
from unseed._persistence.rows import get_scaling, put_scaling
from unseed._predictors import BlockNetworks, DropoutNetwork
from unseed._random import Streams
from unseed.engines import BlockFit, FullFit, TrainedBlock
from unseed.engines._blocks import check_step
from unseed.networks import MLP, MLPBatch


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


def put_blocks(draft: Draft, networks: BlockNetworks) -> None:
    """Rows, dual weights and the labels kept of all blocks, one after the other; the network on all rows where there is one."""
    put_scaling(draft.part("scaling"), networks.scaling)
    draft.facts["lengths"] = list(map(len, networks.fits))
    for name in ("X", "dual", "checked"):
        draft.put(name, torch.cat([getattr(fit.load(), name) for fit in networks.fits]))
    draft.facts["has_centre"] = networks.centre is not None
    if networks.centre is not None:
        draft.put("centre", networks.centre.dual)
        for name in ("relative_residual", "iterations", "converged"):
            draft.facts[name] = getattr(networks.centre, name)


def get_blocks(record: Record, network: MLP, device: torch.device, n_jobs: int | None) -> BlockNetworks:
    """The blocks again, each in memory of its own."""
    scaling, lengths = get_scaling(record.part("scaling")), record.fact("lengths", list)
    if len(lengths) < 2 or not all(type(length) is int and length > 0 for length in lengths):
        raise record.fault("lengths of blocks should be positive, and two of them at least")
    n, k = sum(lengths), len(scaling.y_mean)
    n_checked = [len(range(0, length, check_step(length))) for length in lengths]
    rows = record.tensor("X", device, n, *scaling.x_mean.shape)
    duals = torch.split(record.tensor("dual", device, n, k), lengths)
    labels = torch.split(record.tensor("checked", device, sum(n_checked), k), n_checked)
    parts = zip(torch.split(rows, lengths), duals, labels, strict=True)
    fits: list[TrainedBlock] = [BlockFit(X.clone(), dual.clone(), checked.clone()) for X, dual, checked in parts]
    centre = None
    if record.fact("has_centre", bool):
        centre = FullFit(
            rows,
            record.tensor("centre", device, n, k),
            record.fact("relative_residual", float),
            record.whole_number("iterations"),
            record.fact("converged", bool),
        )
    return BlockNetworks(network, scaling, device, fits, centre, n_jobs)
