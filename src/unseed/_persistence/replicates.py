"""Predictors as a whole: trained networks with their units, plan, s̄ and the rows they are checked by."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from unseed._persistence.finite import get_batch, get_linearized, get_network, put_batch, put_linearized, put_network
from unseed._persistence.kernel import get_anchored, get_kernel, put_anchored, put_kernel
from unseed._persistence.record import Draft, Record
from unseed._persistence.rows import get_plan, get_scaling, get_task, put_plan, put_scaling, put_task
from unseed._predictors import CheckedRows, EnsembleReplicates, PNCReplicates, with_members
from unseed._random import Streams
from unseed._resampling import Plan, full
from unseed._scaling import Scaling
from unseed._selection import Candidate
from unseed.engines import (
    AnchoredReplicates,
    Engine,
    KernelEngine,
    KernelReplicates,
    LinearizedEngine,
    LinearizedReplicates,
    Network,
    NetworkEngine,
    NetworkReplicates,
    Task,
    Trained,
)
from unseed.errors import ModelFileError
from unseed.networks import AveragedDraws, GivenMean, InitialMean, ZeroMean


@dataclass(frozen=True)
class Setting:
    """What the options of a loaded estimator say: the part of a predictor that is not tensors."""

    engine: Engine
    network: Network
    regularization: float
    device: torch.device


def put_pnc(draft: Draft, replicates: PNCReplicates, task: Task | None) -> None:
    """A PNC predictor; rows are not there where the model was cut to anchors."""
    _put_common(draft, replicates.scaling, replicates.plan, task)
    _put_trained(draft.part("trained"), replicates.trained, replicates.plan)
    _put_mean(draft.part("initial_mean"), replicates.initial_mean)
    checked = draft.part("checked")
    checked.put("indices", replicates.checked.indices)
    checked.put("X", replicates.checked.X)
    checked.put("y", replicates.checked.y)
    draft.facts.update(converges=replicates.converges, noise_kind=replicates.noise_kind, has_rival=replicates.rival is not None)
    if replicates.rival is not None:
        _put_trained(draft.part("rival"), replicates.rival, _everything(replicates.plan))


def get_pnc(record: Record, setting: Setting, mean: object, rival: Candidate | None) -> tuple[PNCReplicates, Task | None]:
    """A PNC predictor again, and the rows and labels it was trained on.

    Parameters
    ----------
    record : Record
    setting : Setting
    mean : object
        The estimator's ``initial_mean``, for its values where it is a function.
    rival : Candidate or None
        The rival of the estimator's selection.
    """
    scaling, plan, task = _get_common(record, setting, n_groups=2)
    trained = _get_trained(record.part("trained"), setting, scaling, plan, task)
    checked = _get_checked(record.part("checked"), scaling, plan)
    sample = torch.tensor(scaling.to_network(checked.X[:2]), device=setting.device)
    initial_mean = _get_mean(record.part("initial_mean"), setting, scaling, sample, mean)
    converges, noise_kind = record.fact("converges", bool), record.fact("noise_kind", str)
    other = _get_rival(record, setting, scaling, plan, task, rival) if record.fact("has_rival", bool) else None
    replicates = PNCReplicates(trained, plan, scaling, setting.device, initial_mean, checked, converges, noise_kind, other)
    return replicates, task


def _get_rival(
    record: Record, setting: Setting, scaling: Scaling, plan: Plan, task: Task | None, rival: Candidate | None
) -> Trained:
    if rival is None:
        raise record.fault("the selection has no rival, and there are weights of one")
    options = Setting(KernelEngine(), rival.network, rival.regularization, setting.device)
    own = None if task is None else replace(task, network=rival.network, regularization=rival.regularization)
    return _get_trained(record.part("rival"), options, scaling, _everything(plan), own)


def put_ensemble(draft: Draft, replicates: EnsembleReplicates, task: Task) -> None:
    """An ensemble for every replicate of a plan."""
    _put_common(draft, replicates.scaling, replicates.plan, task)
    _put_trained(draft.part("trained"), replicates.trained, with_members(replicates.plan, replicates.members))
    draft.facts["members"] = int(replicates.members)


def get_ensemble(record: Record, setting: Setting) -> tuple[EnsembleReplicates, Task]:
    """An ensemble again, and the rows and labels it was trained on."""
    scaling, plan, task = _get_common(record, setting, n_groups=1)
    members = record.whole_number("members", at_least=1)
    if task is None:
        raise record.fault("rows are missing")
    trained = _get_trained(record.part("trained"), setting, scaling, _checked_members(record, plan, members), task)
    return EnsembleReplicates(trained, plan, scaling, setting.device, members), task


def _checked_members(record: Record, plan: Plan, members: int) -> Plan:
    starts = record.tensors.get(f"{record.prefix}trained.parameters")
    if starts is None or len(plan.counts) * members != len(starts):  # before anything that large is made
        raise record.fault(f"members={members} does not fit the networks that are there")
    return with_members(plan, members)


def _put_common(draft: Draft, scaling: Scaling, plan: Plan, task: Task | None) -> None:
    put_scaling(draft.part("scaling"), scaling)
    put_plan(draft.part("plan"), plan)
    draft.facts["has_rows"] = task is not None
    if task is not None:
        put_task(draft.part("rows"), task)


def _get_common(record: Record, setting: Setting, n_groups: int) -> tuple[Scaling, Plan, Task | None]:
    scaling, plan = get_scaling(record.part("scaling")), get_plan(record.part("plan"))
    if not record.fact("has_rows", bool):
        return scaling, plan, None
    task = get_task(record.part("rows"), n_groups, setting.network, setting.regularization, setting.device)
    if task.X.shape != (plan.counts.shape[1], *scaling.x_mean.shape) or task.labels.shape[2] != len(scaling.y_mean):
        raise record.fault("rows, labels, counts and units are not of the same shape")
    return scaling, plan, task


def _put_trained(draft: Draft, trained: Trained, plan: Plan) -> None:
    if isinstance(trained, KernelReplicates):
        draft.facts["kind"] = "kernel"
        put_kernel(draft, trained, plan)
    elif isinstance(trained, AnchoredReplicates):
        draft.facts["kind"] = "anchors"
        put_anchored(draft, trained)
    elif isinstance(trained, LinearizedReplicates):
        draft.facts["kind"] = "linearized"
        put_linearized(draft, trained)
    elif isinstance(trained, NetworkReplicates):
        draft.facts["kind"] = "network"
        put_network(draft, trained)
    else:
        raise ModelFileError(f"networks of type {type(trained).__name__} cannot be saved; use an engine of unseed")


def _get_trained(record: Record, setting: Setting, scaling: Scaling, plan: Plan, task: Task | None) -> Trained:
    kind, engine = record.fact("kind", str), setting.engine
    if kind == "anchors":
        return get_anchored(record, setting.network, scaling, plan, setting.device)
    if task is None:
        raise record.fault("rows are missing")
    if kind == "kernel" and isinstance(engine, KernelEngine):
        return get_kernel(record, engine, task, plan)
    if kind == "linearized" and isinstance(engine, LinearizedEngine):
        return get_linearized(record, engine, task, plan)
    if kind == "network" and isinstance(engine, NetworkEngine):
        return get_network(record, task, plan)
    raise record.fault(f"networks of kind {kind!r:.60} do not go with {engine}")


def _put_mean(draft: Draft, mean: InitialMean) -> None:
    if isinstance(mean, ZeroMean):
        draft.facts["kind"] = "zero"
    elif isinstance(mean, AveragedDraws):
        draft.facts.update(kind="draws", draws=int(mean.draws), seed=mean.streams.seed)
        put_batch(draft, mean.batch)
    else:
        draft.facts["kind"] = "given"


def _get_mean(record: Record, setting: Setting, scaling: Scaling, sample: torch.Tensor, given: object) -> InitialMean:
    kind, n_outputs = record.fact("kind", str), len(scaling.y_mean)
    if kind == "zero":
        return ZeroMean(n_outputs)
    if kind == "draws":
        batch = get_batch(record, setting.network, sample, n_outputs, torch.float64)
        return AveragedDraws(batch, record.whole_number("draws", at_least=1), Streams(record.whole_number("seed")))
    if kind == "given" and callable(given):
        return GivenMean(given, scaling)
    raise record.fault(f"initial mean of kind {kind!r:.60} is not known")


def _get_checked(record: Record, scaling: Scaling, plan: Plan) -> CheckedRows:
    indices = record.array("indices", None, dtype="int64")
    n = plan.counts.shape[1]
    if len(indices) == 0 or indices.min() < 0 or indices.max() >= n:
        raise record.fault(f"rows to check are not among the {n} rows")
    X = record.array("X", len(indices), *scaling.x_mean.shape)
    return CheckedRows(indices.astype(np.int64), X, record.array("y", len(indices), len(scaling.y_mean)))


def _everything(plan: Plan) -> Plan:
    return full(plan.counts.shape[1])
