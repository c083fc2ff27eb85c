"""What networks of infinite width share under a loss that bends, with one output or a logit for every class.

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
from unseed._solvers.curved import Bent
from unseed._state import State
from unseed.engines._expansions import KernelExpansions
from unseed.engines._protocol import CONVERGED, NOTHING, Capability, Engine
from unseed.engines._shared import NEEDS_ALL_ROWS
from unseed.engines._systems import cut_out
from unseed.engines._task import Probe, Task, rows_of, state_of_duals
from unseed.errors import InvalidInputError

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
