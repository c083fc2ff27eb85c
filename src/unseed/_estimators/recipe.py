"""From checked data to trained replicates: the middle of `PNCRegressor.fit`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch

from unseed import _resampling as resampling
from unseed._estimators.options import choose
from unseed._estimators.regressor import TrainingData
from unseed._predictors import CheckedRows, PNCReplicates
from unseed._resampling import Plan
from unseed._residuals import MIN_ROWS
from unseed._results import FloatArray
from unseed._selection import Choice, Selection
from unseed.engines import Capability, Engine, KernelEngine, Network, Task, Trained
from unseed.errors import InvalidInputError
from unseed.intervals import IntervalMethod
from unseed.losses import Loss, Squared, check_labels, check_trainable
from unseed.networks import MLP, AveragedDraws, GivenMean, InitialMean, MonteCarloMean, ZeroMean, make_batch

MeanOption = str | MonteCarloMean | Callable[[FloatArray], npt.ArrayLike]

RIVAL_ROWS = 4096
"""Up to here a second network is trained on all rows, where the data like it nearly as well."""

_MODULE_DRAWS, _PROBES, _CHECKED_ROWS = 100, 50, 1000


@dataclass(frozen=True)
class Outcome:
    """What training has come to.

    Attributes
    ----------
    replicates : PNCReplicates
    task : Task
        Rows and labels, for whoever saves the model.
    choice : Choice
    probe : array of shape (50, n_features)
        Points where `diagnose` looks: half-way between rows, since at the rows themselves an interpolating fit is perfect.
    """

    replicates: PNCReplicates
    task: Task
    choice: Choice
    probe: FloatArray


@dataclass(frozen=True)
class Recipe:
    """How the networks of a `PNCRegressor` are trained; attributes are its arguments, engine and interval resolved."""

    engine: Engine
    interval: IntervalMethod
    network: object
    regularization: object
    initial_mean: MeanOption
    noise: str
    calibration: str
    loss: Loss
    n_jobs: int | None

    def train(self, data: TrainingData) -> Outcome:
        """Refuse what cannot be, choose what is left to us, train every replicate."""
        self._check_convergence()
        plan = self.interval.plan(len(data.X), data.streams)
        self._check_left_out(plan)
        self.engine.check(plan, data.device, self.n_jobs)  # before seconds go into the choice of a network
        choice = self._choose(data)
        mean = self._mean_of_starts(choice.network, data)
        check_labels(self.loss, data.labels)
        groups = torch.stack([data.labels, mean(data.X, data.inputs)], dim=1)  # Algorithm 1: base on y, auxiliary on s̄
        task = Task(data.inputs, groups, choice.network, choice.regularization, data.streams, data.progress, self.loss)
        replicates = PNCReplicates(
            self.engine.fit(task, plan, n_jobs=self.n_jobs),
            plan,
            data.scaling,
            data.device,
            mean,
            _checked_rows(data),
            self.noise,
            self._rival(choice.selection, task),
        )
        pairs = data.streams.generator("probe").integers(len(data.X), size=(2, _PROBES))
        return Outcome(replicates, task, choice, (data.X[pairs[0]] + data.X[pairs[1]]) / 2)

    def _check_convergence(self) -> None:
        method = self.interval
        if method.uses_influence:
            self._need("influence", f"interval={method}")
        if method.uses_influence and self.regularization == 0:
            raise InvalidInputError(
                "regularization=0 leaves no residuals, and without them the infinitesimal jackknife has no spread to see; "
                "use a positive regularization or interval='half_sampling'"
            )
        if method.uses_posterior:
            self._need("posterior", f"interval={method}", ": use interval='sectioning'")

    def _need(self, capability: Capability, asked: str, remedy: str = "") -> None:
        """What an option needs of the networks must be what the engine's can be asked."""
        if capability in self.engine.capabilities:
            return
        if not self.engine.converges:
            raise InvalidInputError(f"{asked} needs converged training; engine={self.engine} stops earlier{remedy}")
        raise InvalidInputError(f"{asked} needs the capability {capability!r}; engine={self.engine} does not name it{remedy}")

    def _check_left_out(self, plan: Plan) -> None:
        """What leave-one-out errors are asked for must have them."""
        asked = [f"{name}={value!r}" for name, value in (("noise", self.noise), ("calibration", self.calibration))]
        asked = [text for text in asked if "varying" in text or "conformal" in text]
        if not asked:
            return
        self._need("posterior", asked[0])
        if len(plan.reference) > 1:
            raise InvalidInputError(
                f"{asked[0]} needs a network on all rows, and interval={self.interval} has none; use 'sectioning'"
            )
        if plan.n_rows < MIN_ROWS:
            raise InvalidInputError(f"{asked[0]} needs at least {MIN_ROWS} rows, and X has {plan.n_rows}")

    def _choose(self, data: TrainingData) -> Choice:
        start = time.perf_counter()
        labels = data.labels
        if callable(self.initial_mean):  # what the network has to learn is what a given mean leaves
            labels = labels - GivenMean(self.initial_mean, data.scaling)(data.X, data.inputs)
        choice = choose(self.network, self.regularization, data, labels, converges=self.engine.converges)
        if self.regularization == "auto":  # chosen for squares: as large beside this loss
            choice = replace(choice, regularization=choice.regularization * check_trainable(self.loss) / 2)
        words = choice.network if choice.selection is None else choice.selection.best.architecture
        data.progress.say(f"{words}, λ = {choice.regularization:.3g}, {self.interval}", start)
        return choice

    def _mean_of_starts(self, network: Network, data: TrainingData) -> InitialMean:
        option = self.initial_mean
        if option == "zero" and not isinstance(network, MLP):
            option = MonteCarloMean(draws=_MODULE_DRAWS)
        if isinstance(option, MonteCarloMean):
            width = getattr(self.engine, "width", None)  # of engines that have one
            batch = make_batch(network, data.inputs, data.labels.shape[1], width)
            return AveragedDraws(batch, option.draws, data.streams)
        if callable(option):
            return GivenMean(option, data.scaling)
        return ZeroMean(data.labels.shape[1])

    def _rival(self, selection: Selection | None, task: Task) -> Trained | None:
        """Another architecture on all rows, where the data like it nearly as well and it costs little."""
        rival = selection.rival if selection is not None and self.regularization == "auto" else None
        is_possible = self.engine.is_infinite and self.interval.uses_posterior and len(task.X) <= RIVAL_ROWS
        if rival is None or not is_possible:
            return None
        other = replace(task, network=rival.network, regularization=rival.regularization, loss=Squared())
        return KernelEngine().fit(other, resampling.full(len(task.X)))


def _checked_rows(data: TrainingData) -> CheckedRows:
    """At most a thousand rows whose leave-one-out errors are looked at."""
    chosen = np.sort(data.streams.generator("checked rows").permutation(len(data.X))[:_CHECKED_ROWS])
    return CheckedRows(chosen, data.X[chosen], data.y[chosen])
