"""From what a user writes to trained networks, with a clear word where that cannot be; and trained networks from a file."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from unseed._checks import check_number
from unseed._predictors import CheckedRows, PNCReplicates, with_members
from unseed._progress import Progress
from unseed._random import Streams
from unseed._resampling import HashedPlan, Resamples, full, restore_plan
from unseed._residuals import MIN_ROWS
from unseed._results import FloatArray
from unseed._scaling import Scaling
from unseed._selection import AutoNetwork, Choice, Selection, choose_regularization, select_network
from unseed._state import Record
from unseed.engines import Capability, Engine, KernelEngine, Network, Task, Trained, restore_summed
from unseed.errors import InvalidInputError
from unseed.intervals import IntervalMethod
from unseed.losses import Loss, Squared, check_labels, check_trainable, is_bent, resolve_loss
from unseed.networks import (
    MLP,
    AveragedDraws,
    GivenMean,
    InitialMean,
    MonteCarloMean,
    ZeroMean,
    make_batch,
    restore_initial_mean,
)

if TYPE_CHECKING:
    from unseed._estimators.pnc import PNCRegressor

MeanOption = str | MonteCarloMean | Callable[[FloatArray], npt.ArrayLike]

PLAIN_NETWORK = MLP(depth=1, activation="relu", bias_scale=1.0, bias_init="normal", scale_inputs=True)
RIVAL_ROWS = 4096
"""Up to here a second network is trained on all rows, where the data like it nearly as well."""

_MODULE_REGULARIZATION, _MODULE_DRAWS, _CHECKED_ROWS = 1e-6, 100, 1000
_LARGEST_STOPPED = 10.0
"""Ridge over the kernel's mean diagonal where training stops early: λ is in the curvature that a rate must be small for."""


class TrainingData(NamedTuple):
    """Validated data in the user's units, with what goes with them."""

    X: FloatArray  # (n, ...)
    y: FloatArray  # (n, k)
    scaling: Scaling
    streams: Streams
    device: torch.device
    progress: Progress

    @property
    def inputs(self) -> Tensor:
        """Rows as the network sees them, on the device. Shape (n, ...)."""
        return torch.tensor(self.scaling.to_network(self.X), device=self.device)

    @property
    def labels(self) -> Tensor:
        """Labels as the network sees them, on the device. Shape (n, k)."""
        return torch.tensor(self.scaling.to_labels(self.y), device=self.device)


def resolve_network(network: object) -> Network | AutoNetwork:
    """Architecture, or how it is to be chosen."""
    if isinstance(network, str) and network == "auto":
        return AutoNetwork()
    if isinstance(network, torch.nn.Module):
        raise InvalidInputError(
            "network is a torch module; give a function that makes one, such as network=lambda: MyModule(), so that every "
            "replicate has its own start"
        )
    if isinstance(network, (MLP, AutoNetwork)) or (callable(network) and not isinstance(network, str)):
        return network
    raise InvalidInputError(
        f"network={network!r} is not known; use 'auto', AutoNetwork(...), MLP(depth=..., activation=...) or a function that "
        "makes a torch module"
    )


def is_module(network: object) -> bool:
    """Whether the network is made by a user's function, and so may take inputs of any shape."""
    return not isinstance(resolve_network(network), (MLP, AutoNetwork))


def check_regularization(regularization: object) -> float | None:
    """Return λ_n, or None where it is to be chosen."""
    if isinstance(regularization, str):
        if regularization == "auto":
            return None
        raise InvalidInputError(f"regularization={regularization!r} must be 'auto' or a finite number >= 0, such as 1e-6")
    return check_number("regularization", regularization, at_least=0)


def choose(network: object, regularization: object, data: TrainingData, labels: Tensor, *, converges: bool) -> Choice:
    """Network and λ_n as given, or chosen from the data.

    A choice by evidence is one for networks trained to convergence; where training stops earlier (``converges=False``),
    ``"auto"`` is a plain network, whose size suits usual learning rates. λ_n comes with a network that is chosen, from the
    leave-one-out error for a given `MLP`, and is a small constant for a module, whose kernel is not known.
    """
    architecture, given = resolve_network(network), check_regularization(regularization)
    inputs, streams = data.inputs, data.streams
    if isinstance(architecture, AutoNetwork) and not converges:
        if not isinstance(network, str):
            raise InvalidInputError(
                f"network={network} is chosen for converged training, and here it stops earlier; use 'auto'"
            )
        architecture = PLAIN_NETWORK
    if isinstance(architecture, AutoNetwork):
        selection = select_network(inputs, labels, streams, architecture, data.progress)
        return Choice(selection.best.network, selection.best.regularization if given is None else given, selection)
    _check_relevance(architecture, data.scaling)
    if given is not None:
        return Choice(architecture, given)
    if not isinstance(architecture, MLP):
        return Choice(architecture, _MODULE_REGULARIZATION)
    largest = {} if converges else {"largest": _LARGEST_STOPPED}
    return Choice(architecture, choose_regularization(inputs, labels, architecture, streams, **largest))


