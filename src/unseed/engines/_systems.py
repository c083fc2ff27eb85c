"""The linear systems of a plan's replicates: which matrices are made, which are shared, who solves them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar, cast

import numpy as np
import torch
from joblib import delayed, effective_n_jobs
from torch import Tensor

from unseed._machine import uninitialised
from unseed._resampling import Plan
from unseed._solvers import Converged, DualRidge, StoppedRidge, Training, restore, solve_ridge
from unseed._threads import on_all_cores
from unseed.engines._cost import LARGE_ROWS, shares_one_gram, systems_at_a_time
from unseed.engines._task import Task
from unseed.kernels import PopulationKernel
from unseed.networks import MLP
from unseed.tasks import begun, shares_memory

Factor = DualRidge | StoppedRidge
Solution = tuple[Tensor, Factor | None]
T = TypeVar("T")

STACKED_ROWS = 2048
"""Up to here a GPU factorises systems of equal size together; a larger one keeps it busy alone."""

_ROWS_AT_A_TIME = 256


@dataclass(frozen=True)
class System:
    """One replicate: its distinct rows, how often each counts, their labels, and whether its factor is kept."""

    rows: Tensor  # (n,)
    counts: Tensor  # (n,)
    labels: Tensor  # (n, n_groups, n_outputs)
    keeps_factor: bool

    def answer(self, factor: Factor) -> Solution:
        """Dual weights in the shape of the labels, and the factor where it is kept."""
        solved = factor.solve(self.labels.flatten(1)).reshape(self.labels.shape)
        return solved, factor if self.keeps_factor else None


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
        """Solve a system, whose matrix is overwritten."""
        if not isinstance(self.training, Converged):
            total = float(system.counts.sum())
            return system.answer(StoppedRidge(matrix, system.counts, self.regularization, self.training, total))
        if system.keeps_factor:
            return system.answer(DualRidge.factorise(matrix, system.counts, self.regularization))
        columns = system.labels.flatten(1)
        solved = solve_ridge(matrix, system.counts, self.regularization, columns, is_mixed=self.is_mixed)
        return solved.reshape(system.labels.shape), None

    def together(self, matrices: list[Tensor], systems: Sequence[System]) -> list[Solution]:
        """Several systems: on a GPU those of one size are factorised in one call."""
        if len(systems) == 1:
            return [self(matrices[0], systems[0])]
        factors = DualRidge.factorise_stack(matrices, [system.counts for system in systems], self.regularization)
        return [system.answer(factor) for system, factor in zip(systems, factors, strict=True)]


def solve_systems(task: Task, plan: Plan, solver: Solver, n_jobs: int | None) -> list[Solution]:
    """Solve every replicate on its rows: cut out of one Gram matrix where they overlap, each from its own elsewhere.

    Factors of the replicates that stand for these data are kept.
    """
    X, network, systems = task.X, cast(MLP, task.network), []
    for r, (rows, counts) in enumerate(plan.replicates()):
        chosen = torch.from_numpy(rows).to(X.device)
        systems.append(System(chosen, torch.from_numpy(counts).to(X), task.labels[chosen], r in plan.reference))
    if not shares_memory(n_jobs):
        return here_and_elsewhere(_solve_alone, lambda s: (network, X[systems[s].rows], systems[s], solver), plan, n_jobs)
    matrix_of = _from_one_gram(network, X, systems) if shares_one_gram(plan) else lambda s: _gram(network, X[systems[s].rows])

    def solve(stack: list[int]) -> list[Solution]:
        return solver.together([matrix_of(s) for s in stack], [systems[s] for s in stack])

    # Large systems, and one that costs more than a core's share of all, have all cores; the others have one each.
    stacks = _stacks(systems, solver, X.device)
    alone = _n_alone(stacks, systems, n_jobs)
    threads = systems_at_a_time(len(stacks) - alone, n_jobs)
    found = [solve(stack) for stack in stacks[:alone]] + on_all_cores(solve, stacks[alone:], X.device, threads)
    return _in_order(chain(*stacks), chain(*found))


def _gram(network: MLP, X: Tensor) -> Tensor:
    kernel = PopulationKernel(network)
    return kernel.ntk_gram(kernel.profile(X))


def _from_one_gram(network: MLP, X: Tensor, systems: Sequence[System]) -> Callable[[int], Tensor]:
    """Matrices cut out of one Gram matrix; one of all rows whose factor is kept may have the matrix itself.

    It overwrites the lower triangle and the diagonal only, and all others are cut out of the upper one, whoever is first.
    """
    shared = _gram(network, X)
    diagonal = shared.diagonal().clone()
    owner = next((s for s, system in enumerate(systems) if system.keeps_factor and len(system.rows) == len(X)), None)
    return lambda s: shared if s == owner else cut_out(shared, diagonal, systems[s].rows)


def _n_alone(stacks: list[list[int]], systems: Sequence[System], n_jobs: int | None) -> int:
    """How many of the stacks, which begin with the largest, are solved one after the other."""
    if int(effective_n_jobs(n_jobs)) > 1:
        return 0
    costs = [sum(len(systems[s].rows) ** 3 for s in stack) for stack in stacks]
    large = sum(len(systems[stack[0]].rows) >= LARGE_ROWS for stack in stacks)
    return max(large, int(costs[0] * torch.get_num_threads() > 1.2 * sum(costs)))


def here_and_elsewhere(
    function: Callable[..., Any], arguments: Callable[[int], tuple[Any, ...]], plan: Plan, n_jobs: int | None
) -> list[Any]:
    """A function of every replicate, by workers; but a network of all rows that stands for these data keeps its factor here."""
    here = [r for r in plan.reference if plan.distinct_rows[r] == plan.n_rows]
    there = [r for r in range(len(plan.counts)) if r not in here]
    found = begun((delayed(function)(*arguments(r)) for r in there), n_jobs, ahead=2)
    own = [function(*arguments(r)) for r in here]  # while the others are at work
    return _in_order([*here, *there], [*own, *found])


def _solve_alone(network: MLP, X: Tensor, system: System, solver: Solver) -> Solution:
    """A task for any worker: it is sent the rows of its system and nothing else."""
    return solver(_gram(network, X), system)


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
    """Systems that are solved together, small ones of a size on a GPU; the largest first: they decide how long all take."""
    can_stack = device.type == "cuda" and isinstance(solver.training, Converged) and not solver.is_mixed
    stacks: dict[tuple[int, int], list[int]] = {}
    for s, system in enumerate(systems):
        n = len(system.rows)
        stacks.setdefault((-n, 0 if can_stack and n <= STACKED_ROWS else 1 + s), []).append(s)
    return [stack for _, stack in sorted(stacks.items(), key=lambda item: item[0][0])]


def _in_order(places: Iterable[int], found: Iterable[T]) -> list[T]:
    solutions = dict(zip(places, found, strict=True))
    return [solutions[s] for s in sorted(solutions)]
