"""Rows that are summed up instead of held: a model begins on some of them, takes any number more, and is solved when asked."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from unseed._estimators.training import TrainingData, check_pnc, choose_for_pnc, mean_of_starts
from unseed._predictors import CheckedRows, PNCReplicates
from unseed._resampling import HashedPlan
from unseed._results import FloatArray
from unseed._scaling import Scaling
from unseed._selection import Candidate, Choice, Selection
from unseed._state import Record, State
from unseed.engines import (
    ROWS_AT_A_TIME,
    AllRowsReplicates,
    KernelEngine,
    LandmarkReplicates,
    Landmarks,
    RowSums,
    landmark_count,
    landmark_memory,
    spaces_among,
)
from unseed.intervals import IntervalMethod, hashed_plan
from unseed.losses import check_labels, check_trainable, resolve_loss
from unseed.networks import MLP, InitialMean, resolve_activation, restore_initial_mean

if TYPE_CHECKING:
    from unseed._estimators.pnc import PNCRegressor

_CANDIDATES_PER_LANDMARK = 2
_FOR_THE_ROWS, _AT_LEAST = 0.7, 0.1  # of the time that is left once a network is chosen; of all that was given


@dataclass(frozen=True)
class SummedRows:
    """All that is known of the rows so far, and what was decided before they were added up.

    Attributes
    ----------
    choice : Choice
        Network, λ and selection, by the rows that the model began on.
    given : float or None
        λ_n where the user gave one; None has it found by the evidence of all rows.
    half_curvature : float
        Of the loss, V/2: λ_n beside it is as large as λ_n over it beside squares.
    start : tuple of float
        Amplitude of every space by the rows that the model began on.
    mean : InitialMean
    scaling : Scaling
    sums : RowSums
    noise_kind : str
    """

    choice: Choice
    given: float | None
    half_curvature: float
    start: tuple[float, ...]
    mean: InitialMean
    scaling: Scaling
    sums: RowSums
    noise_kind: str

    @classmethod
    def begun(
        cls, estimator: PNCRegressor, method: IntervalMethod, solver: Landmarks, data: TrainingData, n_rows: int, *, alone: bool
    ) -> SummedRows:
        """On some rows: units, network, landmarks; nothing is added up yet. ``n_rows`` is how many are expected.

        ``alone`` says whether the network that was chosen has no other beside it.
        """
        begun, loss, plan = time.perf_counter(), resolve_loss(estimator.loss), hashed_plan(method, data.streams)
        check_pnc(estimator, KernelEngine(), method, plan.reference, n_rows)
        check_labels(loss, data.labels)
        _count_that_fits(solver, plan, data, n_rows, 1)  # before seconds go into the choice of a network
        choice = choose_for_pnc(estimator, KernelEngine(), method, loss, data, estimator.network)
        half_curvature = check_trainable(loss) / 2
        networks, start = _networks_of(choice, choice.regularization / half_curvature, len(data.X), alone=alone)
        mean = mean_of_starts(estimator.initial_mean, KernelEngine(), choice.network, data)
        count = _count_that_fits(solver, plan, data, n_rows, len(networks), time.perf_counter() - begun)
        chosen = data.streams.generator("landmarks").permutation(len(data.X))[: _CANDIDATES_PER_LANDMARK * count]
        spaces = spaces_among(data.inputs[torch.from_numpy(np.sort(chosen)).to(data.device)], networks, count)
        sums = RowSums.none(spaces, plan, data.scaling.n_outputs)
        given = None if estimator.regularization == "auto" else choice.regularization
        return cls(choice, given, half_curvature, start, mean, data.scaling, sums, estimator.noise)

    @property
    def solver(self) -> Landmarks:
        """What handles the rows, with as many landmarks as there are."""
        return Landmarks(max(self.sums.spaces.sizes))

    def plus(self, X: FloatArray, y: FloatArray, step: Callable[[], object] = lambda: None) -> SummedRows:
        """With further rows (n, d) and labels (n, k), in the user's units; ``step`` is called at every `ROWS_AT_A_TIME`."""
        device, sums = self.sums.kept.X.device, self.sums
        for start in range(0, len(X), ROWS_AT_A_TIME):
            rows = X[start : start + ROWS_AT_A_TIME]
            inputs = torch.tensor(self.scaling.to_network(rows), device=device)
            labels = torch.tensor(self.scaling.to_labels(y[start : start + ROWS_AT_A_TIME]), device=device)
            sums = sums.plus(inputs, labels - self.mean(rows, inputs))
            step()
        return replace(self, sums=sums)

    def state(self) -> State:
        """Everything; matrices in half."""
        own = {name: getattr(self, name) for name in ("given", "half_curvature", "noise_kind")}
        choice = {field.name: getattr(self.choice, field.name) for field in fields(self.choice)}
        parts = {"initial_mean": self.mean.state(), "scaling": self.scaling.state(), "sums": self.sums.state()}
        return {**own, "start": list(self.start), "choice": choice, **parts}

    @classmethod
    def restore(cls, record: Record, given_mean: object, device: torch.device) -> SummedRows:
        """From `state`; ``given_mean`` is the function that the estimator was given, where it was one."""
        choice, scaling = record.part("choice"), Scaling.restore(record.part("scaling"))
        sums = RowSums.restore(record.part("sums"), scaling.x_mean.size, scaling.n_outputs, device)
        network, selection = choice.option("network", MLP), choice.option("selection", Selection, type(None))
        mean = restore_initial_mean(record.part("initial_mean"), network, sums.kept.X[:2], scaling, given_mean)
        start = tuple(record.fact("start", list))
        if len(start) != len(sums.spaces.spaces) or not all(type(one) is float and one > 0 for one in start):
            raise record.fault("every space needs an amplitude to begin with")
        return cls(
            Choice(network, choice.option("regularization", float, int), selection),
            record.option("given", float, int, type(None)),
            record.fact("half_curvature", float),
            start,
            mean,
            scaling,
            sums,
            record.fact("noise_kind", str),
        )

    def fitted(self) -> LandmarkReplicates:
        """Networks of every replicate."""
        return self.sums.fitted(self.start, self._given_amplitude)

    def fitted_as_begun(self) -> LandmarkReplicates:
        """The same with the noise that the choice of the network has found, which does not change with the number of rows."""
        return self.sums.fitted(self.start, self._given_amplitude or self.start[0])

    @property
    def _given_amplitude(self) -> float | None:
        """Over the noise, where the user gave λ_n."""
        return None if self.given is None else self.half_curvature / self.given / self.sums.n_rows

    def solved(self, trained: LandmarkReplicates | AllRowsReplicates | None = None) -> tuple[PNCReplicates, Choice]:
        """Predictors of every replicate, by networks that were fitted, and the choice with the λ that all rows speak for."""
        trained = self.fitted() if trained is None else trained
        totals = [one.weight for one in self.sums.plan.summed(self.sums.summands)]
        plan = self.sums.plan
        plan = replace(plan, totals=tuple(totals)) if isinstance(plan, HashedPlan) else plan
        kept = trained.kept
        X = self.scaling.from_network(kept.X.cpu().numpy())
        y = self.scaling.from_labels(kept.labels + self.mean(X, kept.X))
        checked = CheckedRows(kept.positions.cpu().numpy(), X, y)
        replicates = PNCReplicates(trained, plan, self.scaling, kept.X.device, self.mean, checked, self.noise_kind)
        ridge = self.half_curvature / (float(trained.spaces.amplitudes[0]) * self.sums.n_rows)
        return replicates, replace(self.choice, regularization=ridge if self.given is None else self.given)


