"""The linearized engine: finite networks, replaced by their first-order expansion at the start, in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from joblib import Parallel, delayed
from torch import Tensor

from unseed._resampling import Plan
from unseed._solvers import Converged, Training
from unseed._state import Record, State
from unseed.engines._cost import Cost, linearized_cost, network_memory
from unseed.engines._shared import check_training
from unseed.engines._systems import here_and_elsewhere
from unseed.engines._tangent import FiniteEngine, FiniteReplicates, TangentFit, draw_starts, linearised
from unseed.engines._task import NewPoints, Task, check_kept, restore_duals, rows_of, state_of_duals
from unseed.networks import restore_batch
from unseed.tasks import shares_memory


@dataclass(frozen=True)
class LinearizedEngine(FiniteEngine):
    """Finite networks, linearised at their random start and trained in closed form.

    Between the kernel engine (infinite width) and the network engine (real training): it has a finite network's random
    start and random kernel, and no training error. All in float64.

    Parameters
    ----------
    width : int or None
        Neurons per hidden layer of an `MLP`; None takes the network's own width, or 32 per row.
    training : Converged, GradientFlow or GradientDescent
        How long the network is trained.

    Examples
    --------
    >>> LinearizedEngine(width=512)
    LinearizedEngine(width=512, training=Converged())
    """

    training: Training = field(default_factory=Converged)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_training("LinearizedEngine", self.training)

    @property
    def converges(self) -> bool:
        """The influence formula is that of the fully trained network."""
        return isinstance(self.training, Converged)

    def fit(self, task: Task, plan: Plan, *, n_jobs: int | None = None) -> LinearizedReplicates:
        """One tangent kernel and one factorisation per replicate; workers elsewhere are sent its rows and its start."""
        task, batch = task.as_ridge(), self.batch_for(task)
        network_memory(batch, plan, 1, 8).check(task.X.device)
        starts, rows = draw_starts(batch, len(plan.counts), task.streams, task.X.device), rows_of(plan, task.X.device)

        def linearisation(r: int) -> TangentFit:  # a view would be sent with all that it is a view of
            return linearised(batch, starts[r].clone(), task, plan, r, self.training)

        def arguments(r: int) -> tuple[TangentFit, Tensor, bool]:
            return linearisation(r), task.labels[rows[r]], r in plan.reference

        if shares_memory(n_jobs):
            found = Parallel(n_jobs=n_jobs, require="sharedmem")(delayed(_solved)(*arguments(r)) for r in range(len(starts)))
        else:
            found = here_and_elsewhere(_solved, arguments, plan, n_jobs)
        tangents = [kept or linearisation(r) for r, (kept, _) in enumerate(found)]
        return LinearizedReplicates(self, task, plan, batch, tangents, [dual for _, dual in found])

    def cost(self, task: Task, plan: Plan) -> Cost:
        """Work and memory, before anything is begun."""
        return linearized_cost(task, plan, self.batch_for(task), self.training)

    def restore(self, record: Record, task: Task, plan: Plan) -> LinearizedReplicates:
        """Ready to predict; tangent kernels are factorised when a question needs them."""
        check_kept(record, "linearized", task, self)
        parameters = record.tensor("parameters", task.X.device, len(plan.counts), None)
        batch = restore_batch(record, task.network, task.X, task.labels.shape[2], parameters.shape[1])
        duals = [dual.clone() for dual in restore_duals(record, task, plan.distinct_rows)]
        task = task.as_ridge()
        tangents = [linearised(batch, start.clone(), task, plan, r, self.training) for r, start in enumerate(parameters)]
        return LinearizedReplicates(self, task, plan, batch, tangents, duals)

    def describe(self) -> str:
        """In a few words."""
        return "finite width, linearised, in closed form"


def _solved(tangent: TangentFit, labels: Tensor, keeps: bool) -> tuple[TangentFit | None, Tensor]:
    """A task for any worker: what the labels are beyond the start, solved for; with the factor in the fit that is kept."""
    dual = tangent.solve(labels - tangent.start(tangent.X)[:, None, :])
    return (tangent if keeps else None), dual.contiguous()  # as it is read from a file, to the last bit


@dataclass(frozen=True)
class LinearizedReplicates(FiniteReplicates):
    """Linearised networks of every replicate, with their dual weights."""

    tangents: list[TangentFit]
    duals: list[Tensor]  # (n_rows_r, n_groups, n_outputs) each

    def predict(self, points: NewPoints, replicates: Sequence[int] | None = None) -> Tensor:
        """Start plus expansion. Shape (n_replicates, n_points, n_groups, n_outputs)."""
        chosen = range(len(self.tangents)) if replicates is None else replicates
        X = points.inputs
        return torch.stack([self.tangents[r].start(X)[:, None, :] + self.tangents[r].predict(X, self.duals[r]) for r in chosen])

    def influence(self, points: NewPoints) -> Tensor:
        """Influence values of the full-data replicate."""
        tangent, labels = self.full_fit
        residual = tangent.factor.residual(labels.reshape(-1, 1)).reshape(labels.shape)
        return tangent.influence(points.inputs, residual)

    def state(self) -> State:
        """Parameters where each replicate is linearised, and its dual weights."""
        return {
            "kind": "linearized",
            "width": self.batch.width,
            "parameters": torch.cat([tangent.parameters for tangent in self.tangents]),
            **state_of_duals(self.duals),
        }

    def ridges(self) -> list[TangentFit]:
        """Of the networks that stand for these data."""
        return [self.tangents[r] for r in self.plan.reference]

    @property
    def numbers_per_point(self) -> int:
        """A row of the cross-kernel, or the predictions (hidden activations are split further inside)."""
        return max(max(dual.numel() for dual in self.duals) * self.duals[0].shape[2], len(self.duals) * 4)
