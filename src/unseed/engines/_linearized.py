"""The linearized engine: finite networks, replaced by their first-order expansion at the start, in closed form."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from joblib import Parallel, delayed
from torch import Tensor

from unseed._checks import check_whole_number
from unseed._resampling import Plan
from unseed._solvers import Converged, Training
from unseed.engines._cost import Cost, linearized_cost
from unseed.engines._forecast import check_network_memory
from unseed.engines._protocol import LeftOut, Task, check_training, pooled_noise
from unseed.engines._starts import draw_starts, make_batch
from unseed.engines._tangent import TangentFit
from unseed.errors import InvalidInputError
from unseed.tasks import begun, shares_memory


@dataclass(frozen=True)
class LinearizedEngine:
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

    width: int | None = None
    training: Training = field(default_factory=Converged)

    def __post_init__(self) -> None:
        if self.width is not None:
            check_whole_number("width", self.width, at_least=1)
        check_training("LinearizedEngine", self.training)

    @property
    def converges(self) -> bool:
        """The influence formula is that of the fully trained network."""
        return isinstance(self.training, Converged)

    def fit(self, task: Task, plan: Plan, *, n_jobs: int | None = None) -> LinearizedReplicates:
        """One tangent kernel and one factorisation per replicate."""
        task = task.as_ridge()
        batch = make_batch(task, self.width)
        check_network_memory(batch, plan, 1, 8, task.X.device)
        starts = draw_starts(batch, len(plan.counts), task.streams, task.X.device)

        tangents, labels = [], []
        for start, (own, counts) in zip(starts, plan.replicates(), strict=True):
            rows = torch.from_numpy(own).to(task.X.device)
            weights = torch.from_numpy(counts).to(task.X)
            tangents.append(TangentFit(batch, start[None], task.X[rows], weights, task.regularization, self.training))
            labels.append(task.labels[rows])
        duals = _solve(tangents, labels, plan, n_jobs)
        references = [torch.from_numpy(plan.counts[r].nonzero()[0]).to(task.X.device) for r in plan.reference]
        return LinearizedReplicates(
            tangents,
            duals,
            plan.reference,
            [task.contrast[rows] for rows in references],
        )

    def cost(self, task: Task, plan: Plan) -> Cost:
        """Work and memory, before anything is begun."""
        return linearized_cost(task, plan, make_batch(task, self.width), self.training)

    @property
    def is_infinite(self) -> bool:
        """Networks have a width."""
        return False


Solved = tuple[TangentFit | None, Tensor]


def _solve(tangents: list[TangentFit], labels: list[Tensor], plan: Plan, n_jobs: int | None) -> list[Tensor]:
    """Dual weights of every replicate; those that stand for these data have their factors afterwards, the others have none.

    Workers elsewhere are sent a replicate's rows and start. A factor of all rows is made here, while they are at work; those of
    batches come back from them.
    """
    everyone, n_rows = range(len(tangents)), plan.counts.shape[1]
    kept = set(plan.reference)
    here = [r for r in everyone if shares_memory(n_jobs) or (r in kept and len(tangents[r].X) == n_rows)]
    there = [r for r in everyone if r not in here]
    # A view would be sent with all that it is a view of.
    sent = {r: replace(tangents[r], parameters=tangents[r].parameters.clone()) for r in there}
    found = begun((delayed(_solved)(sent[r], labels[r], keeps=r in kept) for r in there), n_jobs, ahead=2)
    # replace() makes a copy, whose factor is forgotten with it
    own = (delayed(_solved)(tangents[r] if r in kept else replace(tangents[r]), labels[r], keeps=r in kept) for r in here)
    solved: dict[int, Solved] = dict(zip(here, Parallel(n_jobs=n_jobs, require="sharedmem")(own), strict=True))
    solved |= dict(zip(there, found, strict=True))
    for r, (tangent, _) in solved.items():
        tangents[r] = tangents[r] if tangent is None else tangent
    return [solved[r][1] for r in everyone]


def _solved(tangent: TangentFit, labels: Tensor, *, keeps: bool) -> Solved:
    """A task for any worker: what the labels are beyond the start, solved for; with the factor in the fit that is kept."""
    start = tangent.start(tangent.X)
    dual = tangent.solve(labels - start[:, None, :])
    return (tangent if keeps else None), dual


@dataclass(frozen=True)
class LinearizedReplicates:
    """Linearised networks of every replicate, with their dual weights."""

    tangents: list[TangentFit]
    duals: list[Tensor]  # (n_rows_r, n_groups, n_outputs) each
    reference: tuple[int, ...]
    contrasts: list[Tensor]  # labels of the reference replicates

    def predict(self, X: Tensor) -> Tensor:
        """Start plus expansion. Shape (n_replicates, n_points, n_groups, n_outputs)."""
        return torch.stack(
            [
                tangent.start(X)[:, None, :] + tangent.predict(X, dual)
                for tangent, dual in zip(self.tangents, self.duals, strict=True)
            ]
        )

    def influence(self, X: Tensor) -> Tensor:
        """Influence values of the full-data replicate."""
        if len(self.reference) > 1:
            raise InvalidInputError("influence values need a network trained to convergence on all rows")
        tangent, labels = self.tangents[self.reference[0]], self.contrasts[0]
        residual = tangent.factor.residual(labels.reshape(-1, 1)).reshape(labels.shape)
        return tangent.influence(X, residual)

    def posterior_variance(self, X: Tensor, minus: Tensor | None = None) -> Tensor:
        """With the full-data network's own tangent kernel."""
        return self._full_fit.posterior_variance(X, minus, self.contrasts[0])

    def posterior_covariance(self, X: Tensor) -> Tensor:
        """With the full-data network's own tangent kernel."""
        return self._full_fit.posterior_covariance(X, self.contrasts[0])

    def leave_out(self, rows: Tensor) -> LeftOut:
        """With the full-data network's own tangent kernel."""
        return self._full_fit.leave_out(rows, self.contrasts[0])

    @property
    def _full_fit(self) -> TangentFit:
        if len(self.reference) > 1:
            raise InvalidInputError("a posterior needs a network trained to convergence on all rows")
        return self.tangents[self.reference[0]]

    @property
    def numbers_per_prediction(self) -> int:
        """As for any other question."""
        return self.numbers_per_point

    @property
    def numbers_per_point(self) -> int:
        """A row of the cross-kernel, or the predictions (hidden activations are split further inside)."""
        return max(max(dual.numel() for dual in self.duals) * self.duals[0].shape[2], len(self.duals) * 4)

    def noise_variance(self) -> Tensor:
        """Residual sum of squares over its trace, pooled over the reference replicates."""
        return pooled_noise(
            self.tangents[r].noise_moments(labels) for r, labels in zip(self.reference, self.contrasts, strict=True)
        )
