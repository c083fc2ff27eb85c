"""Training replicates together: those of similar size in one batch, fewer at a time where memory is short."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from joblib import delayed
from torch import Tensor

from unseed._machine import available_bytes
from unseed._progress import Progress
from unseed._resampling import Plan
from unseed._solvers import SGD, Fit, GaussNewton, GradientDescent, Objective
from unseed.engines._tangent import draw_starts
from unseed.engines._task import Task
from unseed.errors import InvalidInputError
from unseed.networks import NetworkBatch
from unseed.tasks import outcomes, shares_memory

Trainer = GaussNewton | GradientDescent | SGD

CPU_ARRAY_BYTES = 24 << 20
"""Above 32 MB the usual allocator asks the system for fresh pages every time, and touching those takes longer than a step."""

_SIMILAR = 1.25  # replicates whose numbers of rows differ by less are padded and trained together


@dataclass(frozen=True)
class Cohorts:
    """Networks of every replicate and group, to be trained from their starts."""

    task: Task
    plan: Plan
    batch: NetworkBatch
    trainer: Trainer
    dtype: torch.dtype
    allow_tf32: bool

    @cached_property
    def starts(self) -> Tensor:
        """Shape (n_replicates, p)."""
        return draw_starts(self.batch, len(self.plan.counts), self.task.streams, self.task.X.device, self.dtype)

    @property
    def n_groups(self) -> int:
        """Networks of a replicate."""
        return self.task.labels.shape[1]

    @property
    def groups(self) -> list[list[int]]:
        """Replicates of similar size, largest first; for SGD of equal size, so that no padding disturbs its mini-batches."""
        similar = 1.0 + 1e-9 if isinstance(self.trainer, SGD) else _SIMILAR
        distinct = np.array(self.plan.distinct_rows)
        groups: list[list[int]] = []
        for replicate in np.argsort(-distinct, kind="stable").tolist():
            if groups and distinct[groups[-1][0]] < similar * distinct[replicate]:
                groups[-1].append(replicate)
            else:
                groups.append([replicate])
        return groups

    def at_once(self, n_rows: int) -> int:
        """Replicates of so many rows to train together: the activations of an MLP fill at most half of the memory left.

        On a CPU an array of them also has at most `CPU_ARRAY_BYTES`, so that its memory is used again at the next step.
        """
        if not self.batch.activations_per_row:
            return sys.maxsize
        device, itemsize = self.task.X.device, self.n_groups * self.dtype.itemsize
        fitting = int(available_bytes(device) / 2 / (8 * n_rows * self.batch.activations_per_row * itemsize))
        if device.type == "cpu":
            numbers = self.trainer.rows_of_a_step(n_rows) * self.batch.numbers_per_row
            fitting = min(fitting, CPU_ARRAY_BYTES // (numbers * itemsize))
        return max(1, fitting)

    def train(self, n_jobs: int | None) -> list[Fit]:
        """Of every replicate; workers elsewhere are sent the rows and the start of one."""
        if not shares_memory(n_jobs):
            replicates = range(len(self.plan.counts))
            tasks = (delayed(_train_alone)(self.trainer, self._objective([r]), self.allow_tf32) for r in replicates)
            return list(outcomes(tasks, n_jobs, ahead=2))
        fits: dict[int, Fit] = {}
        with _matrix_precision(self.allow_tf32):
            for group in self.groups:
                fits |= self._train_together(group)
        return [fits[r] for r in range(len(fits))]

    def _train_together(self, todo: list[int]) -> dict[int, Fit]:
        """Those of similar size, fewer at a time when the memory of a GPU does not hold them."""
        done: dict[int, Fit] = {}
        at_once = self.at_once(self.plan.distinct_rows[todo[0]])
        while todo:
            now = todo[:at_once]
            try:
                fit = _train(self.trainer, self._objective(now), self.task.progress)
            except (torch.OutOfMemoryError, RuntimeError) as error:
                is_lack_of_memory = isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)
                if not is_lack_of_memory or at_once == 1:
                    raise
                at_once = max(1, at_once // 2)
                torch.cuda.empty_cache()
                continue
            for place, r in enumerate(now):
                own = slice(place * self.n_groups, (place + 1) * self.n_groups)
                done[r] = Fit(fit.parameters[own], fit.loss[own], fit.relative_gradient[own], fit.steps, fit.converged[own])
            todo = todo[at_once:]
        return done

    def _objective(self, replicates: list[int]) -> Objective:
        """Rows of every replicate, padded with rows of count 0, once per group of labels."""
        task, counts = self.task, self.plan.counts[replicates]
        longest = int((counts > 0).sum(axis=1).max())
        rows = np.argsort(counts == 0, axis=1, kind="stable")[:, :longest]
        counts = np.take_along_axis(counts, rows, axis=1)
        place = torch.from_numpy(np.where(counts > 0, rows, rows[:, :1])).to(task.X.device)
        seeds = [int(task.streams.generator("order", r).integers(2**31)) for r in replicates]
        return Objective(
            self.batch,
            self.starts[replicates].repeat_interleave(self.n_groups, dim=0),
            task.X[place].to(self.dtype).repeat_interleave(self.n_groups, dim=0),
            task.labels[place].to(self.dtype).transpose(1, 2).flatten(0, 1),
            torch.from_numpy(counts).to(task.X).repeat_interleave(self.n_groups, dim=0),
            task.regularization,
            task.loss,
            tuple(seed for seed in seeds for _ in range(self.n_groups)),
        )


def _train_alone(trainer: Trainer, objective: Objective, allow_tf32: bool) -> Fit:
    with _matrix_precision(allow_tf32):
        return _train(trainer, objective, Progress(active=False))


def _train(trainer: Trainer, objective: Objective, progress: Progress) -> Fit:
    with torch.no_grad():
        fit = trainer.train(objective, progress)
    if not bool(torch.isfinite(fit.loss).all()):
        raise InvalidInputError(f"training diverged with trainer={trainer}; use a smaller rate, or rate='auto'")
    return fit


@contextmanager
def _matrix_precision(allow_tf32: bool) -> Iterator[None]:
    """TF32 products on or off for a while; they are off unless asked for."""
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("high" if allow_tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = allow_tf32
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before[0])
        torch.backends.cudnn.allow_tf32 = before[1]
