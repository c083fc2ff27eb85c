"""The kernel engine: infinitely wide networks, trained in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from unseed._resampling import Plan
from unseed._solvers import Converged, DualRidge, Training
from unseed.engines._cost import Cost, kernel_cost
from unseed.engines._forecast import check_memory
from unseed.engines._protocol import LeftOut, Task, check_training, influence_values, pooled_noise
from unseed.engines._systems import Factor, Solver, solve_systems, systems_of
from unseed.errors import InvalidInputError
from unseed.kernels import PopulationKernel, Profile
from unseed.networks import MLP


@dataclass(frozen=True)
class KernelEngine:
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

    def fit(self, task: Task, plan: Plan, *, n_jobs: int | None = None) -> KernelReplicates:
        """Solve every replicate on its distinct rows; the Gram matrix is built once where replicates overlap."""
        task = task.as_ridge()
        if not isinstance(task.network, MLP):
            raise InvalidInputError("engine='kernel' knows the kernels of MLP(...) only; use engine='network' for a module")
        self.check_memory(plan, task.X.device, n_jobs)
        systems = systems_of(plan, task.labels)
        solver = Solver(self.training, task.regularization, is_mixed=self.precision == "mixed")
        solved = solve_systems(task.network, task.X, systems, solver, plan, n_jobs)
        dual = task.labels.new_zeros(len(systems), *task.labels.shape)
        for replicate, system, (weights, _) in zip(dual, systems, solved, strict=True):
            replicate[system.rows] = weights
        kernel = PopulationKernel(task.network)
        return KernelReplicates(
            kernel=kernel,
            points=kernel.profile(task.X),
            contrast=task.contrast,
            dual=dual,
            references=[(systems[r].rows, factor) for r in plan.reference if (factor := solved[r][1]) is not None],
        )

    def check_memory(self, plan: Plan, device: torch.device, n_jobs: int | None = None) -> None:
        """Refuse a plan whose matrices cannot fit; of use before anything else is done for it."""
        check_memory(plan, device, n_jobs, self.copies(device))

    def cost(self, task: Task, plan: Plan) -> Cost:
        """Work and memory, before anything is begun."""
        return kernel_cost(task, plan, self.training, self.copies(task.X.device), is_mixed=self.precision == "mixed")

    @property
    def is_infinite(self) -> bool:
        """Networks have infinite width."""
        return True

    def copies(self, device: torch.device) -> int:
        """Matrices that a solver needs beside its own."""
        return int(device.type == "cuda") if self.converges else 4


@dataclass(frozen=True)
class KernelReplicates:
    """Trained infinite networks: dual weights of every replicate, factors of the reference ones."""

    kernel: PopulationKernel
    points: Profile
    contrast: Tensor  # (n_rows, n_outputs)
    dual: Tensor  # (n_replicates, n_rows, n_groups, n_outputs)
    references: Sequence[tuple[Tensor, Factor]]

    def predict(self, X: Tensor) -> Tensor:
        """One pass over the cross-kernel, which is never held as a whole, serves all replicates."""
        n_replicates, n_rows, *columns = self.dual.shape
        weights = self.dual.transpose(0, 1).reshape(n_rows, -1)
        matter = weights.any(0)  # the auxiliary network of a start with mean zero has no weights at all
        flat = weights.new_zeros(len(X), weights.shape[1])
        flat[:, matter] = self.kernel.ntk_product(self.kernel.profile(X), self.points, weights[:, matter])
        return flat.reshape(len(X), n_replicates, *columns).transpose(0, 1)

    def influence(self, X: Tensor) -> Tensor:
        """Influence values from the one full-data factor; outputs do not mix at infinite width."""
        (rows, factor), *batches = self.references
        if batches or not isinstance(factor, DualRidge):
            raise InvalidInputError("influence values need a network trained to convergence on all rows")
        weights = factor.solve(self.kernel.ntk_cross(self.points[rows], self.kernel.profile(X)))  # c: (n_rows, n_points)
        columns = factor.residual(self.contrast[rows]).unbind(1)
        return torch.cat([influence_values(r[:, None], weights[:, None, :, None]) for r in columns], dim=2)

    def posterior_variance(self, X: Tensor, minus: Tensor | None = None) -> Tensor:
        """Amplitude times K(x, x) − k(x)ᵀA⁻¹k(x), or the same of a difference of points."""
        at, (points, factor) = self.kernel.profile(X), self._full_fit
        prior, known = at.diagonal.ntk, factor.whiten(self.kernel.ntk_cross(points, at))
        if minus is not None:
            other = self.kernel.profile(minus)
            prior = prior + other.diagonal.ntk - 2 * self._paired(at, other)
            known = known - factor.whiten(self.kernel.ntk_cross(points, other))
        return (prior - known.square().sum(0)).clamp_min(0.0)[:, None] * self._amplitude

    def posterior_covariance(self, X: Tensor) -> Tensor:
        """Amplitude times K(X, X) − k(X)ᵀA⁻¹k(X), output by output."""
        at, (points, factor) = self.kernel.profile(X), self._full_fit
        known = factor.whiten(self.kernel.ntk_cross(points, at))
        return self._amplitude[:, None, None] * (self.kernel.ntk_gram(at) - known.T @ known)

    def leave_out(self, rows: Tensor) -> LeftOut:
        """Closed form, from the full-data factor."""
        _, factor = self._full_fit
        curvature = factor.inverse_diagonal(rows)[:, None]
        errors = factor.solve(self.contrast)[rows] / curvature
        variance = (1 / curvature - factor.ridge[rows][:, None]).clamp_min(0.0) * self._amplitude
        return LeftOut(rows, errors, variance)

    def procedural_covariance(self, X: Tensor) -> Tensor:
        """Covariance of s(x) − c(x)ᵀ s(X), s the untrained network; mean over batches where the plan has batches."""
        at = self.kernel.profile(X)
        prior = self.kernel.nngp_gram(at)
        return torch.stack([self._conditional(prior, at, *reference) for reference in self.references]).mean(0)

    def procedural_variance(self, X: Tensor) -> Tensor:
        """Diagonal of the covariance, without the matrix."""
        at = self.kernel.profile(X)
        totals = []
        for rows, factor in self.references:
            points, weights = self._smoother(at, rows, factor)
            known = self.kernel.nngp_cross(points, at)
            totals.append((weights * (self._prior_times(points, weights) - 2 * known)).sum(0))
        return (at.diagonal.nngp + torch.stack(totals).mean(0)).clamp_min(0.0)

    def noise_variance(self) -> Tensor:
        """Residual sum of squares over its trace, pooled over the reference replicates."""
        return pooled_noise(factor.noise_moments(self.contrast[rows]) for rows, factor in self.references)

    @property
    def numbers_per_prediction(self) -> int:
        """No row of the cross-kernel: the point, what the kernel knows of it alone, its predictions, all copied a few times."""
        features = sum(layer.features[0].numel() for layer in self.points.layers)
        return 4 * (self.points.directions.shape[1] + features + self.dual.numel() // len(self.points))

    @property
    def numbers_per_point(self) -> int:
        """A row of the cross-kernel, the point's own features, or the predictions: whichever is longest."""
        features = max((layer.features[0].numel() for layer in self.points.layers), default=1)
        return max(len(self.points), features, self.dual.numel() // len(self.points))

    @property
    def _full_fit(self) -> tuple[Profile, DualRidge]:
        (rows, factor), *batches = self.references
        if batches or not isinstance(factor, DualRidge):
            raise InvalidInputError("a posterior needs a network trained to convergence on all rows")
        return self.points[rows], factor

    @cached_property
    def _amplitude(self) -> Tensor:
        """Of the Gaussian process, output by output. Shape (n_outputs,)."""
        _, factor = self._full_fit
        return factor.amplitude(self.contrast)

    def _paired(self, left: Profile, right: Profile) -> Tensor:
        """K(x, x') of points taken pair by pair. Shape (n_points,)."""
        size = 64  # a small block for every diagonal piece: 64 times too much work, and still little
        slices = [slice(start, start + size) for start in range(0, len(left), size)]
        return torch.cat([self.kernel.ntk_cross(left[s], right[s]).diagonal() for s in slices])

    def _conditional(self, prior: Tensor, at: Profile, rows: Tensor, factor: Factor) -> Tensor:
        points, weights = self._smoother(at, rows, factor)
        overlap = weights.T @ self.kernel.nngp_cross(points, at)
        return prior - overlap - overlap.T + weights.T @ self._prior_times(points, weights)

    def _smoother(self, at: Profile, rows: Tensor, factor: Factor) -> tuple[Profile, Tensor]:
        """Training points of a reference replicate, and c(x): how far each of their labels moves each prediction."""
        points = self.points[rows]
        return points, factor.solve(self.kernel.ntk_cross(points, at))

    def _prior_times(self, points: Profile, weights: Tensor) -> Tensor:
        """Σ(X, X) c without holding Σ(X, X)."""
        return self.kernel.nngp_product(points, points, weights)
