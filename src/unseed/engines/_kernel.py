"""The kernel engine: infinitely wide networks, trained in closed form."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from unseed._resampling import Plan
from unseed._solvers import Converged, Training
from unseed._state import Record
from unseed.engines._anchored import AnchoredReplicates
from unseed.engines._cost import Cost, kernel_cost, kernel_memory
from unseed.engines._infinite import KernelReplicates
from unseed.engines._protocol import CONVERGED, Capability, Engine
from unseed.engines._shared import check_training
from unseed.engines._systems import Solver, solve_systems, systems_of
from unseed.engines._task import Task, check_kept, restore_groups, rows_of
from unseed.errors import InvalidInputError
from unseed.kernels import PopulationKernel
from unseed.networks import MLP

ALWAYS: frozenset[Capability] = frozenset({"seeds", "anchors"})


@dataclass(frozen=True)
class KernelEngine(Engine):
    """Networks of infinite width, in closed form.

    Parameters
    ----------
    training : Converged, GradientFlow or GradientDescent
        How long the network is trained. Converged costs one Cholesky factorisation per replicate, the others one
        eigendecomposition, or one product with the kernel per step where there are few steps.
    precision : {"double", "mixed"}
        ``"mixed"`` solves replicates of which only the predictions are wanted (bootstrap resamples, halves, the batches of
        sectioning) with a float32 factor and float64 iterations, at about half the time; where their residual does not
        fall to 1e-11, a float64 factor is made after all.

    Examples
    --------
    >>> from unseed import GradientFlow
    >>> KernelEngine(training=GradientFlow(time=100.0))
    KernelEngine(training=GradientFlow(time=100.0, rate=1.0), precision='double')
    """

    training: Training = field(default_factory=Converged)
    precision: str = "double"

    def __post_init__(self) -> None:
        check_training("KernelEngine", self.training)
        if self.precision not in ("double", "mixed"):
            raise InvalidInputError(f"KernelEngine(precision={self.precision!r}): use 'double' or 'mixed'")
        if self.precision == "mixed" and not self.converges:
            raise InvalidInputError("KernelEngine(precision='mixed') is for training=Converged(); use precision='double'")

    @property
    def converges(self) -> bool:
        """The influence formula is that of the fully trained network."""
        return isinstance(self.training, Converged)

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The law over seeds does not need convergence; all other formulas do."""
        return ALWAYS | CONVERGED if self.converges else ALWAYS

    @property
    def is_infinite(self) -> bool:
        """Yes: there is a kernel instead of a random start."""
        return True

    def fit(self, task: Task, plan: Plan, *, n_jobs: int | None = None) -> KernelReplicates:
        """Solve every replicate on its distinct rows; the Gram matrix is built once where replicates overlap."""
        task, network = task.as_ridge(), self.kernel_of(task).network
        self.check(plan, task.X.device, n_jobs)
        systems = systems_of(plan, task.labels)
        solver = Solver(self.training, task.regularization, is_mixed=self.precision == "mixed")
        solved = solve_systems(network, task.X, systems, solver, plan, n_jobs)
        dual = task.labels.new_zeros(len(systems), *task.labels.shape)
        for replicate, system, (weights, _) in zip(dual, systems, solved, strict=True):
            replicate[system.rows] = weights
        kept = [factor for r in plan.reference if (factor := solved[r][1]) is not None]
        return KernelReplicates(self, task, plan, dual, kept)

    def kernel_of(self, task: Task) -> PopulationKernel:
        """Kernel of the task's network."""
        if not isinstance(task.network, MLP):
            raise InvalidInputError("engine='kernel' knows the kernels of MLP(...) only; use engine='network' for a module")
        return PopulationKernel(task.network)

    def check(self, plan: Plan, device: torch.device, n_jobs: int | None = None) -> None:
        """Refuse a plan whose matrices cannot fit."""
        kernel_memory(plan, self.copies(device)).check(device, n_jobs)

    def cost(self, task: Task, plan: Plan) -> Cost:
        """Work and memory, before anything is begun."""
        return kernel_cost(task, plan, self.training, self.copies(task.X.device), is_mixed=self.precision == "mixed")

    def copies(self, device: torch.device) -> int:
        """Matrices that a solver needs beside its own."""
        return int(device.type == "cuda") if self.converges else 4

    def restore(self, record: Record, task: Task, plan: Plan) -> KernelReplicates | AnchoredReplicates:
        """Ready to predict; nothing is factorised yet."""
        kind = record.fact("kind", str)
        if not isinstance(task.network, MLP):
            raise record.fault("a network of infinite width must be an MLP")
        check_kept(record, kind if kind == "anchors" else "kernel", task, self)
        if kind == "anchors":
            return AnchoredReplicates.restore(record, self.kernel_of(task), task, plan)
        rows = rows_of(plan, task.X.device)
        lengths = [len(own) for own in rows]
        _, n_groups, k = task.labels.shape
        packed = restore_groups(record, "dual", (sum(lengths), n_groups, k), task.X.device)
        dual = packed.new_zeros(len(rows), *task.labels.shape)
        for replicate, own, weights in zip(dual, rows, torch.split(packed, lengths), strict=True):
            replicate[own] = weights
        return KernelReplicates(self, task.as_ridge(), plan, dual)

    def describe(self) -> str:
        """In a few words."""
        return "infinitely wide, in closed form"
