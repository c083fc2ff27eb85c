"""The linear systems of a plan's replicates: which matrices are made, which are shared, who solves them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from joblib import delayed, effective_n_jobs
from torch import Tensor

from unseed._machine import uninitialised
from unseed._resampling import Plan
from unseed._solvers import Converged, DualRidge, StoppedRidge, Training, restore, solve_ridge
from unseed._threads import on_all_cores
from unseed.engines._cost import LARGE_ROWS, shares_one_gram, systems_at_a_time
from unseed.kernels import PopulationKernel
from unseed.networks import MLP
from unseed.tasks import begun, shares_memory

Factor = DualRidge | StoppedRidge
Solution = tuple[Tensor, Factor | None]

STACKED_ROWS = 2048
"""Up to here a GPU factorises systems of equal size together; a larger one keeps it busy alone."""

_ROWS_AT_A_TIME = 256


@dataclass(frozen=True)
class System:
    """One replicate: its distinct rows, how often each counts, their labels, and whether its factor is kept.

    Attributes
    ----------
    rows : Tensor of shape (n,)
    counts : Tensor of shape (n,)
    labels : Tensor of shape (n, n_groups, n_outputs)
    keeps_factor : bool
    """

    rows: Tensor
    counts: Tensor
    labels: Tensor
    keeps_factor: bool


@dataclass(frozen=True)
class Solver:
    """How a replicate's network is trained.

    Attributes
    ----------
    training : Converged, GradientFlow or GradientDescent
    regularization : float
        λ_n.
    is_mixed : bool
        Whether a float32 factor may do where none is kept.
    """

    training: Training
    regularization: float
    is_mixed: bool = False

    def __call__(self, matrix: Tensor, system: System) -> Solution:
        """Dual weights in the shape of the labels, and the factor where it is kept; the matrix is overwritten."""
        columns = system.labels.flatten(1)
        if isinstance(self.training, Converged) and not system.keeps_factor:
            solved = solve_ridge(matrix, system.counts, self.regularization, columns, is_mixed=self.is_mixed)
            return solved.reshape(system.labels.shape), None
        factor = self._factorise(matrix, system.counts)
        return factor.solve(columns).reshape(system.labels.shape), factor if system.keeps_factor else None

    def together(self, matrices: list[Tensor], systems: Sequence[System]) -> list[Solution]:
        """Several systems: on a GPU those of one size are factorised in one call."""
        if len(systems) == 1:
            return [self(matrices[0], systems[0])]
        factors = DualRidge.factorise_stack(matrices, [system.counts for system in systems], self.regularization)
        return [
            (factor.solve(system.labels.flatten(1)).reshape(system.labels.shape), factor if system.keeps_factor else None)
            for factor, system in zip(factors, systems, strict=True)
        ]

    def can_stack(self, system: System, device: torch.device) -> bool:
        """Whether a system may be factorised together with others of its size."""
        is_small = device.type == "cuda" and len(system.rows) <= STACKED_ROWS
        return is_small and isinstance(self.training, Converged) and not self.is_mixed

    def _factorise(self, matrix: Tensor, counts: Tensor) -> Factor:
        if isinstance(self.training, Converged):
            return DualRidge.factorise(matrix, counts, self.regularization)
        return StoppedRidge(matrix, counts, self.regularization, self.training, float(counts.sum()))


def systems_of(plan: Plan, labels: Tensor) -> list[System]:
    """Every replicate of a plan; factors of its reference replicates are kept."""
    found = []
    for r, (rows, counts) in enumerate(plan.replicates()):
        chosen = torch.from_numpy(rows).to(labels.device)
        found.append(System(chosen, torch.from_numpy(counts).to(labels), labels[chosen], r in plan.reference))
    return found


def solve_systems(
    network: MLP, X: Tensor, systems: Sequence[System], solver: Solver, plan: Plan, n_jobs: int | None
) -> list[Solution]:
    """Solve every system on its rows of X: cut out of one Gram matrix where they overlap, each from its own elsewhere."""
    if not shares_memory(n_jobs):
        return _elsewhere(network, X, systems, solver, n_jobs)
    stacks = _stacks(systems, solver, X.device)
    if shares_one_gram(plan):
        solve = _from_one_gram(network, X, systems, solver)
    else:

        def solve(stack: list[int]) -> list[Solution]:
            return _solve_alone(network, *_parts(X, [systems[s] for s in stack]), solver)

    # Large systems, and one that costs more than a core's share of all, have all cores; the others have one each.
    alone = _n_alone(stacks, systems, n_jobs)
    threads = systems_at_a_time(len(stacks) - alone, n_jobs)
    found = [solve(stack) for stack in stacks[:alone]]
    return _in_order(stacks, found + on_all_cores(solve, stacks[alone:], X.device, threads))


def _from_one_gram(network: MLP, X: Tensor, systems: Sequence[System], solver: Solver) -> Callable[[list[int]], list[Solution]]:
    """Solve systems cut out of one Gram matrix; one of all rows whose factor is kept may have the matrix itself.

    It overwrites the lower triangle and the diagonal only, and all others are cut out of the upper one, whoever is first.
    """
    kernel = PopulationKernel(network)
    shared = kernel.ntk_gram(kernel.profile(X))
    diagonal = shared.diagonal().clone()
    owner = next((s for s, system in enumerate(systems) if system.keeps_factor and len(system.rows) == len(X)), None)

    def solve(stack: list[int]) -> list[Solution]:
        matrices = [shared if s == owner else cut_out(shared, diagonal, systems[s].rows) for s in stack]
        return solver.together(matrices, [systems[s] for s in stack])

    return solve


def _n_alone(stacks: list[list[int]], systems: Sequence[System], n_jobs: int | None) -> int:
    """How many of the stacks, which begin with the largest, are solved one after the other."""
    if int(effective_n_jobs(n_jobs)) > 1:
        return 0
    costs = [sum(len(systems[s].rows) ** 3 for s in stack) for stack in stacks]
    large = sum(len(systems[stack[0]].rows) >= LARGE_ROWS for stack in stacks)
    return max(large, int(costs[0] * torch.get_num_threads() > 1.2 * sum(costs)))


def _elsewhere(network: MLP, X: Tensor, systems: Sequence[System], solver: Solver, n_jobs: int | None) -> list[Solution]:
    """Tasks for workers that are sent the rows of a system and nothing else; a factor of all rows stays in this process."""
    here = [s for s, system in enumerate(systems) if system.keeps_factor and len(system.rows) == len(X)]
    there = [s for s in range(len(systems)) if s not in here]
    tasks = (delayed(_solve_alone)(network, *_parts(X, [systems[s]]), solver) for s in there)
    found = begun(tasks, n_jobs, ahead=2)
    own = [_solve_alone(network, [X], [systems[s]], solver) for s in here]  # while the others are at work
    return _in_order([[s] for s in here + there], own + list(found))


def _solve_alone(network: MLP, inputs: list[Tensor], systems: list[System], solver: Solver) -> list[Solution]:
    """A task for any worker: it is sent the rows of its systems and nothing else."""
    kernel = PopulationKernel(network)
    return solver.together([kernel.ntk_gram(kernel.profile(X)) for X in inputs], systems)


def _parts(X: Tensor, systems: list[System]) -> tuple[list[Tensor], list[System]]:
    return [X[system.rows] for system in systems], systems


def cut_out(matrix: Tensor, diagonal: Tensor, rows: Tensor) -> Tensor:
    """Rows and columns out of the upper triangle, rows in ascending order. Shape (len(rows), len(rows))."""
    part = uninitialised(matrix, len(rows), len(rows))

    def fill(start: int) -> None:
        chunk = slice(start, start + _ROWS_AT_A_TIME)
        if matrix.device.type == "cpu":  # by NumPy, three times as fast as torch
            np.take(matrix[rows[chunk]].numpy(), rows.numpy(), axis=1, out=part[chunk].numpy(), mode="clip")
        else:
            torch.index_select(matrix[rows[chunk]], 1, rows, out=part[chunk])

    on_all_cores(fill, range(0, len(rows), _ROWS_AT_A_TIME), matrix.device)
    part.diagonal().copy_(diagonal[rows])
    restore(part)
    return part


def _stacks(systems: Sequence[System], solver: Solver, device: torch.device) -> list[list[int]]:
    """Systems that are solved together, the largest first: they decide how long all take."""
    stacks: dict[tuple[int, int], list[int]] = {}
    for s, system in enumerate(systems):
        alone = 0 if solver.can_stack(system, device) else 1 + s
        stacks.setdefault((len(system.rows), alone), []).append(s)
    return [stack for _, stack in sorted(stacks.items(), key=lambda item: -item[0][0])]


def _in_order(stacks: list[list[int]], found: list[list[Solution]]) -> list[Solution]:
    solutions = {s: one for stack, part in zip(stacks, found, strict=True) for s, one in zip(stack, part, strict=True)}
    return [solutions[s] for s in sorted(solutions)]
