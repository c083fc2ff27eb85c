"""Linearisations of finite networks: what the linearised engine predicts with, and formulas for converged networks need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from unseed._checks import check_whole_number
from unseed._random import Streams
from unseed._resampling import Plan
from unseed._solvers import Converged, DualRidge, PrimalRidge, StoppedRidge, Training, WeightedRidge
from unseed.engines._protocol import CONVERGED, NOTHING, Capability, Engine, LeftOut
from unseed.engines._shared import OwnReplicates, influence_values
from unseed.engines._task import NewPoints, Task, rows_of
from unseed.networks import Evaluation, NetworkBatch, make_batch

POINTS_AT_A_TIME = 32  # whose joint covariance is formed for the sake of its diagonal
_NUMBERS_AT_A_TIME = 1 << 24  # entries of a cross kernel computed at once


@dataclass(frozen=True)
class TangentFit:
    """Ridge regression with one network's Jacobian for features, in float64.

    With more rows than parameters it is solved in the parameters, otherwise in the tangent kernel of the rows.

    Attributes
    ----------
    batch : NetworkBatch
    parameters : Tensor of shape (1, p)
        Where the network is linearised.
    X : Tensor of shape (n_rows, ...)
    counts : Tensor of shape (n_rows,)
    regularization : float
    training : Training
        How long the linearised network is trained; everything about posteriors is that of the converged one.
    """

    batch: NetworkBatch
    parameters: Tensor
    X: Tensor
    counts: Tensor
    regularization: float
    training: Training = field(default_factory=Converged)

    @cached_property
    def factor(self) -> WeightedRidge:
        """Of rows and outputs together; made on first use."""
        rest = self._counts, self.regularization, float(self.counts.sum())
        if self.is_primal:
            return PrimalRidge.factorise(self.batch.jacobian(self.parameters[0], self.X), *rest)
        return DualRidge.factorise(self._kernel(), *rest)

    @property
    def condition(self) -> float:
        """Of the matrix behind it."""
        return self.factor.condition

    @property
    def is_primal(self) -> bool:
        """Whether there are fewer parameters than rows and outputs; without a ridge, only the kernel has a little jitter."""
        return self.batch.n_parameters < len(self.X) * self.batch.n_outputs and self.regularization > 0

    @cached_property
    def trained(self) -> WeightedRidge | StoppedRidge:
        """The map from labels to dual weights after training as long as asked for."""
        if isinstance(self.training, Converged):
            return self.factor
        return StoppedRidge(self._kernel(), self._counts, self.regularization, self.training, float(self.counts.sum()))

    def solve(self, labels: Tensor) -> Tensor:
        """Dual weights of label columns (n_rows, g, k). Same shape."""
        flat = labels.transpose(1, 2).flatten(0, 1)  # (n_rows · k, g)
        return self.trained.solve(flat).reshape(len(labels), labels.shape[2], labels.shape[1]).transpose(1, 2)

    def predict(self, X: Tensor, dual: Tensor) -> Tensor:
        """Expansion at new points with dual weights (n_rows, g, k). Shape (n_points, g, k)."""
        _, n_groups, k = dual.shape
        if self.is_primal:
            together = self.parameters.expand(n_groups, -1)
            moved = self._evaluate(together, self.X).pull(dual.transpose(0, 1).contiguous())
            return torch.cat([self._evaluate(together, chunk).push(moved).transpose(0, 1) for chunk in self._chunks(X)])
        flat = dual.transpose(1, 2).flatten(0, 1).contiguous()  # products depend on the order in memory, in their last bits
        return torch.cat([(block @ flat).reshape(-1, k, n_groups).transpose(1, 2) for block in self._points(X)])

    def start(self, X: Tensor) -> Tensor:
        """Output of the network itself at the parameters. Shape (n_points, k)."""
        return torch.cat([self.batch.outputs(self.parameters, chunk[None])[0] for chunk in self._chunks(X)])

    def influence(self, X: Tensor, residual: Tensor) -> Tensor:
        """Influence values of residuals (n_rows, k). Shape (n_rows, n_points, k)."""
        n, k = residual.shape
        effects = (self.factor.effect(block).reshape(n, k, -1, k) for block in self._points(X))
        return torch.cat([influence_values(residual, effect) for effect in effects], dim=1)

    def posterior_covariance(self, X: Tensor, labels: Tensor) -> Tensor:
        """Of the Gaussian process with this kernel, amplitude fitted to labels. Shape (k, n_points, n_points)."""
        k, points = self.batch.n_outputs, torch.cat(list(self._points(X)))
        joint = self.factor.posterior(points, lambda: self._evaluate(self.parameters, X).tangent_kernel()[0])
        by_output = joint.reshape(len(X), k, len(X), k).diagonal(dim1=1, dim2=3)  # (n_points, n_points, k)
        return (self._amplitude(labels) * by_output).permute(2, 0, 1)

    def posterior_variance(self, X: Tensor, minus: Tensor | None, labels: Tensor) -> Tensor:
        """Diagonal of the covariance, or of that of f(x) − f(x'), a few points at a time. Shape (n_points, k)."""
        parts = []
        for start in range(0, len(X), POINTS_AT_A_TIME):
            here = X[start : start + POINTS_AT_A_TIME]
            m = len(here)
            both = here if minus is None else torch.cat([here, minus[start : start + POINTS_AT_A_TIME]])
            covariance = self.posterior_covariance(both, labels)
            variance = covariance.diagonal(dim1=1, dim2=2)  # (k, points)
            if minus is not None:
                shared = covariance[:, :m, m:].diagonal(dim1=1, dim2=2)
                variance = variance[:, :m] + variance[:, m:] - 2 * shared
            parts.append(variance.T.clamp_min(0.0))
        return torch.cat(parts)

    def mean_variance(self, X: Tensor, minus: Tensor | None, labels: Tensor) -> Tensor:
        """See `Trained.mean_variance`; output by output. Shape (n_points, k)."""
        each = torch.eye(labels.shape[1]).to(labels).expand(len(labels), -1, -1)  # a constant in one output after the other
        dual = self.factor.solve(each.transpose(1, 2).flatten(0, 1)).reshape(each.shape).transpose(1, 2)
        left = [1 - self.predict(at, dual).diagonal(dim1=1, dim2=2) for at in (X, minus) if at is not None]
        known = self.factor.energy(each.flatten(0, 1))
        return (left[0] - left[1] if minus is not None else left[0]).square() / known * self._amplitude(labels)

    def leave_out(self, rows: Tensor, labels: Tensor) -> LeftOut:
        """Closed form; with several outputs each is left out alone."""
        k = self.batch.n_outputs
        entries = (rows[:, None] * k + torch.arange(k, device=rows.device)).flatten()
        errors, variance = self.factor.leave_one_out(labels.reshape(-1, 1), entries)
        return LeftOut(rows, errors.reshape(-1, k), variance.reshape(-1, k) * self._amplitude(labels))

    def _amplitude(self, labels: Tensor) -> Tensor:
        """zᵀA⁻¹z/n of every output by itself. Shape (k,)."""
        return self.factor.energy(torch.diag_embed(labels).flatten(0, 1)) / len(labels)

    def noise_residual(self, labels: Tensor) -> tuple[Tensor, float]:
        """Residuals (n_rows, k) and trace (see `WeightedRidge`); outputs share one trace, which is exact."""
        k = self.batch.n_outputs
        residual, trace = self.trained.noise_residual(labels.reshape(-1, 1), probes=0)
        return residual.reshape(-1, k), trace / k

    @property
    def _counts(self) -> Tensor:
        """Of every row and output."""
        return self.counts.repeat_interleave(self.batch.n_outputs)

    def _kernel(self) -> Tensor:
        """Tangent kernel, rows and outputs together, exactly symmetric. Shape (n_rows · k, n_rows · k)."""
        kernel = self._evaluate(self.parameters, self.X).tangent_kernel()[0]
        return (kernel + kernel.T) / 2

    def _evaluate(self, parameters: Tensor, X: Tensor) -> Evaluation:
        """Of networks (g, p) at the same rows."""
        return self.batch.evaluate(parameters, X.expand(len(parameters), *X.shape))

    def _chunks(self, X: Tensor) -> tuple[Tensor, ...]:
        size = max(1, _NUMBERS_AT_A_TIME // (self.batch.n_outputs**2 * max(len(self.X), self.batch.width or 1)))
        return torch.split(X, size)

    def _points(self, X: Tensor) -> Iterator[Tensor]:
        """New points as the factor wants them: their features, or their kernel with the rows."""
        for chunk in self._chunks(X):
            if self.is_primal:
                yield self.batch.jacobian(self.parameters[0], chunk)
            else:
                yield self.batch.cross_kernel(self.parameters, chunk[None], self.X[None])[0]


def linearised(
    batch: NetworkBatch, parameters: Tensor, task: Task, plan: Plan, replicate: int, training: Training | None = None
) -> TangentFit:
    """A replicate's network, linearised at some parameters (p,)."""
    (rows,) = rows_of(plan, task.X.device, [replicate])
    counts = torch.from_numpy(plan.counts[replicate]).to(task.X)[rows]
    return TangentFit(batch, parameters[None].double(), task.X[rows], counts, task.regularization, training or Converged())


@dataclass(frozen=True)
class FiniteEngine(Engine):
    """Engines of networks of finite width."""

    width: int | None = None

    def __post_init__(self) -> None:
        if self.width is not None:
            check_whole_number("width", self.width, at_least=1)

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Formulas are those of the linearisation of a converged network."""
        return CONVERGED if self.converges else NOTHING

    def batch_for(self, task: Task) -> NetworkBatch:
        """The networks."""
        return make_batch(task.network, task.X, task.labels.shape[2], self.width)


@dataclass(frozen=True)
class FiniteReplicates(OwnReplicates[TangentFit]):
    """Networks of finite width: formulas for converged networks are those of their linearisation."""

    batch: NetworkBatch

    def posterior_variance(self, points: NewPoints, minus: NewPoints | None = None) -> Tensor:
        """With the full-data network's own tangent kernel."""
        tangent, labels = self.full_fit
        return tangent.posterior_variance(points.inputs, None if minus is None else minus.inputs, labels)

    def posterior_covariance(self, points: NewPoints) -> Tensor:
        """With the full-data network's own tangent kernel."""
        tangent, labels = self.full_fit
        return tangent.posterior_covariance(points.inputs, labels)

    def mean_variance(self, points: NewPoints, minus: NewPoints | None = None) -> Tensor:
        """With the full-data network's own tangent kernel."""
        tangent, labels = self.full_fit
        return tangent.mean_variance(points.inputs, None if minus is None else minus.inputs, labels)

    def leave_out(self, rows: Tensor) -> LeftOut:
        """With the full-data network's own tangent kernel."""
        tangent, labels = self.full_fit
        return tangent.leave_out(rows, labels)


def draw_starts(
    batch: NetworkBatch, n_replicates: int, streams: Streams, device: torch.device, dtype: torch.dtype = torch.float64
) -> Tensor:
    """θᵇ of every replicate, drawn on the CPU from the replicate's own stream. Shape (n_replicates, p)."""
    starts = [batch.draw(streams.generator("start", r)).to(dtype) for r in range(n_replicates)]
    return torch.stack(starts).to(device)
