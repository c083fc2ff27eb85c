"""Trained networks of infinite width: dual weights of every replicate, factors of those that stand for these data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from unseed._findings import Finding
from unseed._resampling import Plan
from unseed._solvers import DualRidge
from unseed._state import State
from unseed.engines._anchored import AnchoredReplicates, choose_anchors, paired
from unseed.engines._conditions import conditioning
from unseed.engines._points import NewPoints, Probe
from unseed.engines._protocol import CONVERGED, NOTHING, Capability, LeftOut, Trained
from unseed.engines._shared import influence_values, pooled_noise
from unseed.engines._systems import Factor
from unseed.engines._task import Task, rows_of, state_of_groups
from unseed.errors import InvalidInputError
from unseed.kernels import PopulationKernel, Profile

if TYPE_CHECKING:
    from unseed.engines._kernel import KernelEngine


@dataclass(frozen=True)
class KernelReplicates(Trained):
    """Infinitely wide networks of every replicate.

    Attributes
    ----------
    engine : KernelEngine
    task : Task
    plan : Plan
    dual : Tensor of shape (n_replicates, n_rows, n_groups, n_outputs)
        Zero at rows that a replicate does not have.
    solved : sequence of factors, or None
        Of the reference replicates; None has them made again, by the same engine on the same rows, when first asked for.
    """

    engine: KernelEngine
    task: Task
    plan: Plan
    dual: Tensor
    solved: Sequence[Factor] | None = None

    @cached_property
    def kernel(self) -> PopulationKernel:
        """Of the network, as wide as can be."""
        return self.engine.kernel_of(self.task)

    @cached_property
    def points(self) -> Profile:
        """Training rows, as the kernel sees them."""
        return self.kernel.profile(self.task.X)

    @cached_property
    def factors(self) -> Sequence[Factor]:
        """Of the reference replicates."""
        if self.solved is not None:
            return self.solved
        counts = self.plan.counts[list(self.plan.reference)]
        return self.engine.fit(self.task, Plan(counts, tuple(range(len(counts))))).factors

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The engine's; formulas for converged networks need one of all rows."""
        return self.engine.capabilities - (CONVERGED if len(self.plan.reference) > 1 else NOTHING)

    def predict(self, points: NewPoints, replicates: Sequence[int] | None = None) -> Tensor:
        """One pass over the cross-kernel serves all replicates; where nobody else needs it, it is never held as a whole."""
        chosen = self.dual if replicates is None else self.dual[list(replicates)]
        n_replicates, n_rows, *columns = chosen.shape
        weights = chosen.transpose(0, 1).reshape(n_rows, -1)
        matter = weights.any(0)  # the auxiliary network of a start with mean zero has no weights at all
        flat = weights.new_zeros(len(points), weights.shape[1])
        if points.is_shared:
            flat[:, matter] = self._cross(points).T @ weights[:, matter]
        else:
            flat[:, matter] = self.kernel.ntk_product(self._profile(points), self.points, weights[:, matter])
        return flat.reshape(len(points), n_replicates, *columns).transpose(0, 1)

    def influence(self, points: NewPoints) -> Tensor:
        """Influence values from the one full-data factor; outputs do not mix at infinite width."""
        factor = self.full_factor
        weights = factor.solve(self._cross(points))  # c: (n_rows, n_points)
        columns = factor.residual(self.task.difference).unbind(1)
        return torch.cat([influence_values(r[:, None], weights[:, None, :, None]) for r in columns], dim=2)

    def posterior_variance(self, points: NewPoints, minus: NewPoints | None = None) -> Tensor:
        """Amplitude times K(x, x) − k(x)ᵀA⁻¹k(x), or the same of a difference of points."""
        at, known = self._profile(points), self._known(points)
        prior = at.diagonal.ntk
        if minus is not None:
            other = self._profile(minus)
            prior = prior + other.diagonal.ntk - 2 * paired(self.kernel, at, other)
            known = known - self._known(minus)
        return (prior - known.square().sum(0)).clamp_min(0.0)[:, None] * self.amplitude

    def posterior_covariance(self, points: NewPoints) -> Tensor:
        """Amplitude times K(X, X) − k(X)ᵀA⁻¹k(X), output by output."""
        known = self._known(points)
        return self.amplitude[:, None, None] * (self.kernel.ntk_gram(self._profile(points)) - known.T @ known)

    def leave_out(self, rows: Tensor) -> LeftOut:
        """Closed form, from the full-data factor."""
        errors, variance = self.full_factor.leave_one_out(self.task.difference, rows)
        return LeftOut(rows, errors, variance * self.amplitude)

    def procedural_covariance(self, points: NewPoints) -> Tensor:
        """Covariance of s(x) − c(x)ᵀ s(X), s the untrained network; mean over batches where the plan has batches."""
        at = self._profile(points)
        prior = self.kernel.nngp_gram(at)
        totals = []
        for own, weights in self._smoothers(points):
            overlap = weights.T @ self.kernel.nngp_cross(own, at)
            totals.append(prior - overlap - overlap.T + weights.T @ self._prior_times(own, weights))
        return torch.stack(totals).mean(0)

    def procedural_variance(self, points: NewPoints) -> Tensor:
        """Diagonal of the covariance, without the matrix."""
        at = self._profile(points)
        totals = [
            (weights * (self._prior_times(own, weights) - 2 * self.kernel.nngp_cross(own, at))).sum(0)
            for own, weights in self._smoothers(points)
        ]
        return (at.diagonal.nngp + torch.stack(totals).mean(0)).clamp_min(0.0)

    def noise_variance(self) -> Tensor:
        """Residual sum of squares over its trace, pooled over the reference replicates."""
        labels = self.task.difference
        return pooled_noise(
            factor.noise_residual(labels[rows]) for rows, factor in zip(self._reference_rows, self.factors, strict=True)
        )

    def conditions(self, probe: Probe) -> Iterable[Finding]:
        """Whether the matrices behind the fit could be inverted accurately."""
        return conditioning(self.factors)

    def state(self) -> State:
        """Dual weights of the rows that each replicate has."""
        rows = rows_of(self.plan, self.dual.device)
        packed = torch.cat([dual[own] for dual, own in zip(self.dual, rows, strict=True)])
        return {"kind": "kernel", **state_of_groups("dual", packed)}

    def choose_anchors(self, n_anchors: int) -> Tensor:
        """Rows that say most about all others, by pivoted Cholesky."""
        return choose_anchors(self.kernel, self.points, n_anchors)

    def cut(self, anchors: Tensor, checked: Tensor | None, *, is_rounded: bool) -> AnchoredReplicates:
        """Dual weights of these rows alone, by least squares on all."""
        few = AnchoredReplicates.of(self, anchors, checked)
        return few.rounded() if is_rounded else few

    @property
    def numbers_per_prediction(self) -> int:
        """No row of the cross-kernel: the point, what the kernel knows of it alone, its predictions, all copied a few times."""
        features = sum(layer.features[0].numel() for layer in self.points.layers)
        return 4 * (self.points.directions.shape[1] + features + self.dual.numel() // len(self.points))

    @property
    def numbers_per_point(self) -> int:
        """A row of the cross-kernel, the point's own features, or the predictions: whichever is longest."""
        features = max((layer.features[0].numel() for layer in self.points.layers), default=1)
        return max(len(self.points), features, self.dual.numel() // len(self.points))

    @property
    def full_factor(self) -> DualRidge:
        """Of the one network of all rows."""
        factor, *batches = self.factors
        if batches or not isinstance(factor, DualRidge):
            raise InvalidInputError("a posterior and influence values need a network trained to convergence on all rows")
        return factor

    @property
    def _reference_rows(self) -> list[Tensor]:
        return rows_of(self.plan, self.dual.device, self.plan.reference)

    @cached_property
    def amplitude(self) -> Tensor:
        """Of the Gaussian process, output by output. Shape (n_outputs,)."""
        return self.full_factor.amplitude(self.task.difference)

    def _profile(self, points: NewPoints) -> Profile:
        return points.once(self, "profile", lambda: self.kernel.profile(points.inputs))

    def _cross(self, points: NewPoints) -> Tensor:
        """Shape (n_rows, n_points)."""
        return points.once(self, "cross-kernel", lambda: self.kernel.ntk_cross(self.points, self._profile(points)))

    def _known(self, points: NewPoints) -> Tensor:
        """L⁻¹k(X, x), whose squares are what the rows know of each point. Shape (n_rows, n_points)."""
        return points.once(self, "whitened", lambda: self.full_factor.whiten(self._cross(points)))

    def _smoothers(self, points: NewPoints) -> Iterable[tuple[Profile, Tensor]]:
        """Training points of each reference replicate, and c(x): how far each of their labels moves each prediction."""
        cross = self._cross(points)
        for rows, factor in zip(self._reference_rows, self.factors, strict=True):
            yield self.points[rows], factor.solve(cross[rows])

    def _prior_times(self, own: Profile, weights: Tensor) -> Tensor:
        """Σ(X, X) c without holding Σ(X, X)."""
        return self.kernel.nngp_product(own, own, weights)