def train_pnc(
    estimator: PNCRegressor, engine: Engine, method: IntervalMethod, data: TrainingData
) -> tuple[PNCReplicates, Task, Choice]:
    """Refuse what cannot be, choose what is left to us, train every replicate."""
    plan, loss = method.plan(len(data.X), data.streams), resolve_loss(estimator.loss)
    check_pnc(estimator, engine, method, plan.reference, len(data.X))
    engine.check(plan, data.device, estimator.n_jobs)  # before seconds go into the choice of a network
    choice = choose_for_pnc(estimator, engine, method, loss, data, estimator.network)
    mean = mean_of_starts(estimator.initial_mean, engine, choice.network, data)
    check_labels(loss, data.labels)
    groups = torch.stack([data.labels, mean(data.X, data.inputs)], dim=1)  # Algorithm 1: base on y, auxiliary on s̄
    task = Task(data.inputs, groups, choice.network, choice.regularization, data.streams, data.progress, loss)
    trained = engine.fit(task, plan, n_jobs=estimator.n_jobs)
    chosen = np.sort(data.streams.generator("checked rows").permutation(len(data.X))[:_CHECKED_ROWS])
    checked = CheckedRows(chosen, data.X[chosen], data.y[chosen])
    is_possible = engine.is_infinite and method.uses_posterior and len(data.X) <= RIVAL_ROWS
    rival = train_rival(task, choice.selection) if is_possible and estimator.regularization == "auto" else None
    networks = trained, plan, data.scaling, data.device
    return PNCReplicates(*networks, mean, checked, estimator.noise, rival, estimator.standardize), task, choice


def train_rival(task: Task, selection: Selection | None) -> Trained | None:
    """Another architecture on all rows, where the data like it nearly as well and it costs little."""
    other = _task_of_rival(task, selection)
    return None if other is None else KernelEngine().fit(other, full(len(task.X)))


def restore_networks(
    record: Record, engine: Engine, choice: Choice, loss: Loss, device: torch.device, *, n_groups: int = 1, members: int = 1
) -> tuple[tuple[Trained, Resamples, Scaling, torch.device], Task]:
    """What predictors are made of, and what they were trained on: no rows where the model was cut to anchors."""
    scaling, plan = Scaling.restore(record.part("scaling")), restore_plan(record.part("plan"))
    _check_relevance(choice.network, scaling)
    row_shape, n_outputs = scaling.x_mean.shape, scaling.n_outputs
    if record.fact("has_rows", bool):
        task = Task.restore(record.part("rows"), n_groups, choice.network, choice.regularization, loss, device)
        if task.X.shape != (plan.n_rows, *row_shape) or task.labels.shape[2] != n_outputs:
            raise record.fault("rows, labels, counts and units are not of the same shape")
    else:
        X, labels = (torch.zeros(0, *shape, dtype=torch.float64, device=device) for shape in (row_shape, (n_groups, n_outputs)))
        task = Task(X, labels, choice.network, choice.regularization)
    networks = record.part("trained")
    if isinstance(plan, HashedPlan):  # of rows that were summed up
        return (restore_summed(networks, scaling.x_mean.size, n_outputs, device), plan, scaling, device), task
    if members > 1 and networks.has("parameters") and len(plan.counts) * members != networks.shape("parameters")[0]:
        raise record.fault(f"members={members} does not fit the networks that are there")  # before anything that large is made
    trained = engine.restore(networks, task, with_members(plan, members))
    return (trained, plan, scaling, device), task


def restore_pnc(
    record: Record, estimator: PNCRegressor, choice: Choice, loss: Loss, device: torch.device
) -> tuple[PNCReplicates, Task]:
    """What `train_pnc` has come to; the task has no rows where the model was cut to anchors."""
    networks, task = restore_networks(record, estimator.engine_, choice, loss, device, n_groups=2)
    _, plan, scaling, _ = networks
    checked = CheckedRows.restore(record.part("checked"), plan.n_rows, scaling.x_mean.shape, scaling.n_outputs)
    sample = torch.tensor(scaling.to_network(checked.X[:2]), device=device)
    mean = restore_initial_mean(record.part("initial_mean"), choice.network, sample, scaling, estimator.initial_mean)
    rival = None
    if record.fact("has_rival", bool):
        other = _task_of_rival(task, choice.selection)
        if other is None:
            raise record.fault("the selection has no rival, and there are weights of one")
        rival = KernelEngine().restore(record.part("rival"), other, full(plan.n_rows))
    is_known = "is_centred" in record.facts  # models of 0.1.0 do not say
    is_centred = record.fact("is_centred", bool) if is_known else bool(estimator.standardize)
    return PNCReplicates(*networks, mean, checked, record.fact("noise_kind", str), rival, is_centred), task


