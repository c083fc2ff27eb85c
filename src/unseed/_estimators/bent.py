"""Training under a loss that bends: units, starts and scales that it needs, then network, λ and every replicate."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from unseed._estimators.training import TrainingData, check_regularization, resolve_network, train_rival
from unseed._predictors import CheckedRows, PNCReplicates
from unseed._resampling import full
from unseed._results import FloatArray
from unseed._scaling import Scaling
from unseed._selection import AutoNetwork, Choice, LabelledRows, choose_for_bent
from unseed.engines import Engine, Task
from unseed.errors import InvalidInputError
from unseed.intervals import IntervalMethod
from unseed.losses import Loss, check_labels, is_location
from unseed.networks import MLP, InitialMean

_CHECKED_ROWS, _RIVAL_ROWS, _FIRST_ROWS = 1000, 4096, 256
_QUARTILES = 1.349  # standard deviations of a normal law between its quartiles


class Asked(Protocol):
    """The options that training looks at."""

    network: Any
    regularization: Any
    standardize: bool
    n_jobs: int | None


class BentTraining(NamedTuple):
    """What training has come to."""

    replicates: PNCReplicates
    task: Task
    choice: Choice
    loss: Loss  # in the user's units, with its scale


def check_bent(loss: Loss, engine: Engine, regularization: object) -> None:
    """Refuse what cannot train a loss that bends."""
    if not (engine.is_infinite and engine.converges):
        raise InvalidInputError(
            f"loss={loss.name!r} bends, and so far it takes networks of infinite width trained to convergence; "
            f"use engine='kernel' instead of engine={engine}"
        )
    if regularization == 0:
        raise InvalidInputError(
            f"regularization=0 leaves loss={loss.name!r} without a finite fit where labels can be told apart; use "
            "regularization='auto' or a positive number"
        )


def bent_units(loss: Loss, X: FloatArray, y: FloatArray, weights: FloatArray, *, active: bool) -> tuple[Scaling, Loss]:
    """Units of X, shift and scale of f, and the loss in these.

    What f is shifted by is the best constant. Labels on the scale of f are shifted and scaled with it, where the loss has a
    form for other units; labels on another scale stay as they are.
    """
    counts = torch.tensor(weights)
    scaling = Scaling.fit(X, y, active=active)
    if active and (weights != 1).any():
        mean = np.average(X, axis=0, weights=weights)
        spread = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))
        rounding = 10 * np.finfo(np.float64).eps * np.abs(X).max(axis=0)
        scaling = replace(scaling, x_mean=mean, x_scale=np.where(spread > rounding, spread, 1.0))
    if loss.is_joint:  # its start is among the labels' second group
        return replace(scaling, y_mean=np.zeros(y.shape[1]), y_scale=np.ones(y.shape[1])), loss
    start, scale, own = loss.start(torch.tensor(y), counts).numpy(), np.ones(y.shape[1]), None
    if active and is_location(loss):
        low, high = np.quantile(y, [0.25, 0.75], axis=0)
        spread = np.where(high > low, (high - low) / _QUARTILES, y.std(axis=0))
        unit = float(spread[0]) if spread[0] > 0 else 1.0
        own = loss.rescaled(unit)
        scale = scale if own is None else np.array([unit])
    return replace(scaling, y_mean=start, y_scale=scale), loss if own is None else own


def train_bent(
    asked: Asked,
    engine: Engine,
    method: IntervalMethod,
    loss: Loss,
    data: TrainingData,
    weights: FloatArray,
    mean_of: Callable[[MLP, TrainingData], InitialMean],
) -> BentTraining:
    """Choose what is left to us, train every replicate. ``mean_of`` makes s̄."""
    begun = time.perf_counter()
    scaling, own = bent_units(loss, data.X, data.y, weights, active=bool(asked.standardize))
    data = data._replace(scaling=scaling)
    check_labels(own, torch.tensor(data.y))
    network, given = resolve_network(asked.network), check_regularization(asked.regularization)
    if not isinstance(network, (MLP, AutoNetwork)):
        raise InvalidInputError(f"loss={loss.name!r} knows the kernels of MLP(...) only; network={asked.network!r} is another")
    if isinstance(network, MLP):
        network.first_layer_factors(data.X.shape[1])
    plan = method.plan(len(data.X), data.streams)
    engine.check(plan, data.device, asked.n_jobs)  # before seconds go into the choice of a network
    mean, rows = _rows(own, data, weights, network, mean_of)
    if own.scaled(rows.labels - rows.starts) != own:
        own = _with_scale(own, rows, network, given, engine, data)
    unit = float(scaling.y_scale[0])
    shown = own.rescaled(1 / unit) or own
    own = shown.rescaled(unit) or own  # to the last digit what a model that is read from a file has
    choice = choose_for_bent(rows, network, given, own, data.streams, data.progress)
    words = choice.network if choice.selection is None else choice.selection.best.architecture
    data.progress.say(f"{words}, λ = {choice.regularization:.3g}, {method}", begun)
    task = _task(rows, choice, own, data)
    trained = engine.fit(task, plan, n_jobs=asked.n_jobs)
    chosen = np.sort(data.streams.generator("checked rows").permutation(len(data.X))[:_CHECKED_ROWS])
    checked = CheckedRows(chosen, data.X[chosen], data.y[chosen])
    has_rival = method.uses_posterior and len(data.X) <= _RIVAL_ROWS and given is None
    rival = train_rival(task, choice.selection) if has_rival else None
    replicates = PNCReplicates(trained, plan, scaling, data.device, mean, checked, "constant", rival)
    return BentTraining(replicates, task, choice, shown)


def _rows(
    loss: Loss,
    data: TrainingData,
    weights: FloatArray,
    network: MLP | AutoNetwork,
    mean_of: Callable[[MLP, TrainingData], InitialMean],
) -> tuple[InitialMean, LabelledRows]:
    """S̄, and rows as the loss sees them, each with the f that its fit starts from."""
    inputs, counts = data.inputs, torch.tensor(weights, device=data.device)
    mean = mean_of(network if isinstance(network, MLP) else MLP(), data)
    given = mean(data.X, inputs)
    if is_location(loss):
        return mean, LabelledRows(inputs, data.labels, given, counts)
    labels = torch.tensor(data.y, device=data.device)
    start = loss.start(labels, counts)
    return mean, LabelledRows(inputs, labels, start + given, counts)


def _task(rows: LabelledRows, choice: Choice, loss: Loss, data: TrainingData) -> Task:
    groups = torch.stack([rows.labels, rows.starts], dim=1)
    weights = None if bool((rows.weights == 1).all()) else rows.weights
    return Task(rows.X, groups, choice.network, choice.regularization, data.streams, data.progress, loss, weights)


def _with_scale(
    loss: Loss, rows: LabelledRows, network: MLP | AutoNetwork, given: float | None, engine: Engine, data: TrainingData
) -> Loss:
    """The loss with a scale that the errors of a first fit speak for, itself made with the scale of the labels."""
    rough = loss.scaled(_residuals(rows.labels - rows.starts, rows.weights))
    few = network
    if isinstance(network, AutoNetwork):
        few = replace(network, max_rows=min(network.max_rows or _FIRST_ROWS, _FIRST_ROWS))
    choice = choose_for_bent(rows, few, given, rough, data.streams, data.progress)
    generator = data.streams.generator("scale")
    some = torch.from_numpy(np.sort(generator.permutation(len(rows.X))[:_CHECKED_ROWS])).to(rows.X.device)
    total, part = rows.weights.sum(), rows.some(some)
    choice = replace(choice, regularization=choice.regularization * float(total / part.weights.sum()))  # λN stays
    trained = engine.fit(_task(part, choice, rough, data), full(len(some)))
    left_out = trained.leave_out(torch.arange(len(some), device=some.device))
    return loss.scaled(_residuals(left_out.errors, part.weights))


def _residuals(errors: Tensor, weights: Tensor) -> Tensor:
    return errors[weights > 0, 0]


def classes_of_task(task: Task, scaling: Scaling) -> tuple[FloatArray, npt.NDArray[np.int64], FloatArray]:
    """Rows, numbers of their classes and weights that a classifier was trained on."""
    labels, X = task.labels[:, 0].cpu().numpy(), scaling.from_network(task.X.cpu().numpy())
    codes = labels.argmax(axis=1) if labels.shape[1] > 1 else labels[:, 0].astype(np.int64)
    return X, codes, np.ones(len(X)) if task.weights is None else task.weights.cpu().numpy()
