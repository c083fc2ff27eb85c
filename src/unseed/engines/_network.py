"""The network engine: finite networks, really trained, all replicates and groups together."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from unseed._checks import check_flag, check_whole_number
from unseed._machine import available_bytes
from unseed._resampling import Plan
from unseed._solvers import SGD, Fit, GaussNewton, GradientDescent
from unseed.engines._cohorts import MatrixPrecision, Trainer, groups_of_similar_size, train_elsewhere, train_group
from unseed.engines._cost import Cost, network_cost
from unseed.engines._forecast import check_network_memory
from unseed.engines._protocol import Convergence, LeftOut, Task, pooled_noise
from unseed.engines._starts import draw_starts, make_batch
from unseed.engines._tangent import TangentFit
from unseed.errors import InvalidInputError
from unseed.networks import MLPBatch, ModuleBatch, NetworkBatch
from unseed.tasks import shares_memory

_NUMBERS_AT_A_TIME = 1 << 26  # hidden activations at new points held at once

CPU_ARRAY_BYTES = 24 << 20
"""Above 32 MB the usual allocator asks the system for fresh pages every time, and touching those takes longer than a step."""

GAUSS_NEWTON_ROWS = 4096
"""Labels up to which ``"auto"`` is Gauss-Newton; above, one tangent kernel per network is too dear."""


@dataclass(frozen=True)
class NetworkEngine:
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

    def fit(self, task: Task, plan: Plan, *, n_jobs: int | None = None) -> NetworkReplicates:
        """Train all networks of all replicates.

        In this process those of similar size train together, whatever ``n_jobs`` is, since they share every matrix
        product; other processes train one replicate at a time.
        """
        dtype = getattr(torch, self.dtype)
        batch = make_batch(task, self.width, dtype)
        check_network_memory(batch, plan, task.labels.shape[1], dtype.itemsize, task.X.device)
        starts = draw_starts(batch, len(plan.counts), task.streams, task.X.device, dtype)
        trainer = self.resolve_trainer(task.labels[:, 0].numel(), is_mlp=isinstance(batch, MLPBatch))
        if shares_memory(n_jobs):
            fits = self._train_here(task, plan, batch, starts, trainer)
        else:
            fits = train_elsewhere(task, plan, batch, starts, trainer, self.allow_tf32, n_jobs)
        trained = NetworkReplicates(batch, starts, _in_order(fits, "parameters"), plan, task, _convergence(fits, trainer))
        _warn_if_not_converged(trained.convergence)
        return trained

    def cost(self, task: Task, plan: Plan) -> Cost:
        """Work and memory, before anything is begun."""
        dtype = getattr(torch, self.dtype)
        batch = make_batch(task, self.width, dtype)
        trainer = self.resolve_trainer(task.labels[:, 0].numel(), is_mlp=batch.is_explicit)
        n_groups, device = task.labels.shape[1], task.X.device
        at_once = partial(self.replicates_at_once, n_groups=n_groups, batch=batch, trainer=trainer, device=device)
        return network_cost(task, plan, batch, trainer, dtype, at_once)

    @property
    def is_infinite(self) -> bool:
        """Networks have a width."""
        return False

    def _train_here(self, task: Task, plan: Plan, batch: NetworkBatch, starts: Tensor, trainer: Trainer) -> dict[int, Fit]:
        fits: dict[int, Fit] = {}
        with MatrixPrecision(self.allow_tf32):
            for group in groups_of_similar_size(plan, trainer):
                rows = int((plan.counts[group] > 0).sum(axis=1).max())
                at_once = self.replicates_at_once(rows, task.labels.shape[1], batch, trainer, task.X.device)
                fits |= train_group(group, task, plan, batch, starts, trainer, at_once)
        return fits

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
        if not isinstance(batch, MLPBatch):
            return sys.maxsize
        of_a_row = batch.width * n_groups * getattr(torch, self.dtype).itemsize
        fitting = int(available_bytes(device) / 2 / (8 * n_rows * batch.network.depth * of_a_row))
        if device.type == "cpu":
            fitting = min(fitting, CPU_ARRAY_BYTES // (trainer.rows_of_a_step(n_rows) * of_a_row))
        return max(1, fitting)


@dataclass(frozen=True)
class NetworkReplicates:
    """Trained networks of every replicate and group."""

    batch: NetworkBatch
    starts: Tensor  # (n_replicates, p)
    parameters: Tensor  # (n_replicates, n_groups, p)
    plan: Plan
    task: Task
    convergence: Convergence

    def predict(self, X: Tensor) -> Tensor:
        """Forward passes, in float64 so that a point's prediction does not depend on its neighbours.

        Shape (n_replicates, n_points, n_groups, n_outputs).
        """
        n_replicates, n_groups, _ = self.parameters.shape
        width = self.batch.width if isinstance(self.batch, MLPBatch) else self.parameters.shape[2]
        size = max(1, _NUMBERS_AT_A_TIME // width)
        networks = [
            torch.cat([self.exact_batch.outputs(theta[None], chunk[None])[0] for chunk in torch.split(X, size)])
            for theta in self.parameters.flatten(0, 1).double()
        ]
        outputs = torch.stack(networks)  # (n_replicates · n_groups, n_points, k)
        return outputs.reshape(n_replicates, n_groups, *outputs.shape[1:]).transpose(1, 2)

    def influence(self, X: Tensor) -> Tensor:
        """Influence values with the tangent kernel of the trained base network and the residuals it really left."""
        if len(self.plan.reference) > 1:
            raise InvalidInputError("influence values need a network trained to convergence on all rows")
        fits = self.predict(self.task.X)[self.plan.reference[0]]  # (n_rows, n_groups, k)
        fitted = fits[:, 0] - fits[:, 1] if fits.shape[1] > 1 else fits[:, 0]
        return self.tangents[0].influence(X, self.task.contrast - fitted)

    def noise_variance(self) -> Tensor:
        """Estimate of the converged network, linearised at the trained parameters (also where training stopped early)."""
        return pooled_noise(
            tangent.noise_moments(self.task.contrast[self._rows(r)])
            for r, tangent in zip(self.plan.reference, self.tangents, strict=True)
        )

    def posterior_variance(self, X: Tensor, minus: Tensor | None = None) -> Tensor:
        """Of the network linearised where training ended."""
        return self._full_fit.posterior_variance(X, minus, self.task.contrast)

    def posterior_covariance(self, X: Tensor) -> Tensor:
        """Of the network linearised where training ended."""
        return self._full_fit.posterior_covariance(X, self.task.contrast)

    def leave_out(self, rows: Tensor) -> LeftOut:
        """Of the network linearised where training ended."""
        return self._full_fit.leave_out(rows, self.task.contrast)

    @property
    def _full_fit(self) -> TangentFit:
        if len(self.plan.reference) > 1:
            raise InvalidInputError("a posterior needs a network trained to convergence on all rows")
        return self.tangents[0]

    @property
    def numbers_per_prediction(self) -> int:
        """As for any other question."""
        return self.numbers_per_point

    @property
    def numbers_per_point(self) -> int:
        """Rows × outputs, for the jackknife (hidden activations are split further inside)."""
        return max(self.task.labels[:, 0].numel() * self.batch.n_outputs, 2 * len(self.starts))

    @cached_property
    def exact_batch(self) -> NetworkBatch:
        """The architecture in float64, whatever it was trained in."""
        return self.batch.in_double() if isinstance(self.batch, ModuleBatch) else self.batch

    @cached_property
    def tangents(self) -> list[TangentFit]:
        """Tangent kernels of the trained base networks of the reference replicates, in float64."""
        return [self.tangent_at(r, self.parameters[r, 0]) for r in self.plan.reference]

    def tangent_at(self, replicate: int, parameters: Tensor) -> TangentFit:
        """Linearisation of a replicate's network at any parameters."""
        rows = self._rows(replicate)
        counts = torch.from_numpy(self.plan.counts[replicate]).to(self.task.X)[rows]
        # Training leaves a tangent kernel with errors of its float32 parameters' size: the ridge cannot be smaller.
        floor = 1e-9 if self.parameters.dtype == torch.float32 else 0.0
        regularization = max(self.task.as_ridge().regularization, floor)
        return TangentFit(self.exact_batch, parameters[None].double(), self.task.X[rows], counts, regularization)

    def _rows(self, replicate: int) -> Tensor:
        return torch.from_numpy(np.flatnonzero(self.plan.counts[replicate])).to(self.task.X.device)


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
