"""What every model was trained on: units, rows with their labels, and how often each replicate counted each row."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from unseed._persistence.record import Draft, Record
from unseed._random import Streams
from unseed._resampling import Plan
from unseed._scaling import Scaling
from unseed.engines import Network, Task


def put_scaling(draft: Draft, scaling: Scaling) -> None:
    """Shift and scale of features and outputs."""
    for name in ("x_mean", "x_scale", "y_mean", "y_scale"):
        draft.put(name, getattr(scaling, name))


def get_scaling(record: Record) -> Scaling:
    """Units again; scales must be positive."""
    row_shape, n_outputs = record.shape("x_mean"), record.shape("y_mean")
    if len(n_outputs) != 1 or not n_outputs[0] or 0 in row_shape:
        raise record.fault(f"units have the shapes {row_shape} and {n_outputs}")
    scaling = Scaling(
        record.array("x_mean", *row_shape),
        record.array("x_scale", *row_shape),
        record.array("y_mean", *n_outputs),
        record.array("y_scale", *n_outputs),
    )
    if (scaling.x_scale <= 0).any() or (scaling.y_scale <= 0).any():
        raise record.fault("a scale is not positive")
    return scaling


def put_plan(draft: Draft, plan: Plan) -> None:
    """Counts, in one byte each where they fit."""
    draft.put("counts", plan.counts.astype(np.uint8) if plan.counts.max() < 256 else plan.counts)
    draft.facts["reference"] = list(plan.reference)


def get_plan(record: Record) -> Plan:
    """Counts again: every replicate has rows, and the reference ones exist."""
    dtype = record.tensors[record.prefix + "counts"].dtype.name if record.has("counts") else "uint8"
    if dtype not in ("uint8", "int64"):
        raise record.fault(f"counts are {dtype}")
    counts = record.array("counts", None, None, dtype=dtype).astype(np.int64)
    reference = record.fact("reference", list)
    is_known = bool(reference) and all(type(place) is int and 0 <= place < len(counts) for place in reference)
    if not is_known or counts.shape[1] == 0 or (counts < 0).any() or not counts.any(axis=1).all():
        raise record.fault("the plan of resamples does not fit together")
    return Plan(counts, tuple(reference))


def put_groups(draft: Draft, name: str, values: Tensor) -> None:
    """Values (n, groups, k) group by group; the auxiliary network's are left out where they are zero, as they mostly are."""
    draft.put(f"{name}_base", values[:, 0])
    if values.shape[1] > 1 and bool(values[:, 1].any()):
        draft.put(f"{name}_auxiliary", values[:, 1])


def get_groups(record: Record, name: str, shape: tuple[int, int, int], device: torch.device) -> Tensor:
    """Values of shape (n, groups, k) again."""
    n, n_groups, k = shape
    parts = [record.tensor(f"{name}_base", device, n, k)]
    if n_groups == 2:
        auxiliary = f"{name}_auxiliary"
        parts.append(record.tensor(auxiliary, device, n, k) if record.has(auxiliary) else torch.zeros_like(parts[0]))
    return torch.stack(parts, dim=1)


def put_task(draft: Draft, task: Task) -> None:
    """Rows and labels as the network saw them, and the seed of its random streams."""
    draft.put("inputs", task.X)
    put_groups(draft, "labels", task.labels)
    draft.facts["seed"] = task.streams.seed


def get_task(record: Record, n_groups: int, network: Network, regularization: float, device: torch.device) -> Task:
    """Rows and labels again."""
    inputs = record.tensor("inputs", device, *[None] * len(record.shape("inputs")))
    labels = get_groups(record, "labels", (len(inputs), n_groups, record.shape("labels_base")[-1]), device)
    return Task(inputs, labels, network, regularization, Streams(record.whole_number("seed")))


def distinct(plan: Plan, device: torch.device) -> list[Tensor]:
    """Rows of every replicate."""
    return [torch.from_numpy(rows).to(device) for rows, _ in plan.replicates()]
