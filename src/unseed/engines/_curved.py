"""Infinitely wide networks under a loss that bends: every replicate by Newton's steps, and what is known around them.

Training is centred at the start, f_θ − f_θᵇ + s̄: for the square that is base − auxiliary + s̄ to the last digit, and it is free
of the start under any loss. The fit is s̄ + Kα with one group of dual weights; those of the auxiliary network are zero.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from unseed._findings import Finding
from unseed._resampling import Plan
from unseed._solvers.curved import Bent, JointCurvature, ScalarCurvature, solve_bent
from unseed._state import State
from unseed._threads import on_all_cores
from unseed.engines._cost import systems_at_a_time
from unseed.engines._expansions import KernelExpansions
from unseed.engines._protocol import CONVERGED, NOTHING, Capability, Engine, LeftOut
from unseed.engines._shared import NEEDS_ALL_ROWS
from unseed.engines._systems import cut_out
from unseed.engines._task import NewPoints, Probe, Task, rows_of, state_of_duals
from unseed.errors import InvalidInputError
from unseed.kernels import PopulationKernel

_SEEDS: frozenset[Capability] = frozenset({"seeds"})


@dataclass(frozen=True)
class BentReplicates(KernelExpansions):
    """Networks of every replicate; what is asked about new points is answered on the scale of the link.

    Attributes
    ----------
    engine : Engine
    task : Task
        Labels of its second group are where each row's fit starts from.
    plan : Plan
    """

    engine: Engine
    task: Task
    plan: Plan

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What a network of all rows has."""
        return CONVERGED if len(self.plan.reference) == 1 else NOTHING

    @cached_property
    def gram(self) -> Tensor:
        """K(X, X). Shape (n, n)."""
        return self.kernel.ntk_gram(self.points)

    def problem(self, replicate: int) -> Bent:
        """What was minimised."""
        (rows,) = rows_of(self.plan, self.inputs.device, [replicate])
        gram = self.gram if len(rows) == len(self.inputs) else cut_out(self.gram, self.gram.diagonal(), rows)
        return bent(self.task, self.plan, replicate, gram)

    @cached_property
    def full(self) -> Bent:
        """Of the network of all rows."""
        if len(self.plan.reference) > 1:
            raise InvalidInputError(NEEDS_ALL_ROWS)
        return self.problem(self.plan.reference[0])

    @cached_property
    def values(self) -> Tensor:
        """Values g at the rows, of the network of all rows. Shape (n, n_outputs)."""
        return self.full.kernel @ self.dual[self.plan.reference[0], :, 0]

    @cached_property
    def outputs(self) -> Tensor:
        """All of f at the rows. Shape (n, n_outputs)."""
        return self.full.outputs(self.values)

    @cached_property
    def means(self) -> Tensor:
        """What is expected of the labels. Shape (n, n_outputs)."""
        return self.task.loss.inverse_link(self.outputs)

    @property
    @abstractmethod
    def used(self) -> float:
        """Effective number of parameters: the trace of how far each label moves its own fit."""

    @property
    @abstractmethod
    def worst_condition(self) -> float:
        """Condition number of the last of Newton's systems."""

    def noise_variance(self) -> Tensor:
        """Mean squared error at the rows, those that one fit uses up taken off their number. Shape (n_outputs,)."""
        total, squares = 0.0, self.dual.new_zeros(self.dual.shape[3])
        for r in self.plan.reference:
            problem = self.problem(r)
            f = problem.outputs(problem.kernel @ self._own(r))
            squares += problem.weights @ (problem.labels - self.task.loss.inverse_link(f)).square()
            total += float(problem.weights.sum())
        return squares / max(total - (self.used if len(self.plan.reference) == 1 else 0.0), 1.0)

    def _own(self, replicate: int) -> Tensor:
        """Dual weights of the rows that a replicate has. Shape (n_r, n_outputs)."""
        (rows,) = rows_of(self.plan, self.inputs.device, [replicate])
        return self.dual[replicate, rows, 0]

    def conditions(self, probe: Probe) -> Iterable[Finding]:
        """Whether Newton's steps have arrived, and how the last of them could be solved."""
        parts = []
        for r in range(len(self.plan.counts)):
            problem, dual = self.problem(r), self._own(r)
            own, pull = dual / problem.share, problem.pull(problem.kernel @ dual)
            parts.append(float((own - pull).abs().max() / pull.abs().max().clamp_min(torch.finfo(own.dtype).tiny)))
        yield Finding(
            "gradient left by Newton's steps, relative",
            max(parts),
            1e-5,
            "the fit did not converge: raise regularization, or look for labels that are far from all others",
            "The fit has converged.",
            "The fit has not converged.",
        )
        if len(self.plan.reference) == 1:
            yield Finding(
                "condition number of the last Newton step",
                self.worst_condition,
                1e12,
                "raise regularization or merge duplicate rows",
                "The arithmetic is accurate.",
                "Rounding errors may show: the equations behind the fit are nearly singular.",
            )
            yield Finding(
                "effective parameters, share of the observations",
                self.used / float(self.full.weights.sum()),
                0.5,
                "the fit uses up much of what the rows say: Laplace's approximation is rough there; more rows would help",
                "There are many more observations than effective parameters.",
                "There are few observations for every effective parameter.",
            )
        yield from self.task.loss.report()

    def state(self) -> State:
        """Dual weights of the rows that each replicate has."""
        rows = rows_of(self.plan, self.dual.device)
        return {"kind": "kernel", **state_of_duals(dual[own] for dual, own in zip(self.dual, rows, strict=True))}


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


def centred_influence(problem: Bent, effect: Tensor) -> Tensor:
    """From w_i times what a unit of weight of row i does at a fixed λN, to N times the effect of its share of all weights.

    For an effect (n_rows, n_points, k); every λN grows with the weights, so that the effects add up to nothing.
    """
    share = (problem.weights / problem.weights.sum())[:, None, None]
    return len(effect) * (effect - share * effect.sum(0))


def bent(task: Task, plan: Plan, replicate: int, gram: Tensor) -> Bent:
    """The problem of a replicate, for the kernel of its distinct rows."""
    counts = torch.from_numpy(plan.counts[replicate]).to(task.X)
    weights = counts if task.weights is None else counts * task.weights
    rows = counts.nonzero()[:, 0]
    labels, own = task.labels[rows], weights[rows]
    return Bent(gram, labels[:, 0], labels[:, 1], own, task.regularization * float(own.sum()), task.loss)


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
    from unseed.engines._classes import ClassReplicates

    dual = task.labels.new_zeros(len(plan.counts), *task.labels.shape)
    for replicate, rows, weights in zip(dual, rows_of(plan, task.X.device), duals, strict=True):
        replicate[rows, 0] = weights
    kind = ClassReplicates if task.loss.is_joint else CurvedReplicates
    return kind(kernel, task.X, dual, engine, task, plan)


def joint_curvature(problem: Bent, values: Tensor) -> JointCurvature:
    """Of a loss whose outputs are one."""
    found = problem.curvature(values)
    assert isinstance(found, JointCurvature)
    return found
