"""Trained networks of finite width: parameters are stored, the architecture is described, tangent kernels are made again."""

from __future__ import annotations

import torch
from torch import Tensor

from unseed._persistence.record import Draft, Record
from unseed._persistence.rows import distinct, get_groups, put_groups
from unseed._resampling import Plan
from unseed.engines import (
    Convergence,
    LinearizedEngine,
    LinearizedReplicates,
    Network,
    NetworkReplicates,
    TangentFit,
    Task,
)
from unseed.errors import ModelFileError
from unseed.networks import MLP, MLPBatch, ModuleBatch, NetworkBatch


def put_batch(draft: Draft, batch: NetworkBatch) -> None:
    """An MLP by its width; of a module nothing, since only its own code can make it."""
    draft.facts["width"] = batch.width if isinstance(batch, MLPBatch) else None


def get_batch(record: Record, network: Network, sample: Tensor, n_outputs: int, dtype: torch.dtype) -> NetworkBatch:
    """The architecture again, tried on two rows where it is a module."""
    if isinstance(network, MLP):
        if sample.ndim != 2:
            raise record.fault(f"an MLP cannot have rows of shape {tuple(sample.shape[1:])}")
        return MLPBatch(network, sample.shape[1], n_outputs, record.whole_number("width", at_least=1))
    return ModuleBatch.of(network, sample[:2], n_outputs, dtype)


def check_length(record: Record, batch: NetworkBatch, found: int) -> None:
    """Refuse a network that has not as many parameters as the one that was saved."""
    if isinstance(batch, MLPBatch):
        expected = batch.n_parameters
    else:
        assert isinstance(batch, ModuleBatch)
        expected = sum(parameter.numel() for parameter in batch.template.parameters() if parameter.requires_grad)
    if expected == found:
        return
    if isinstance(batch, MLPBatch):
        raise record.fault(f"{found:,} parameters for a network that has {expected:,}")
    raise ModelFileError(
        f"{record.source}: the network given to load has {expected:,} parameters and the saved one had {found:,}; give the "
        "function that the model was fitted with"
    )


def put_linearized(draft: Draft, trained: LinearizedReplicates) -> None:
    """Parameters where each replicate is linearised, and its dual weights."""
    put_batch(draft, trained.tangents[0].batch)
    draft.put("parameters", torch.cat([tangent.parameters for tangent in trained.tangents]))
    put_groups(draft, "dual", torch.cat(trained.duals))


def get_linearized(record: Record, engine: LinearizedEngine, task: Task, plan: Plan) -> LinearizedReplicates:
    """Ready to predict; tangent kernels are factorised when a question needs them."""
    device, rows = task.X.device, distinct(plan, task.X.device)
    batch = get_batch(record, task.network, task.X, task.labels.shape[2], torch.float64)
    parameters = record.tensor("parameters", device, len(rows), None)
    check_length(record, batch, parameters.shape[1])
    lengths = [len(own) for own in rows]
    packed = get_groups(record, "dual", (sum(lengths), *task.labels.shape[1:]), device)
    tangents = [
        TangentFit(batch, theta[None], task.X[own], torch.from_numpy(counts).to(task.X), task.regularization, engine.training)
        for theta, own, (_, counts) in zip(parameters, rows, plan.replicates(), strict=True)
    ]
    contrasts = [task.contrast[rows[replicate]] for replicate in plan.reference]
    return LinearizedReplicates(tangents, [dual.clone() for dual in torch.split(packed, lengths)], plan.reference, contrasts)


def put_network(draft: Draft, trained: NetworkReplicates) -> None:
    """Parameters before and after training, and how it went."""
    put_batch(draft, trained.batch)
    draft.put("starts", trained.starts)
    draft.put("parameters", trained.parameters)
    convergence = trained.convergence
    draft.put("relative_gradient", convergence.relative_gradient)
    draft.put("loss", convergence.loss)
    draft.put("converged", convergence.converged.astype("uint8"))
    draft.facts.update(
        steps=int(convergence.steps),
        wanted=bool(convergence.wanted),
        dtype=str(trained.parameters.dtype).removeprefix("torch."),
    )


def get_network(record: Record, task: Task, plan: Plan) -> NetworkReplicates:
    """Ready to predict."""
    dtype = record.fact("dtype", str)
    if dtype not in ("float32", "float64"):
        raise record.fault(f"dtype={dtype!r} should be float32 or float64")
    n_replicates, n_groups, k = len(plan.counts), *task.labels.shape[1:]
    batch = get_batch(record, task.network, task.X, k, getattr(torch, dtype))
    starts = record.tensor("starts", task.X.device, n_replicates, None, dtype=dtype)
    check_length(record, batch, starts.shape[1])
    parameters = record.tensor("parameters", task.X.device, n_replicates, n_groups, starts.shape[1], dtype=dtype)
    convergence = Convergence(
        record.array("relative_gradient", n_replicates, n_groups),
        record.array("loss", n_replicates, n_groups),
        record.array("converged", n_replicates, n_groups, dtype="uint8").astype(bool),
        record.whole_number("steps"),
        record.fact("wanted", bool),
    )
    return NetworkReplicates(batch, starts, parameters, plan, task, convergence)
