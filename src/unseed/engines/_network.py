"""The network engine: finite networks trained by gradients, all replicates and groups together."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from functools import partial

import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from unseed._checks import check_flag, check_whole_number
from unseed._machine import available_bytes
from unseed._resampling import Plan
from unseed._solvers import SGD, Fit, GaussNewton, GradientDescent
from unseed._state import Record
from unseed.engines._cohorts import MatrixPrecision, Trainer, groups_of_similar_size, train_elsewhere, train_group
from unseed.engines._cost import Cost, network_cost, network_memory
from unseed.engines._protocol import CONVERGED, NOTHING, Capability, Convergence, Engine
from unseed.engines._starts import draw_starts
from unseed.engines._task import Task, check_kept
from unseed.engines._trained_networks import NetworkReplicates
from unseed.errors import InvalidInputError
from unseed.networks import NetworkBatch, make_batch, restore_batch
from unseed.tasks import shares_memory

CPU_ARRAY_BYTES = 24 << 20
"""Above 32 MB the usual allocator asks the system for fresh pages every time, and touching those takes longer than a step."""

GAUSS_NEWTON_ROWS = 4096
"""Labels up to which ``"auto"`` is Gauss-Newton; above, one tangent kernel per network is too dear."""


@dataclass(frozen=True)
class NetworkEngine(Engine):
    """Networks of finite width, trained.

    Parameters
    ----------
    width : int or None
        Neurons per hidden layer of an `MLP`; None takes the network's own width, or 32 per row as in the paper.
    trainer : "auto", GaussNewton, GradientDescent or SGD
        ``"auto"`` is Gauss-Newton for an `MLP` on up to 4,096 labels, mini-batch SGD otherwise.
    dtype : {"float32", "float64"}
        Of training; solves are in float64 always.
    allow_tf32 : bool
        Let a GPU round products to ten bits of mantissa: faster, and no longer the same numbers.

    Examples
    --------
    >>> NetworkEngine(width=512, trainer=GradientDescent(steps=80, rate=0.01))
    NetworkEngine(width=512, trainer=GradientDescent(steps=80, rate=0.01, tolerance=None), dtype='float32', \
allow_tf32=False)
    """

    width: int | None = None
    trainer: str | Trainer = "auto"
    dtype: str = "float32"
    allow_tf32: bool = False

    def __post_init__(self) -> None:
        if self.width is not None:
            check_whole_number("width", self.width, at_least=1)
        if self.trainer != "auto" and not isinstance(self.trainer, (GaussNewton, GradientDescent, SGD)):
            raise InvalidInputError(
                f"trainer={self.trainer!r} is not known; use 'auto', GaussNewton(), GradientDescent(steps=...) or SGD()"
            )
        if self.dtype not in ("float32", "float64"):
            raise InvalidInputError(f"dtype={self.dtype!r} is not known; use 'float32' or 'float64'")
        check_flag("allow_tf32", self.allow_tf32)

    @property
    def converges(self) -> bool:
        """A fixed number of gradient steps is not the converged network the influence formula is for."""
        return not isinstance(self.trainer, GradientDescent) or self.trainer.tolerance is not None

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Formulas are those of the linearisation of a converged network."""
        return CONVERGED if self.converges else NOTHING

    def fit(self, task: Task, plan: Plan, *, n_jobs: int | None = None) -> NetworkReplicates:
        """Train all networks of all replicates.

        In this process those of similar size train together, whatever ``n_jobs`` is, since they share every matrix
        product; other processes train one replicate at a time.
        """
        dtype = getattr(torch, self.dtype)
        batch = make_batch(task.network, task.X, task.labels.shape[2], self.width, dtype)
        network_memory(batch, plan, task.labels.shape[1], dtype.itemsize).check(task.X.device)
        starts = draw_starts(batch, len(plan.counts), task.streams, task.X.device, dtype)
        trainer = self.resolve_trainer(task.labels[:, 0].numel(), is_mlp=batch.is_explicit)
        if shares_memory(n_jobs):
            fits = self._train_here(task, plan, batch, starts, trainer)
        else:
            fits = train_elsewhere(task, plan, batch, starts, trainer, self.allow_tf32, n_jobs)
        parameters = _in_order(fits, "parameters")
        trained = NetworkReplicates(self, task, plan, batch, starts, parameters, _convergence(fits, trainer))
        _warn_if_not_converged(trained.convergence)
        return trained

    def cost(self, task: Task, plan: Plan) -> Cost:
        """Work and memory, before anything is begun."""
        dtype = getattr(torch, self.dtype)
        batch = make_batch(task.network, task.X, task.labels.shape[2], self.width, dtype)
        trainer = self.resolve_trainer(task.labels[:, 0].numel(), is_mlp=batch.is_explicit)
        n_groups, device = task.labels.shape[1], task.X.device
        at_once = partial(self.replicates_at_once, n_groups=n_groups, batch=batch, trainer=trainer, device=device)
        return network_cost(task, plan, batch, trainer, dtype, at_once)

    def _train_here(self, task: Task, plan: Plan, batch: NetworkBatch, starts: Tensor, trainer: Trainer) -> dict[int, Fit]:
        fits: dict[int, Fit] = {}
        with MatrixPrecision(self.allow_tf32):
            for group in groups_of_similar_size(plan, trainer):
                rows = int((plan.counts[group] > 0).sum(axis=1).max())
                at_once = self.replicates_at_once(rows, task.labels.shape[1], batch, trainer, task.X.device)
                fits |= train_group(group, task, plan, batch, starts, trainer, at_once)
        return fits

    def restore(self, record: Record, task: Task, plan: Plan) -> NetworkReplicates:
        """Ready to predict."""
        check_kept(record, "network", task, self)
        dtype = record.fact("dtype", str)
        if dtype not in ("float32", "float64"):
            raise record.fault(f"dtype={dtype!r} should be float32 or float64")
        device, n_replicates, (_, n_groups, k) = task.X.device, len(plan.counts), task.labels.shape
        batch = restore_batch(record, task.network, task.X, k, getattr(torch, dtype))
        starts = record.tensor("starts", device, n_replicates, None, dtype=dtype)
        batch.check_length(starts.shape[1], record)
        parameters = record.tensor("parameters", device, n_replicates, n_groups, starts.shape[1], dtype=dtype)
        convergence = Convergence.restore(record, n_replicates, n_groups)
        return NetworkReplicates(self, task, plan, batch, starts, parameters, convergence)

    def describe(self) -> str:
        """In a few words."""
        return "finite width, really trained"

    def resolve_trainer(self, n_labels: int, *, is_mlp: bool) -> Trainer:
        """What ``"auto"`` comes to."""
        if not isinstance(self.trainer, str):
            return self.trainer
        return GaussNewton() if is_mlp and n_labels <= GAUSS_NEWTON_ROWS else SGD()

    def replicates_at_once(
        self, n_rows: int, n_groups: int, batch: NetworkBatch, trainer: Trainer, device: torch.device
    ) -> int:
        """Replicates of so many rows to train together: the activations of an MLP fill at most half of the memory left.

        On a CPU an array of them also has at most `CPU_ARRAY_BYTES`, so that its memory is used again at the next step.
        """
        if not batch.activations_per_row:
            return sys.maxsize
        itemsize = n_groups * getattr(torch, self.dtype).itemsize
        fitting = int(available_bytes(device) / 2 / (8 * n_rows * batch.activations_per_row * itemsize))
        if device.type == "cpu":
            fitting = min(fitting, CPU_ARRAY_BYTES // (trainer.rows_of_a_step(n_rows) * batch.numbers_per_row * itemsize))
        return max(1, fitting)


def _in_order(fits: dict[int, Fit], name: str) -> Tensor:
    return torch.stack([getattr(fits[r], name) for r in range(len(fits))])


def _convergence(fits: dict[int, Fit], trainer: Trainer) -> Convergence:
    return Convergence(
        relative_gradient=_in_order(fits, "relative_gradient").double().cpu().numpy(),
        loss=_in_order(fits, "loss").double().cpu().numpy(),
        converged=_in_order(fits, "converged").cpu().numpy(),
        steps=max(fit.steps for fit in fits.values()),
        wanted=trainer.tolerance is not None,
    )


def _warn_if_not_converged(convergence: Convergence) -> None:
    if not convergence.wanted or bool(convergence.converged.all()):
        return
    warnings.warn(
        f"training did not converge in {convergence.steps} steps: {convergence.unconverged} (gradient still "
        f"{convergence.relative_gradient.max():.1e} of its start). A wider network, more regularization or more steps help",
        ConvergenceWarning,
        stacklevel=2,
    )
