"""Training replicates together: those of similar size in one batch, fewer at a time where memory is short."""

from __future__ import annotations

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


def train_group(
    group: list[int],
    task: Task,
    plan: Plan,
    batch: NetworkBatch,
    starts: Tensor,
    trainer: Trainer,
    at_once: int,
) -> dict[int, Fit]:
    """Train a group's replicates, fewer at a time when the memory of a GPU does not hold them."""
    done: dict[int, Fit] = {}
    todo = list(group)
    while todo:
        now = todo[:at_once]
        try:
            fit = _train(trainer, _objective(now, task, plan, batch, starts), task.progress)
        except (torch.OutOfMemoryError, RuntimeError) as error:
            if not _is_lack_of_memory(error) or at_once == 1:
                raise
            at_once = max(1, at_once // 2)
            torch.cuda.empty_cache()
            continue
        n_groups = task.labels.shape[1]
        for position, replicate in enumerate(now):
            part = slice(position * n_groups, (position + 1) * n_groups)
            done[replicate] = Fit(
                fit.parameters[part], fit.loss[part], fit.relative_gradient[part], fit.steps, fit.converged[part]
            )
        todo = todo[at_once:]
    return done


def train_elsewhere(
    task: Task, plan: Plan, batch: NetworkBatch, starts: Tensor, trainer: Trainer, allow_tf32: bool, n_jobs: int | None
) -> dict[int, Fit]:
    """Every replicate by itself, as a task for any worker, which is sent its rows and its start."""
    tasks = (
        delayed(_train_alone)(trainer, _objective([replicate], task, plan, batch, starts), allow_tf32)
        for replicate in range(len(plan.counts))
    )
    return dict(enumerate(outcomes(tasks, n_jobs, ahead=2)))


def _train_alone(trainer: Trainer, objective: Objective, allow_tf32: bool) -> Fit:
    with MatrixPrecision(allow_tf32):
        return _train(trainer, objective, Progress(active=False))


def _is_lack_of_memory(error: RuntimeError) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)


def _train(trainer: Trainer, objective: Objective, progress: Progress) -> Fit:
    with torch.no_grad():
        fit = trainer.train(objective, progress)
    if not bool(torch.isfinite(fit.loss).all()):
        raise InvalidInputError(f"training diverged with trainer={trainer}; use a smaller rate, or rate='auto'")
    return fit


def _objective(replicates: list[int], task: Task, plan: Plan, batch: NetworkBatch, starts: Tensor) -> Objective:
    """Rows of every replicate, padded with rows of count 0, once per group of labels."""
    rows = [np.flatnonzero(plan.counts[r]) for r in replicates]
    longest, n_groups = max(map(len, rows)), task.labels.shape[1]
    index = np.stack([np.concatenate([r, np.full(longest - len(r), r[0])]) for r in rows])
    counts = np.stack(
        [np.append(plan.counts[r][own], np.zeros(longest - len(own))) for r, own in zip(replicates, rows, strict=True)]
    )
    place, dtype = torch.from_numpy(index).to(task.X.device), starts.dtype
    seeds = [int(task.streams.generator("order", r).integers(2**31)) for r in replicates]
    return Objective(
        batch,
        starts[replicates].repeat_interleave(n_groups, dim=0),
        task.X[place].to(dtype).repeat_interleave(n_groups, dim=0),
        task.labels[place].to(dtype).transpose(1, 2).flatten(0, 1),
        torch.from_numpy(counts).to(task.X).repeat_interleave(n_groups, dim=0),
        task.regularization,
        task.loss,
        tuple(seed for seed in seeds for _ in range(n_groups)),
    )


class MatrixPrecision:
    """Switch TF32 products on or off for a while; they are off unless asked for."""

    def __init__(self, allowed: bool) -> None:
        self.allowed = allowed

    def __enter__(self) -> None:
        self.before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
        torch.set_float32_matmul_precision("high" if self.allowed else "highest")
        torch.backends.cudnn.allow_tf32 = self.allowed

    def __exit__(self, *problem: object) -> None:
        torch.set_float32_matmul_precision(self.before[0])
        torch.backends.cudnn.allow_tf32 = self.before[1]
