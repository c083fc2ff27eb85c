"""The linearized engine: finite networks, replaced by their first-order expansion at the start, in closed form."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from joblib import Parallel, delayed
from torch import Tensor

from unseed.checks import check_whole_number
from unseed.engines.base import LeftOut, Task, check_training, pooled_noise
from unseed.engines.forecast import check_network_memory
from unseed.engines.starts import draw_starts, make_batch
from unseed.engines.tangent import TangentFit
from unseed.errors import InvalidInputError
from unseed.resampling import Plan
from unseed.solvers import Converged, Training


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
        batch = make_batch(task, self.width)
        check_network_memory(batch, plan, 1, 8, task.X.device)
        starts = draw_starts(batch, len(plan.counts), task.streams, task.X.device)

        def solve(replicate: int, rows: Tensor, counts: Tensor) -> tuple[TangentFit, Tensor]:
            X = task.X[rows]
            tangent = TangentFit(batch, starts[replicate][None], X, counts, task.regularization, self.training)
            start = batch.outputs(starts[replicate][None], X[None])[0]
            return tangent, tangent.solve(task.labels[rows] - start[:, None, :])

        jobs = [
            delayed(solve)(r, torch.from_numpy(rows).to(task.X.device), torch.from_numpy(counts).to(task.X))
            for r, (rows, counts) in enumerate(plan.replicates())
        ]
        solved = Parallel(n_jobs=n_jobs, prefer="threads")(jobs)
        references = [torch.from_numpy(plan.counts[r].nonzero()[0]).to(task.X.device) for r in plan.reference]
        return LinearizedReplicates(
            [tangent for tangent, _ in solved],
            [dual for _, dual in solved],
            plan.reference,
            [task.contrast[rows] for rows in references],
        )


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
