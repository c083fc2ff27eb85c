"""What linearised and trained networks of finite width answer alike: with the tangent kernels of the reference replicates."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol

from torch import Tensor

from unseed.engines._points import NewPoints
from unseed.engines._protocol import CONVERGED, NOTHING, Capability, LeftOut, Trained
from unseed.engines._shared import pooled_noise
from unseed.engines._tangent import TangentFit
from unseed.errors import InvalidInputError


class FiniteReplicates(Trained, Protocol):
    """Networks of finite width: formulas for converged networks are those of the linearisation."""

    @property
    @abstractmethod
    def references(self) -> list[tuple[TangentFit, Tensor]]:
        """Linearised networks that stand for these data, each with the labels' difference at its rows (n_rows_r, k)."""

    @property
    @abstractmethod
    def is_converged(self) -> bool:
        """Whether training was to go on to convergence."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Formulas for converged networks need one of all rows."""
        has_all_rows = self.is_converged and len(self.references) == 1
        return CONVERGED if has_all_rows else NOTHING

    def noise_variance(self) -> Tensor:
        """Residual sum of squares over its trace, pooled over the reference replicates (also where training stopped early)."""
        return pooled_noise(tangent.noise_moments(labels) for tangent, labels in self.references)

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
