"""The network engine: finite networks trained by gradients, all replicates and groups together; and what is known of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from unseed._checks import check_flag
from unseed._findings import Finding
from unseed._resampling import Plan
from unseed._solvers import SGD, GaussNewton, GradientDescent
from unseed._state import Record, State
from unseed.engines._cohorts import Cohorts, Trainer
from unseed.engines._cost import Cost, network_cost, network_memory
from unseed.engines._protocol import Convergence
from unseed.engines._tangent import FiniteEngine, FiniteReplicates, TangentFit, linearised
from unseed.engines._task import NewPoints, Probe, Task, between_groups, check_kept
from unseed.errors import InvalidInputError
from unseed.networks import restore_batch

_NUMBERS_AT_A_TIME = 1 << 26  # hidden activations at new points held at once
_COMPARED_ROWS = 200  # of the tangent kernels before and after training
_FLOAT32_FLOOR = 1e-9  # training leaves a tangent kernel with errors of float32 parameters' size: λ cannot be smaller

GAUSS_NEWTON_ROWS = 4096
"""Labels up to which ``"auto"`` is Gauss-Newton; above, one tangent kernel per network is too dear."""


@dataclass(frozen=True)
class NetworkEngine(FiniteEngine):
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

    trainer: str | Trainer = "auto"
    dtype: str = "float32"
    allow_tf32: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
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
        cohorts = self._cohorts(task, plan)
        network_memory(cohorts.batch, plan, cohorts.n_groups, cohorts.dtype.itemsize).check(task.X.device)
        fits = cohorts.train(n_jobs)
        convergence = Convergence(
            relative_gradient=torch.stack([fit.relative_gradient for fit in fits]).double().cpu().numpy(),
            loss=torch.stack([fit.loss for fit in fits]).double().cpu().numpy(),
            converged=torch.stack([fit.converged for fit in fits]).cpu().numpy(),
            steps=max(fit.steps for fit in fits),
            wanted=cohorts.trainer.tolerance is not None,
        )
        _warn_if_not_converged(convergence)
        parameters = torch.stack([fit.parameters for fit in fits])
        return NetworkReplicates(self, task, plan, cohorts.batch, cohorts.starts, parameters, convergence)

    def cost(self, task: Task, plan: Plan) -> Cost:
        """Work and memory, before anything is begun."""
        return network_cost(self._cohorts(task, plan))

    def restore(self, record: Record, task: Task, plan: Plan) -> NetworkReplicates:
        """Ready to predict."""
        check_kept(record, "network", task, self)
        dtype = record.fact("dtype", str)
        if dtype not in ("float32", "float64"):
            raise record.fault(f"dtype={dtype!r} should be float32 or float64")
        device, n_replicates, (_, n_groups, k) = task.X.device, len(plan.counts), task.labels.shape
        starts = record.tensor("starts", device, n_replicates, None, dtype=dtype)
        batch = restore_batch(record, task.network, task.X, k, starts.shape[1])
        parameters = record.tensor("parameters", device, n_replicates, n_groups, starts.shape[1], dtype=dtype)
        convergence = Convergence.restore(record, n_replicates, n_groups)
        return NetworkReplicates(self, task, plan, batch, starts, parameters, convergence)

    def describe(self) -> str:
        """In a few words."""
        return "finite width, really trained"

    def _cohorts(self, task: Task, plan: Plan) -> Cohorts:
        """What is trained, and what ``"auto"`` comes to."""
        dtype = getattr(torch, self.dtype)
        batch, trainer = self.batch_for(task), self.trainer
        if isinstance(trainer, str):
            is_affordable = batch.is_explicit and task.labels[:, 0].numel() <= GAUSS_NEWTON_ROWS
            trainer = GaussNewton() if is_affordable else SGD()
        return Cohorts(task, plan, batch, trainer, dtype, self.allow_tf32)


@dataclass(frozen=True)
class NetworkReplicates(FiniteReplicates):
    """Trained networks of every replicate and group."""

    starts: Tensor  # (n_replicates, p)
    parameters: Tensor  # (n_replicates, n_groups, p)
    convergence: Convergence

    def predict(self, points: NewPoints, replicates: Sequence[int] | None = None) -> Tensor:
        """Forward passes, in float64 so that a point's prediction does not depend on its neighbours.

        Shape (n_replicates, n_points, n_groups, n_outputs).
        """
        parameters = self.parameters if replicates is None else self.parameters[list(replicates)]
        n_replicates, n_groups, _ = parameters.shape
        chunks = torch.split(points.inputs, max(1, _NUMBERS_AT_A_TIME // self.batch.numbers_per_row))
        networks = [
            torch.cat([self.batch.outputs(theta[None], chunk[None])[0] for chunk in chunks])
            for theta in parameters.flatten(0, 1).double()
        ]
        outputs = torch.stack(networks)  # (n_replicates · n_groups, n_points, k)
        return outputs.reshape(n_replicates, n_groups, *outputs.shape[1:]).transpose(1, 2)

    def influence(self, points: NewPoints) -> Tensor:
        """Influence values with the tangent kernel of the trained base network and the residuals it really left."""
        tangent, labels = self.full_fit
        (fits,) = self.predict(NewPoints(self.task.X), self.plan.reference)  # (n_rows, n_groups, k)
        return tangent.influence(points.inputs, labels - between_groups(fits))

    def conditions(self, probe: Probe) -> Iterable[Finding]:
        """Accuracy, convergence, and how far finite width is from the theory."""
        yield from super().conditions(probe)
        yield from self.convergence.conditions()
        yield from self._width()
        if self.convergence.wanted:  # a training stopped on purpose is not the converged one of the linearisation
            yield self._linearity(probe)

    def state(self) -> State:
        """Parameters before and after training, and how it went."""
        return {
            "kind": "network",
            "width": self.batch.width,
            "starts": self.starts,
            "parameters": self.parameters,
            **self.convergence.state(),
            "dtype": str(self.parameters.dtype).removeprefix("torch."),
        }

    @property
    def numbers_per_point(self) -> int:
        """Rows × outputs, for the jackknife (hidden activations are split further inside)."""
        return max(self.task.labels[:, 0].numel() * self.batch.n_outputs, 2 * len(self.starts))

    def ridges(self) -> list[TangentFit]:
        """The base networks that stand for these data, linearised where training ended, in float64."""
        return [self._tangent_at(r, self.parameters[r, 0]) for r in self.plan.reference]

    def _tangent_at(self, replicate: int, parameters: Tensor) -> TangentFit:
        """Linearisation of a replicate's network at any parameters."""
        task = self.task.as_ridge()
        floor = _FLOAT32_FLOOR if self.parameters.dtype == torch.float32 else 0.0
        task = replace(task, regularization=max(task.regularization, floor))
        return linearised(self.batch, parameters, task, self.plan, replicate)

    def _width(self) -> Iterable[Finding]:
        """How far training moved the parameters, and the tangent kernel with them."""
        replicate = self.plan.reference[0]
        start, end = self.starts[replicate].double(), self.parameters[replicate, 0].double()
        X = self.references[0][0].X[None, :_COMPARED_ROWS]
        before, after = (self.batch.evaluate(theta[None], X).tangent_kernel() for theta in (start, end))
        wider = "the network is too narrow to stay linear: widen it, or raise regularization"
        yield Finding(
            "change of the tangent kernel in training",
            float(torch.linalg.matrix_norm(after - before)[0] / torch.linalg.matrix_norm(before)[0]),
            0.2,
            wider,
            "The networks are wide enough: training hardly changed how they respond.",
            "The networks are too narrow for the theory: training changed how they respond.",
        )
        yield Finding(
            "distance of the parameters from their start",
            float(torch.linalg.vector_norm(end - start) / torch.linalg.vector_norm(start)),
            0.2,
            wider,
            "The weights stayed near their start, as the theory needs.",
            "The weights moved far from their start, further than the theory allows for.",
        )

    def _linearity(self, probe: Probe) -> Finding:
        """Trained against linearised PNC prediction, in half widths of the interval."""
        replicate = self.plan.reference[0]
        tangent = self._tangent_at(replicate, self.starts[replicate])
        _, labels = self.references[0]
        linear = tangent.predict(probe.points.inputs, tangent.solve(labels[:, None]))[:, 0]
        (outputs,) = self.predict(probe.points, [replicate])
        return Finding(
            "trained against linearised prediction, in half widths",
            probe.in_half_widths(between_groups(outputs) - linear),
            0.5,
            "finite width shows: widen the network or raise regularization",
            "Trained networks agree with their linear approximation.",
            "Trained networks differ visibly from their linear approximation.",
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
