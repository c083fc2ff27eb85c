"""Gauss-Newton in function space: a wide network trained to convergence in a handful of steps.

With J the Jacobian at θ, the linearised loss with a damping μ‖step‖² is minimised by
step = Jᵀ a − q (θ − θᵇ), a = (J Jᵀ + (λ + μ) n W⁻¹)⁻¹ (r + q J(θ − θᵇ)), q = λ/(λ + μ):
with W the weights times half the curvature V of the loss in f and r = −u/V, u its gradient (for the square y − f(θ)):
one n-by-n solve instead of p-by-p. Forming J Jᵀ costs n² p operations, trying a damping only n³/3 + n p, so every step
tries several dampings around the last good one and keeps the best (Levenberg's damping and the backtracking in one).

A ReLU's derivative jumps, and a step that carries pre-activations across their kinks is not seen by the Jacobian at its
start. So the Jacobian of a step is smoothed over as far as the step before it moved the pre-activations; the loss that
accepts or refuses it is the true one. At a minimum that lies on kinks the gradient cannot vanish: training has
also converged when several steps in a row no longer lower the loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from unseed._checks import check_share, check_whole_number
from unseed._progress import Progress
from unseed._solvers.objective import Fit, Objective, norm, stalled
from unseed._solvers.work import Work
from unseed.networks import Evaluation

_TRIALS = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2)  # times the last damping
_NOTHING = 1e-12  # a loss that falls by less has reached the end of its digits
_SMALL_GRADIENT = 1e-2  # a loss that stands still with a larger gradient is stuck, not converged
_TYPICAL_STEPS, _GRADIENTS_OF_A_STEP = 18, 8  # 15 to 30 steps were counted
_SMALLEST, _LARGEST, _FIRST = 1e-13, 1e8, 1e-3  # relative to the mean diagonal of J Jᵀ


@dataclass(frozen=True)
class GaussNewton:
    """Train by Gauss-Newton steps in function space until the gradient has vanished.

    Parameters
    ----------
    steps : int
        At most so many.
    tolerance : float
        Stop when the gradient's norm has fallen to this share of its start.
    stall : float
        For ReLU, stop too when three steps together lowered the loss by less than this share: a minimum on kinks.

    Examples
    --------
    >>> GaussNewton(tolerance=1e-5)
    GaussNewton(steps=30, tolerance=1e-05, stall=0.001)
    """

    steps: int = 30
    tolerance: float = 1e-6
    stall: float = 1e-3

    def __post_init__(self) -> None:
        check_whole_number("steps", self.steps, at_least=1)
        check_share("tolerance", self.tolerance)
        check_share("stall", self.stall)

    def network_work(self, n_rows: int, n_outputs: int) -> list[Work]:
        """What one network takes in a typical number of steps."""
        size = n_rows * n_outputs
        damped = [Work("factorisation", (size,), len(_TRIALS)), Work("cut", (size, size), len(_TRIALS))]
        gradients = Work("network.step", (n_rows,), _GRADIENTS_OF_A_STEP)
        step = [gradients, Work("network.training_tangent", (n_rows, n_rows)), *damped]
        return [min(self.steps, _TYPICAL_STEPS) * work for work in step]

    def rows_of_a_step(self, n_rows: int) -> int:
        """All of them."""
        return n_rows

    def train(self, objective: Objective, progress: Progress) -> Fit:
        """Train every network of the batch; those that have converged are left alone."""
        parameters = objective.start.clone()
        evaluation = objective.batch.evaluate(parameters, objective.X)
        first = norm(objective.gradient(evaluation, parameters)).clamp_min(torch.finfo(torch.float64).tiny)
        share, damping = torch.ones_like(first), torch.full_like(first, _FIRST)
        losses = [objective.value(evaluation.outputs, parameters)]
        done = torch.zeros_like(first, dtype=torch.bool)
        blur: Tensor | None = None
        step = 0
        with progress.steps("Gauss-Newton", self.steps) as report:
            for step in range(1, self.steps + 1):  # noqa: B007 - how many were needed is reported
                model = evaluation if blur is None else objective.batch.evaluate(parameters, objective.X, blur)
                parameters, loss, damping = _best_step(objective, model, parameters, losses[-1], damping, ~done)
                moved = objective.batch.evaluate(parameters, objective.X)
                blur = _next_blur(moved.blur_since(evaluation), blur)
                evaluation = moved
                losses.append(loss)
                share = norm(objective.gradient(evaluation, parameters)) / first
                is_still = stalled(losses, 3, _NOTHING if blur is None else self.stall)
                done = (share <= self.tolerance) | (is_still & (share <= _SMALL_GRADIENT))
                report(loss=float(loss.max()), gradient=float(share.max()))
                if bool(done.all()):
                    break
        return Fit(parameters, losses[-1], share, step, done)


def _next_blur(moved: Tensor | None, blur: Tensor | None) -> Tensor | None:
    """Width of the smoothing for the next step: as far as this one moved, or less when it could not move at all."""
    if moved is None:
        return None
    smallest = torch.finfo(moved.dtype).tiny ** 0.5
    previous = torch.zeros_like(moved) if blur is None else 0.3 * blur
    return torch.where(moved > 0, moved, previous).clamp_min(smallest)


def _best_step(
    objective: Objective, evaluation: Evaluation, parameters: Tensor, loss: Tensor, damping: Tensor, open_: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Try the dampings around the last one; parameters, loss and damping of the best, or the old ones and more damping."""
    step = _damped_step(objective, evaluation, parameters)
    best, best_loss, best_damping = parameters, loss, (damping * 10).clamp(max=_LARGEST)
    for trial in _TRIALS:
        tried = (damping * trial).clamp(_SMALLEST, _LARGEST)
        moved = parameters + step(tried)
        moved_loss = objective.value(objective.batch.outputs(moved, objective.X), moved)
        better = open_ & (moved_loss < best_loss)  # a comparison with NaN, from a failed factorisation, is false
        best = torch.where(better[:, None], moved, best)
        best_loss = torch.where(better, moved_loss, best_loss)
        best_damping = torch.where(better, tried, best_damping)
    return best, best_loss, best_damping


def _damped_step(objective: Objective, evaluation: Evaluation, parameters: Tensor) -> Callable[[Tensor], Tensor]:
    """The step as a function of its damping; what all dampings share is made once."""
    sizes, lam, travelled = objective.sizes, objective.regularization, parameters - objective.start
    weights, residual = objective.newton_step(evaluation.outputs)
    kernel, linear = evaluation.tangent_kernel().double(), evaluation.push(travelled).flatten(1).double()
    scale, roots = kernel.diagonal(dim1=1, dim2=2).mean(1) / sizes, weights.sqrt()
    # W^½ (W^½ K W^½ + ridge)⁻¹ W^½ instead of (K + ridge W⁻¹)⁻¹: padded rows, with weight 0, drop out by themselves
    weighted = roots[:, :, None] * kernel * roots[:, None, :]

    def step(damping: Tensor) -> Tensor:
        extra = damping * scale
        kept = lam / (lam + extra)  # q
        matrix = weighted.clone()
        matrix.diagonal(dim1=1, dim2=2).add_(((lam + extra) * sizes)[:, None])
        factor, failed = torch.linalg.cholesky_ex(matrix)
        target = (roots * (residual + kept[:, None] * linear))[:, :, None]
        dual = roots * torch.cholesky_solve(target, factor)[:, :, 0]
        dual[failed > 0] = torch.nan
        pulled = evaluation.pull(dual.reshape(objective.labels.shape).to(travelled.dtype))
        return pulled - kept[:, None].to(travelled.dtype) * travelled

    return step
