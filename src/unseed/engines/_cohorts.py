"""Training replicates together: those of similar size in one batch, fewer at a time where memory is short."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from joblib import delayed
from torch import Tensor

from unseed._progress import Progress
from unseed._resampling import Plan
from unseed._solvers import SGD, Fit, GaussNewton, GradientDescent, Objective
from unseed.engines._task import Task
from unseed.errors import InvalidInputError
from unseed.networks import NetworkBatch
from unseed.tasks import outcomes

Trainer = GaussNewton | GradientDescent | SGD
_SIMILAR = 1.25  # replicates whose numbers of rows differ by less are padded and trained together


def groups_of_similar_size(plan: Plan, trainer: Trainer) -> list[list[int]]:
    """Replicates in groups, largest first; for SGD of equal size, so that no padding disturbs its mini-batches."""
    similar = 1.0 + 1e-9 if isinstance(trainer, SGD) else _SIMILAR
    distinct = (plan.counts > 0).sum(axis=1)
    groups: list[list[int]] = []
    for replicate in np.argsort(-distinct, kind="stable").tolist():
        if groups and distinct[groups[-1][0]] < similar * distinct[replicate]:
            groups[-1].append(replicate)
        else:
            groups.append([replicate])
    return groups


@dataclass(frozen=True)
class Cohorts:
    """Networks of every replicate and group, to be trained from their starts."""

    task: Task
    plan: Plan
    batch: NetworkBatch
    starts: Tensor  # (n_replicates, p)
    trainer: Trainer
    allow_tf32: bool

    def train_here(self, at_once: Callable[[int], int]) -> list[Fit]:
        """Of every replicate; ``at_once`` says how many of so many rows train together."""
        fits: dict[int, Fit] = {}
        with _matrix_precision(self.allow_tf32):
            for group in groups_of_similar_size(self.plan, self.trainer):
                fits |= self._train_group(group, at_once(self.plan.distinct_rows[group[0]]))
        return [fits[r] for r in range(len(fits))]

    def train_elsewhere(self, n_jobs: int | None) -> list[Fit]:
        """Every replicate by itself, as a task for any worker, which is sent its rows and its start."""
        replicates = range(len(self.plan.counts))
        tasks = (delayed(_train_alone)(self.trainer, self._objective([r]), self.allow_tf32) for r in replicates)
        return list(outcomes(tasks, n_jobs, ahead=2))

    def _train_group(self, group: list[int], at_once: int) -> dict[int, Fit]:
        """Those of similar size, fewer at a time when the memory of a GPU does not hold them."""
        done: dict[int, Fit] = {}
        n_groups, todo = self.task.labels.shape[1], list(group)
        while todo:
            now = todo[:at_once]
            try:
                fit = _train(self.trainer, self._objective(now), self.task.progress)
            except (torch.OutOfMemoryError, RuntimeError) as error:
                if not _is_lack_of_memory(error) or at_once == 1:
                    raise
                at_once = max(1, at_once // 2)
                torch.cuda.empty_cache()
                continue
            parts = (
                torch.split(values, n_groups) for values in (fit.parameters, fit.loss, fit.relative_gradient, fit.converged)
            )
            for r, parameters, loss, gradient, converged in zip(now, *parts, strict=True):
                done[r] = Fit(parameters, loss, gradient, fit.steps, converged)
            todo = todo[at_once:]
        return done

    def _objective(self, replicates: list[int]) -> Objective:
        """Rows of every replicate, padded with rows of count 0, once per group of labels."""
        task, plan, starts = self.task, self.plan, self.starts
        rows = [np.flatnonzero(plan.counts[r]) for r in replicates]
        longest, n_groups = max(map(len, rows)), task.labels.shape[1]
        index = np.stack([np.concatenate([r, np.full(longest - len(r), r[0])]) for r in rows])
        counts = np.stack(
            [np.append(plan.counts[r][own], np.zeros(longest - len(own))) for r, own in zip(replicates, rows, strict=True)]
        )
        place, dtype = torch.from_numpy(index).to(task.X.device), starts.dtype
        seeds = [int(task.streams.generator("order", r).integers(2**31)) for r in replicates]
        return Objective(
            self.batch,
            starts[replicates].repeat_interleave(n_groups, dim=0),
            task.X[place].to(dtype).repeat_interleave(n_groups, dim=0),
            task.labels[place].to(dtype).transpose(1, 2).flatten(0, 1),
            torch.from_numpy(counts).to(task.X).repeat_interleave(n_groups, dim=0),
            task.regularization,
            task.loss,
            tuple(seed for seed in seeds for _ in range(n_groups)),
        )


def _train_alone(trainer: Trainer, objective: Objective, allow_tf32: bool) -> Fit:
    with _matrix_precision(allow_tf32):
        return _train(trainer, objective, Progress(active=False))


def _is_lack_of_memory(error: RuntimeError) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)


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
