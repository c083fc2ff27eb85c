"""The kernel engine: infinitely wide networks, trained in closed form, and what is known of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

import torch
from torch import Tensor

from unseed._resampling import Plan
from unseed._solvers import Converged, DualRidge, Training
from unseed._solvers.landmarks import pivoted_cholesky
from unseed._state import Record, State
from unseed.engines._bent import BentReplicates
from unseed.engines._cost import Cost, kernel_cost, kernel_memory
from unseed.engines._curved import fit_bent, replicates_of
from unseed.engines._expansions import AnchoredPosterior, AnchoredReplicates, KernelExpansions, root_of
from unseed.engines._protocol import CONVERGED, Capability, Engine, LeftOut
from unseed.engines._shared import NEEDS_ALL_ROWS, OwnReplicates, check_training, influence_values
from unseed.engines._systems import Factor, Solver, solve_systems
from unseed.engines._task import NewPoints, Task, check_kept, restore_duals, rows_of, state_of_duals
from unseed.errors import InvalidInputError
from unseed.kernels import PopulationKernel
from unseed.losses import is_bent
from unseed.networks import MLP

_EXHAUSTED = 1e-11  # share of the largest kernel diagonal below which no row adds anything to the anchors
_CANDIDATES = 4096  # rows among which anchors are chosen, at least
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

    def fit(self, task: Task, plan: Plan, *, n_jobs: int | None = None) -> KernelReplicates | BentReplicates:
        """Solve every replicate on its distinct rows; the Gram matrix is built once where replicates overlap."""
        if self.converges and is_bent(task.loss):
            self.check(plan, task.X.device, n_jobs)
            return fit_bent(self, task, plan, self.kernel_of(task), n_jobs)
        task = task.as_ridge()
        self.kernel_of(task)  # or refuse what has none
        self.check(plan, task.X.device, n_jobs)
        solver = Solver(self.training, task.regularization, is_mixed=self.precision == "mixed")
        solved = solve_systems(task, plan, solver, n_jobs)
        kept = [factor for r in plan.reference if (factor := solved[r][1]) is not None]
        return self._replicates(task, plan, [weights for weights, _ in solved], kept)

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

    def restore(self, record: Record, task: Task, plan: Plan) -> KernelReplicates | AnchoredReplicates | BentReplicates:
        """Ready to predict; nothing is factorised yet."""
        kind = record.fact("kind", str)
        if not isinstance(task.network, MLP):
            raise record.fault("a network of infinite width must be an MLP")
        check_kept(record, kind if kind == "anchors" else "kernel", task, self)
        if kind == "anchors":
            return AnchoredReplicates.restore(record, self.kernel_of(task), task, plan)
        if is_bent(task.loss):
            duals = restore_duals(record, task, plan.distinct_rows)
            return replicates_of(self, task, plan, self.kernel_of(task), [dual[:, 0] for dual in duals])
        return self._replicates(task.as_ridge(), plan, restore_duals(record, task, plan.distinct_rows))

    def describe(self) -> str:
        """In a few words."""
        return "infinitely wide, in closed form"

    def _replicates(
        self, task: Task, plan: Plan, duals: list[Tensor], factors: Sequence[Factor] | None = None
    ) -> KernelReplicates:
        dual = task.labels.new_zeros(len(duals), *task.labels.shape)
        for replicate, own, weights in zip(dual, rows_of(plan, task.X.device), duals, strict=True):
            replicate[own] = weights
        return KernelReplicates(self, task, plan, self.kernel_of(task), task.X, dual, factors)


@dataclass(frozen=True)
class KernelReplicates(KernelExpansions, OwnReplicates[Factor]):
    """Infinitely wide networks of every replicate.

    Attributes
    ----------
    solved : sequence of factors, or None
        Of the reference replicates; None has them made again, by the same engine on the same rows, when first asked for.
    """

    solved: Sequence[Factor] | None = None

    def ridges(self) -> Sequence[Factor]:
        """Of the reference replicates."""
        if self.solved is not None:
            return self.solved
        counts = self.plan.counts[list(self.plan.reference)]
        again = cast(KernelReplicates, self.engine.fit(self.task, Plan(counts, tuple(range(len(counts))))))
        return again.ridges()

    def influence(self, points: NewPoints) -> Tensor:
        """Influence values from the one full-data factor; outputs do not mix at infinite width."""
        factor = self.full_factor
        weights = factor.solve(self.cross(points))  # c: (n_rows, n_points)
        columns = factor.residual(self.task.difference).unbind(1)
        return torch.cat([influence_values(r[:, None], weights[:, None, :, None]) for r in columns], dim=2)

    def leave_out(self, rows: Tensor) -> LeftOut:
        """Closed form, from the full-data factor."""
        errors, variance = self.full_factor.leave_one_out(self.task.difference, rows)
        return LeftOut(rows, errors, variance * self.amplitude)

    def procedural_covariance(self, points: NewPoints) -> Tensor:
        """Covariance of s(x) − c(x)ᵀ s(X), s the untrained network; mean over batches where the plan has batches."""
        prior = self.kernel.nngp_gram(self.profile(points))
        totals = []
        for smoother, cross, product in self._smoothed_starts(points):
            overlap = smoother.T @ cross
            totals.append(prior - overlap - overlap.T + smoother.T @ product)
        return torch.stack(totals).mean(0)

    def procedural_variance(self, points: NewPoints) -> Tensor:
        """Diagonal of the covariance, without the matrix."""
        parts = self._smoothed_starts(points)
        totals = [(smoother * (product - 2 * cross)).sum(0) for smoother, cross, product in parts]
        return (self.profile(points).diagonal.nngp + torch.stack(totals).mean(0)).clamp_min(0.0)

    def state(self) -> State:
        """Dual weights of the rows that each replicate has."""
        rows = rows_of(self.plan, self.dual.device)
        return {"kind": "kernel", **state_of_duals(dual[own] for dual, own in zip(self.dual, rows, strict=True))}

    def choose_anchors(self, n_anchors: int) -> Tensor:
        """By pivoted Cholesky: each next row is the least known so far.

        Of many rows, some thousand evenly spaced ones are looked at. Fewer than asked for where the others add nothing. Shape
        (m,), in the order of the rows.
        """
        points = self.points
        n_candidates = min(len(points), max(_CANDIDATES, 2 * n_anchors))
        candidates = torch.linspace(0, len(points) - 1, n_candidates, dtype=torch.float64).long().to(self.inputs.device)
        pivots, _ = pivoted_cholesky(self.kernel.ntk_gram(points[candidates]), n_anchors, _EXHAUSTED)
        return candidates[pivots.sort().values]

    def cut(self, anchors: Tensor, checked: Tensor | None, *, is_rounded: bool) -> AnchoredReplicates:
        """Dual weights of these rows alone, by least squares on the functions at all rows.

        Rounded to float32 is the posterior's factor, a triangle whose inverse is at most one, so that rounding stays small.
        """
        root = root_of(self.kernel, self.points[anchors])
        cross = self.kernel.ntk_cross(self.points, self.points[anchors])  # (n, m)
        features = torch.linalg.solve_triangular(root, cross.T, upper=False).T  # Φ
        orthogonal, triangle = torch.linalg.qr(features)
        values = self.predict(NewPoints(self.inputs))  # (n_replicates, n, n_groups, n_outputs)
        white = torch.linalg.solve_triangular(triangle, orthogonal.T @ values.transpose(0, 1).flatten(1), upper=True)
        weights = torch.linalg.solve_triangular(root.T, white, upper=True)
        dual = weights.reshape(len(anchors), len(values), *values.shape[2:]).transpose(0, 1).contiguous()
        posterior = None
        if checked is not None and "posterior" in self.capabilities:
            inner = (features / self.full_factor.ridge[:, None]).T @ features
            inner.diagonal().add_(1.0)
            known = torch.linalg.cholesky(inner).contiguous()  # solves depend on the order in memory, in their last bits
            known = known.float().double() if is_rounded else known
            ones = features.T @ (1 / self.full_factor.ridge[:, None])
            constant = torch.linalg.solve_triangular(known, ones, upper=False)[:, 0]
            of_mean = torch.cat([constant, self.constant()[1][None]])
            posterior = AnchoredPosterior(known, self.amplitude, self.leave_out(checked), of_mean)
        return AnchoredReplicates(self.kernel, self.inputs[anchors], dual, self.noise_variance(), posterior)

    def whiten(self, cross: Tensor) -> Tensor:
        """With the factor of the network of all rows."""
        return self.full_factor.whiten(cross)

    def constant(self) -> tuple[Tensor, Tensor]:
        """L⁻¹1, and its square."""
        return self._white_constant, self._white_constant.square().sum()

    @cached_property
    def _white_constant(self) -> Tensor:
        return self.whiten(self.task.labels.new_ones(len(self.task.X), 1))[:, 0]

    @property
    def full_factor(self) -> DualRidge:
        """Of the one network of all rows."""
        factor, _ = self.full_fit
        if not isinstance(factor, DualRidge):
            raise InvalidInputError(NEEDS_ALL_ROWS)
        return factor

    @cached_property
    def amplitude(self) -> Tensor:
        """Of the Gaussian process, output by output. Shape (n_outputs,)."""
        return self.full_factor.amplitude(self.task.difference)

    def _smoothed_starts(self, points: NewPoints) -> Iterable[tuple[Tensor, Tensor, Tensor]]:
        """Of each reference replicate c(x), how far each of its labels moves each prediction; Σ(X, x); and Σ(X, X) c."""
        cross, at = self.cross(points), self.profile(points)
        for rows, (factor, _) in zip(
            rows_of(self.plan, at.directions.device, self.plan.reference), self.references, strict=True
        ):
            own, smoother = self.points[rows], factor.solve(cross[rows])
            yield smoother, self.kernel.nngp_cross(own, at), self.kernel.nngp_product(own, own, smoother)
