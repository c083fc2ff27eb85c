"""Networks of infinite width with one output under a loss that bends, and how every replicate is trained."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from unseed._resampling import Plan
from unseed._solvers.curved import ScalarCurvature, solve_bent
from unseed._threads import on_all_cores
from unseed.engines._bent import BentReplicates, bent, centred_influence
from unseed.engines._classes import ClassReplicates
from unseed.engines._cost import systems_at_a_time
from unseed.engines._protocol import Capability, Engine, LeftOut
from unseed.engines._systems import cut_out
from unseed.engines._task import NewPoints, Task, rows_of
from unseed.errors import InvalidInputError
from unseed.kernels import PopulationKernel

_SEEDS: frozenset[Capability] = frozenset({"seeds"})


@dataclass(frozen=True)
class CurvedReplicates(BentReplicates):
    """Networks with one output."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The law over seeds, too: to first order, for a network that is trained without being centred at its start."""
        found = super().capabilities
        return found | _SEEDS if found else found

    @cached_property
    def ridge(self) -> ScalarCurvature:
        """What the loss is near the fit."""
        found = self.full.curvature(self.values)
        assert isinstance(found, ScalarCurvature)
        return found

    @property
    def worst_condition(self) -> float:
        """Of I + S^½KS^½."""
        return self.ridge.condition

    @cached_property
    def unknown(self) -> Tensor:
        """Diagonal of K − K A⁻¹ K. Shape (n,)."""
        known: Tensor = self.ridge.whiten(self.full.kernel).square().sum(0)
        return (self.full.kernel.diagonal() - known).clamp_min(0.0)

    @property
    def used(self) -> float:
        """The trace of S (K − K A⁻¹ K)."""
        return float(self.ridge.root.square() @ self.unknown)

    @cached_property
    def dispersion(self) -> float:
        """φ, where it is not known by Σ w u²/Σ w V: what makes curvature and scatter of the gradients agree."""
        loss, problem = self.task.loss, self.full
        if loss.dispersion is not None:
            return float(loss.dispersion)
        gradient, curvature = loss.gradient(self.outputs, problem.labels), loss.curvature(self.outputs, problem.labels)
        total = float(problem.weights.sum())
        ratio = float(problem.weights @ gradient.square()[:, 0]) / max(float(problem.weights @ curvature[:, 0]), 1e-300)
        return ratio * total / max(total - self.used, 1.0)

    @property
    def amplitude(self) -> Tensor:
        """φ/2λN. Shape (1,)."""
        return self.dual.new_tensor([self.dispersion / (2 * self.full.penalty)])

    def whiten(self, cross: Tensor) -> Tensor:
        """With the factor of the network of all rows."""
        return self.ridge.whiten(cross)

    def posterior_variance(self, points: NewPoints, minus: NewPoints | None = None) -> Tensor:
        """With what is not known of the constant that the fit starts from, as if it had a flat prior: r²/(1ᵀA⁻¹1)."""
        left = self._unexplained(points)
        if minus is not None:
            left = left - self._unexplained(minus)
        return super().posterior_variance(points, minus) + left.square()[:, None] * self.amplitude

    def posterior_covariance(self, points: NewPoints) -> Tensor:
        """The same between points."""
        left = self._unexplained(points)
        return super().posterior_covariance(points) + left[:, None] * left * self.amplitude[:, None, None]

    def _unexplained(self, points: NewPoints) -> Tensor:
        """Of a constant, what the network does not follow: r(x) = 1 − 1ᵀA⁻¹k(x) over (1ᵀA⁻¹1)^½. Shape (n_points,)."""
        one = self.ridge.whiten(torch.ones_like(self.values))[:, 0]
        left: Tensor = (1 - one @ self._white(points)) / one.norm()
        return left

    def influence(self, points: NewPoints) -> Tensor:
        """N w_i ∂f(x)/∂w_i, from the posterior covariance of x and each row. Shape (n_rows, n_points, 1)."""
        cross = self.cross(points)
        joint = cross - self.full.kernel @ self.ridge.solve(cross)
        return centred_influence(self.full, (self.full.pull(self.values) * joint)[:, :, None])

    def leave_out(self, rows: Tensor) -> LeftOut:
        """Without row i it is f_i − C_ii α_i/(1 − S_i C_ii) for one more Newton step; errors are those of what is expected."""
        unknown, weight = self.unknown[rows], self.ridge.root.square()[rows]
        reach = unknown / (1 - weight * unknown).clamp_min(1e-12)
        left_out = self.outputs[rows, 0] - reach * self.full.pull(self.values)[rows, 0]
        one = self.ridge.whiten(torch.ones_like(self.values))
        left = (1 - one.T @ self.ridge.whiten(self.full.kernel[:, rows]))[0] / one.norm()
        unknown = unknown + left.square()
        variance = unknown / (1 - weight * unknown).clamp_min(1e-12)
        errors = self.full.labels[rows, 0] - self.task.loss.inverse_link(left_out)
        return LeftOut(rows, errors[:, None], variance[:, None] * self.amplitude)

    def procedural_covariance(self, points: NewPoints) -> Tensor:
        """Covariance of s(x) − c(x)ᵀs(X) with c(x) = A⁻¹k(x) at the fit: to first order in the start."""
        cross, at = self.cross(points), self.profile(points)
        smoother = self.ridge.solve(cross)
        overlap = smoother.T @ self.kernel.nngp_cross(self.points, at)
        inner = smoother.T @ self.kernel.nngp_product(self.points, self.points, smoother)
        return self.kernel.nngp_gram(at) - overlap - overlap.T + inner

    def procedural_variance(self, points: NewPoints) -> Tensor:
        """Its diagonal."""
        return self.procedural_covariance(points).diagonal().clamp_min(0.0)


def fit_bent(engine: Engine, task: Task, plan: Plan, kernel: PopulationKernel, n_jobs: int | None) -> BentReplicates:
    """Newton's steps for every replicate, cut out of one Gram matrix."""
    if not task.regularization > 0:
        raise InvalidInputError(
            f"regularization={task.regularization:g} must be positive for loss={task.loss.name!r}: without a penalty labels "
            "that can be told apart have no finite fit"
        )
    gram = kernel.ntk_gram(kernel.profile(task.X))
    every = rows_of(plan, task.X.device)

    def solve(replicate: int) -> Tensor:
        rows = every[replicate]
        own = gram if len(rows) == len(gram) else cut_out(gram, gram.diagonal(), rows)
        return solve_bent(bent(task, plan, replicate, own)).dual

    threads = systems_at_a_time(len(every), n_jobs)
    duals = on_all_cores(solve, range(len(every)), task.X.device, threads)
    return replicates_of(engine, task, plan, kernel, duals)


def replicates_of(engine: Engine, task: Task, plan: Plan, kernel: PopulationKernel, duals: Iterable[Tensor]) -> BentReplicates:
    """Replicates from their dual weights (n_r, n_outputs)."""
    dual = task.labels.new_zeros(len(plan.counts), *task.labels.shape)
    for replicate, rows, weights in zip(dual, rows_of(plan, task.X.device), duals, strict=True):
        replicate[rows, 0] = weights
    kind = ClassReplicates if task.loss.is_joint else CurvedReplicates
    return kind(kernel, task.X, dual, engine, task, plan)