def _count_that_fits(
    solver: Landmarks, plan: HashedPlan, data: TrainingData, n_rows: int, n_spaces: int, spent: float = 0.0
) -> int:
    """Landmarks of each space, when so many seconds have been spent; a sentence where there is no memory for them."""
    budget = solver.time_budget
    seconds = None if budget is None else _FOR_THE_ROWS * max(budget - spent, _AT_LEAST * budget)
    count = solver.count or landmark_count(n_rows, n_spaces, data.device, seconds)
    n_summands = len(plan.weights(0, 1))
    landmark_memory(n_rows, n_summands, [min(count, len(data.X))] * n_spaces).check(data.device)
    return count


def _networks_of(choice: Choice, ridge: float, n_rows: int, *, alone: bool) -> tuple[list[MLP], tuple[float, ...]]:
    """The network that was chosen, and beside it the best of the other kind, with kinks or without; amplitudes to begin with.

    What a smooth network cannot say of a function a rough one can, and the rows of all decide how much each counts.
    """
    assert isinstance(choice.network, MLP)
    found = [choice.network], [1 / (ridge * n_rows)]
    other = None if alone or choice.selection is None else _other_kind(choice.selection)
    if other is not None:
        found = [*found[0], other.network], [*found[1], 1 / (other.regularization * n_rows)]
    return found[0], tuple(found[1])


def _other_kind(selection: Selection) -> Candidate | None:
    has_kink = resolve_activation(selection.best.network.activation).has_kink
    others = (one for one in selection.candidates if resolve_activation(one.network.activation).has_kink != has_kink)
    return next(others, None)
