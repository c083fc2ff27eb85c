"""What linearised and trained networks of finite width answer alike: with the tangent kernels of the reference replicates."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from unseed._findings import Finding
from unseed._random import Streams
from unseed._resampling import Plan
from unseed.engines._protocol import NOTHING, Capability, Engine, LeftOut, Trained
from unseed.engines._shared import conditioning, pooled_noise
from unseed.engines._tangent import TangentFit
from unseed.engines._task import NewPoints, Probe, Task, rows_of
from unseed.errors import InvalidInputError
from unseed.networks import NetworkBatch


@dataclass(frozen=True)
class FiniteReplicates(Trained):
    """Networks of finite width: formulas for converged networks are those of the linearisation."""

    engine: Engine
    task: Task
    plan: Plan
    batch: NetworkBatch

    @abstractmethod
    def linearisations(self) -> Sequence[TangentFit]:
        """Of the networks that stand for these data."""

    @cached_property
    def references(self) -> list[tuple[TangentFit, Tensor]]:
        """Linearised networks that stand for these data, each with the labels' difference at its rows (n_rows_r, k)."""
        rows = rows_of(self.plan, self.task.X.device, self.plan.reference)
        return [(tangent, self.task.difference[own]) for tangent, own in zip(self.linearisations(), rows, strict=True)]

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The engine's, where one network was trained on all rows."""
        return self.engine.capabilities if len(self.references) == 1 else NOTHING

    def conditions(self, probe: Probe) -> Iterable[Finding]:
        """Whether the matrices behind the fit could be inverted accurately."""
        return conditioning(tangent.factor for tangent, _ in self.references)

    def noise_variance(self) -> Tensor:
        """Residual sum of squares over its trace, pooled over the reference replicates (also where training stopped early)."""
        return pooled_noise(tangent.noise_residual(labels) for tangent, labels in self.references)

    def posterior_variance(self, points: NewPoints, minus: NewPoints | None = None) -> Tensor:
        """With the full-data network's own tangent kernel."""
        tangent, labels = self.full_fit
        return tangent.posterior_variance(points.inputs, None if minus is None else minus.inputs, labels)

    def posterior_covariance(self, points: NewPoints) -> Tensor:
        """With the full-data network's own tangent kernel."""
        tangent, labels = self.full_fit
        return tangent.posterior_covariance(points.inputs, labels)

    def leave_out(self, rows: Tensor) -> LeftOut:
        """With the full-data network's own tangent kernel."""
        tangent, labels = self.full_fit
        return tangent.leave_out(rows, labels)

    @property
    def full_fit(self) -> tuple[TangentFit, Tensor]:
        """The one network of all rows, linearised, and its labels."""
        fit, *batches = self.references
        if batches:
            raise InvalidInputError("a posterior and influence values need a network trained to convergence on all rows")
        return fit


def draw_starts(
    batch: NetworkBatch, n_replicates: int, streams: Streams, device: torch.device, dtype: torch.dtype = torch.float64
) -> Tensor:
    """θᵇ of every replicate, drawn on the CPU from the replicate's own stream. Shape (n_replicates, p)."""
    starts = [batch.draw(streams.generator("start", r)).to(dtype) for r in range(n_replicates)]
    return torch.stack(starts).to(device)
