"""Trained networks of infinite width: dual weights are stored, factors are made again when a question needs them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from unseed._persistence.record import Draft, Record
from unseed._persistence.rows import distinct, get_groups, put_groups
from unseed._resampling import Plan
from unseed._scaling import Scaling
from unseed.engines import AnchoredPosterior, AnchoredReplicates, KernelEngine, KernelReplicates, LeftOut, Task
from unseed.engines._systems import Factor
from unseed.kernels import PopulationKernel
from unseed.networks import MLP


@dataclass(frozen=True, eq=False)
class FactorsOnDemand(Sequence[tuple[Tensor, Factor]]):
    """Reference replicates of a model that was loaded: one Gram matrix and one factorisation each, on first use.

    The engine that trained them does it, on the rows it had, so the numbers are those of the model that was saved.
    """

    engine: KernelEngine
    task: Task
    plan: Plan

    @cached_property
    def _references(self) -> Sequence[tuple[Tensor, Factor]]:
        counts = self.plan.counts[list(self.plan.reference)]
        return self.engine.fit(self.task, Plan(counts, tuple(range(len(counts))))).references

    def __getitem__(self, place: Any) -> Any:
        return self._references[place]

    def __len__(self) -> int:
        return len(self.plan.reference)

    def __iter__(self) -> Iterator[tuple[Tensor, Factor]]:
        return iter(self._references)


def put_kernel(draft: Draft, trained: KernelReplicates, plan: Plan) -> None:
    """Dual weights of the rows that each replicate has."""
    rows = distinct(plan, trained.dual.device)
    put_groups(draft, "dual", torch.cat([dual[own] for dual, own in zip(trained.dual, rows, strict=True)]))


def get_kernel(record: Record, engine: KernelEngine, task: Task, plan: Plan) -> KernelReplicates:
    """Ready to predict; nothing is factorised yet."""
    network, device = _as_mlp(record, task.network), task.X.device
    rows = distinct(plan, device)
    lengths = [len(own) for own in rows]
    packed = get_groups(record, "dual", (sum(lengths), *task.labels.shape[1:]), device)
    dual = packed.new_zeros(len(rows), *task.labels.shape)
    for replicate, (own, weights) in enumerate(zip(rows, torch.split(packed, lengths), strict=True)):
        dual[replicate, own] = weights
    kernel = PopulationKernel(network)
    return KernelReplicates(kernel, kernel.profile(task.X), task.contrast, dual, FactorsOnDemand(engine, task, plan))


def put_anchored(draft: Draft, trained: AnchoredReplicates) -> None:
    """Everything; factors in halves, since they are triangles."""
    draft.put("anchors", trained.anchors)
    put_groups(draft, "dual", trained.dual.flatten(0, 1))
    draft.put("noise", trained.noise)
    posterior = trained.posterior
    if posterior is not None:
        place = torch.tril_indices(*posterior.root.shape, device=posterior.root.device)
        draft.put("root", posterior.root[place[0], place[1]])
        draft.put("amplitude", posterior.amplitude)
        for name in ("rows", "errors", "variance"):
            draft.put(f"left_out_{name}", getattr(posterior.left_out, name))


def get_anchored(record: Record, network: object, scaling: Scaling, plan: Plan, device: torch.device) -> AnchoredReplicates:
    """Ready to predict."""
    k, n_features = len(scaling.y_mean), scaling.x_mean.shape
    anchors = record.tensor("anchors", device, None, *n_features)
    flat = get_groups(record, "dual", (len(plan.counts) * len(anchors), 2, k), device)
    dual = flat.reshape(len(plan.counts), len(anchors), 2, k)
    kernel = PopulationKernel(_as_mlp(record, network))
    posterior = _get_posterior(record, len(anchors), k, device) if record.has("root") else None
    return AnchoredReplicates(kernel, anchors, dual, record.tensor("noise", device, k), posterior)


def _get_posterior(record: Record, m: int, k: int, device: torch.device) -> AnchoredPosterior:
    entries = record.tensor("root", device, m * (m + 1) // 2)
    root = entries.new_zeros(m, m)
    place = torch.tril_indices(m, m, device=device)
    root[place[0], place[1]] = entries
    if not bool((root.diagonal() > 0).all()):
        raise record.fault("the posterior's factor is singular")
    rows = record.tensor("left_out_rows", device, None, dtype="int64")
    parts = (record.tensor(f"left_out_{name}", device, len(rows), k) for name in ("errors", "variance"))
    return AnchoredPosterior(root, record.tensor("amplitude", device, k), LeftOut(rows, *parts))


def _as_mlp(record: Record, network: object) -> MLP:
    if not isinstance(network, MLP):
        raise record.fault("a network of infinite width must be an MLP")
    return network