def _check_relevance(network: Network, scaling: Scaling) -> None:
    """A relevance per feature must fit the features."""
    if isinstance(network, MLP):
        network.first_layer_factors(scaling.x_mean.size)


def _task_of_rival(task: Task, selection: Selection | None) -> Task | None:
    rival = None if selection is None else selection.rival
    if rival is None:
        return None
    loss = task.loss if is_bent(task.loss) else Squared()
    return replace(task, network=rival.network, regularization=rival.regularization, loss=loss)


def check_pnc(estimator: PNCRegressor, engine: Engine, method: IntervalMethod, reference: tuple[int, ...], n_rows: int) -> None:
    """Refuse what the interval, or prediction intervals, need and the engine or the rows do not have."""
    _check_interval(method, engine, estimator.regularization)
    _check_left_out(estimator, engine, method, reference, n_rows)


def _check_interval(method: IntervalMethod, engine: Engine, regularization: object) -> None:
    if method.uses_influence:
        _need(engine, "influence", f"interval={method}")
    if method.uses_influence and regularization == 0:
        raise InvalidInputError(
            "regularization=0 leaves no residuals, and without them the infinitesimal jackknife has no spread to see; "
            "use a positive regularization or interval='half_sampling'"
        )
    if method.uses_posterior:
        _need(engine, "posterior", f"interval={method}", ": use interval='sectioning'")


def _need(engine: Engine, capability: Capability, asked: str, remedy: str = "") -> None:
    """What an option needs of the networks must be what the engine's can be asked."""
    if capability in engine.capabilities:
        return
    if not engine.converges:
        raise InvalidInputError(f"{asked} needs converged training; engine={engine} stops earlier{remedy}")
    raise InvalidInputError(f"{asked} needs the capability {capability!r}; engine={engine} does not name it{remedy}")


def _check_left_out(
    estimator: PNCRegressor, engine: Engine, method: IntervalMethod, reference: tuple[int, ...], n_rows: int
) -> None:
    """What leave-one-out errors are asked for must have them."""
    asked = [f"{name}={getattr(estimator, name)!r}" for name in ("noise", "calibration")]
    asked = [text for text in asked if "varying" in text or "conformal" in text]
    if not asked:
        return
    _need(engine, "posterior", asked[0])
    if len(reference) > 1:
        raise InvalidInputError(f"{asked[0]} needs a network on all rows, and interval={method} has none; use 'sectioning'")
    if n_rows < MIN_ROWS:
        raise InvalidInputError(f"{asked[0]} needs at least {MIN_ROWS} rows, and X has {n_rows}")


def choose_for_pnc(
    estimator: PNCRegressor, engine: Engine, method: IntervalMethod, loss: Loss, data: TrainingData, network: object
) -> Choice:
    """Network and λ for what a given mean leaves, said to whoever watches."""
    start, labels = time.perf_counter(), data.labels
    if callable(estimator.initial_mean):  # what the network has to learn is what a given mean leaves
        labels = labels - GivenMean(estimator.initial_mean, data.scaling)(data.X, data.inputs)
    choice = choose(network, estimator.regularization, data, labels, converges=engine.converges)
    if estimator.regularization == "auto":  # chosen for squares: as large beside this loss
        choice = replace(choice, regularization=choice.regularization * check_trainable(loss) / 2)
    words = choice.network if choice.selection is None else choice.selection.best.architecture
    data.progress.say(f"{words}, λ = {choice.regularization:.3g}, {method}", start)
    return choice


def mean_of_starts(option: MeanOption, engine: Engine, network: Network, data: TrainingData) -> InitialMean:
    """s̄, as asked for."""
    if option == "zero" and not isinstance(network, MLP):
        option = MonteCarloMean(draws=_MODULE_DRAWS)
    if isinstance(option, MonteCarloMean):
        width = getattr(engine, "width", None)  # of engines that have one
        return AveragedDraws(make_batch(network, data.inputs, data.labels.shape[1], width), option.draws, data.streams)
    return GivenMean(option, data.scaling) if callable(option) else ZeroMean(data.labels.shape[1])
