"""Predictors again from what a model's folder holds."""

from __future__ import annotations

from dataclasses import replace

import torch

from unseed._predictors import CheckedRows, EnsembleReplicates, PNCReplicates, with_members
from unseed._random import Streams
from unseed._resampling import Plan, full
from unseed._scaling import Scaling
from unseed._selection import Choice
from unseed._state import Record
from unseed.engines import Engine, KernelEngine, Task, Trained
from unseed.losses import Loss, Squared
from unseed.networks import MLP, restore_initial_mean


def restore_pnc(
    record: Record, engine: Engine, choice: Choice, loss: Loss, initial_mean: object, device: torch.device
) -> tuple[PNCReplicates, Task | None]:
    """A PNC predictor, and the rows and labels it was trained on: None where the model was cut to anchors.

    Parameters
    ----------
    record : Record
    engine : Engine
    choice : Choice
        Network, λ and selection that were saved with it.
    loss : Loss
    initial_mean : object
        The estimator's argument, for its values where it is a function.
    device : torch device
    """
    scaling, plan = Scaling.restore(record.part("scaling")), Plan.restore(record.part("plan"))
    has_rows = record.fact("has_rows", bool)
    task = _restore_rows(record, 2, choice, loss, scaling, plan, device) if has_rows else _no_rows(choice, scaling, device)
    trained = engine.restore(record.part("trained"), task, plan)
    checked = CheckedRows.restore(record.part("checked"), plan.n_rows, scaling.x_mean.shape, scaling.n_outputs)
    sample = torch.tensor(scaling.to_network(checked.X[:2]), device=device)
    mean = restore_initial_mean(record.part("initial_mean"), choice.network, sample, scaling, initial_mean)
    rival = _restore_rival(record, choice, task, plan) if record.fact("has_rival", bool) else None
    noise_kind = record.fact("noise_kind", str)
    return PNCReplicates(trained, plan, scaling, device, mean, checked, noise_kind, rival), task if has_rows else None


def restore_ensemble(record: Record, engine: Engine, choice: Choice, device: torch.device) -> tuple[EnsembleReplicates, Task]:
    """An ensemble for every replicate of a plan, and the rows and labels it was trained on."""
    scaling, plan = Scaling.restore(record.part("scaling")), Plan.restore(record.part("plan"))
    members = record.whole_number("members", at_least=1)
    if not record.fact("has_rows", bool):
        raise record.fault("rows are missing")
    task, trained = _restore_rows(record, 1, choice, Squared(), scaling, plan, device), record.part("trained")
    if trained.has("parameters") and len(plan.counts) * members != trained.shape("parameters")[0]:
        raise record.fault(f"members={members} does not fit the networks that are there")  # before anything that large is made
    networks = engine.restore(trained, task, with_members(plan, members))
    return EnsembleReplicates(networks, plan, scaling, device, members), task


def _restore_rows(
    record: Record, n_groups: int, choice: Choice, loss: Loss, scaling: Scaling, plan: Plan, device: torch.device
) -> Task:
    task = Task.restore(record.part("rows"), n_groups, choice.network, choice.regularization, loss, device)
    if isinstance(choice.network, MLP):
        choice.network.first_layer_factors(scaling.x_mean.size)  # a relevance per feature must fit the features
    if task.X.shape != (plan.n_rows, *scaling.x_mean.shape) or task.labels.shape[2] != scaling.n_outputs:
        raise record.fault("rows, labels, counts and units are not of the same shape")
    return task


def _no_rows(choice: Choice, scaling: Scaling, device: torch.device) -> Task:
    X = torch.zeros(0, *scaling.x_mean.shape, dtype=torch.float64, device=device)
    labels = torch.zeros(0, 2, scaling.n_outputs, dtype=torch.float64, device=device)
    return Task(X, labels, choice.network, choice.regularization, Streams(0))


def _restore_rival(record: Record, choice: Choice, task: Task, plan: Plan) -> Trained:
    rival = None if choice.selection is None else choice.selection.rival
    if rival is None:
        raise record.fault("the selection has no rival, and there are weights of one")
    own = replace(task, network=rival.network, regularization=rival.regularization, loss=Squared())
    return KernelEngine().restore(record.part("rival"), own, full(plan.n_rows))
