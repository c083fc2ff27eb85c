"""How long a network is trained: to convergence, or stopped, by a real network's own steps or in closed form.

For loss (1/n)Σ(f − y)² + λ‖θ − θᵇ‖², a direction of a linearised network with kernel eigenvalue μ has curvature
v = μ/n + λ. Trained for ever it is fitted by 1/v; stopped early by ``gain(v)`` < 1/v.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unseed._checks import check_number, check_share, check_whole_number
from unseed._progress import Progress
from unseed._solvers.objective import Fit, Objective, check_rate, norm
from unseed._solvers.work import Work
from unseed.errors import InvalidInputError

STEPS_PER_ROW = 1.5
"""An eigendecomposition of n rows takes as long as this many times n products with a vector."""


@dataclass(frozen=True)
class Converged:
    """Training until nothing changes any more, t → ∞: the setting of all the paper's theorems."""

    def closed_form_work(self, n_rows: int, n_columns: int) -> list[Work]:
        """What a system of so many rows and label columns takes, with its matrix there."""
        return [Work("factorisation", (n_rows,))]


@dataclass(frozen=True)
class GradientFlow:
    """Gradient flow θ' = −rate · ∇loss, stopped at ``time``.

    Examples
    --------
    >>> GradientFlow(time=10.0, rate=0.1)
    GradientFlow(time=10.0, rate=0.1)
    """

    time: float
    rate: float = 1.0

    def __post_init__(self) -> None:
        check_number("time", self.time, at_least=0)
        check_number("rate", self.rate, above=0)

    def gain(self, curvature: Tensor) -> Tensor:
        """(1 − exp(−2 rate time v)) / v, continued to v = 0."""
        span = 2 * self.rate * self.time
        return torch.where(curvature > 0, -torch.expm1(-span * curvature) / curvature, span)

    def closed_form_work(self, n_rows: int, n_columns: int) -> list[Work]:
        """An eigendecomposition."""
        return [Work("solvers.spectral", (n_rows,), asked_by=f"training={self}")]


@dataclass(frozen=True)
class GradientDescent:
    """A number of full-batch gradient steps of fixed rate: the paper's own training.

    Parameters
    ----------
    steps : int
    rate : float or "auto"
        ``"auto"`` is half the inverse of the largest curvature of the loss, so that no direction overshoots.
    tolerance : float or None
        Real networks only: stop earlier, when the gradient has fallen to this share of its start.

    Examples
    --------
    >>> GradientDescent(steps=80, rate=0.01)
    GradientDescent(steps=80, rate=0.01, tolerance=None)
    """

    steps: int
    rate: float | str = "auto"
    tolerance: float | None = None

    def __post_init__(self) -> None:
        check_whole_number("steps", self.steps, at_least=0)
        check_rate(self.rate)
        if self.tolerance is not None:
            check_share("tolerance", self.tolerance)

    def gain(self, curvature: Tensor) -> Tensor:
        """(1 − (1 − 2 rate v)^steps) / v, continued to v = 0; a rate that would diverge is refused."""
        largest = float(curvature.max())
        rate = 0.5 / largest if isinstance(self.rate, str) else float(self.rate)
        step = 2 * rate * curvature
        if rate * largest > 1:
            raise InvalidInputError(
                f"rate={rate:g} diverges: the largest curvature of the loss is {2 * largest:.3g}; "
                f"use a rate of at most {1 / largest:.3g}"
            )
        slow = -torch.expm1(self.steps * torch.log1p(-step.clamp_max(0.5)))
        fitted = torch.where(step < 0.5, slow, 1 - (1 - step) ** self.steps)
        return torch.where(curvature > 0, fitted / curvature, 2 * rate * self.steps)

    def goes_by_steps(self, n_rows: int, n_columns: int) -> bool:
        """Whether products with the kernel, one for each step and column, are cheaper than an eigendecomposition."""
        return not isinstance(self.rate, str) and self.steps * n_columns <= STEPS_PER_ROW * n_rows

    def closed_form_work(self, n_rows: int, n_columns: int) -> list[Work]:
        """By the cheaper way, no direction diverging, which only the data know: all entries are looked at for that."""
        option = f"training={self}"
        if self.goes_by_steps(n_rows, n_columns):
            return [Work("solvers.product", (self.steps * n_columns + 1, n_rows, n_rows), asked_by=option)]
        return [Work("solvers.spectral", (n_rows,), asked_by=option)]

    def network_work(self, n_rows: int, n_outputs: int) -> list[Work]:
        """What one finite network takes: the gradient of all rows for each step, and at the end."""
        return [Work("network.step", (n_rows,), self.steps + 1, at_most=self.tolerance is not None)]

    def rows_of_a_step(self, n_rows: int) -> int:
        """All of them."""
        return n_rows

    def train(self, objective: Objective, progress: Progress) -> Fit:
        """Train every network of the batch together; ``rate="auto"`` halves the rate of a network whose loss went up."""
        rate, tolerance = objective.rates(self.rate), self.tolerance or 0.0
        parameters, share, step = objective.start.clone(), torch.ones(len(objective.start)), 0
        norms: list[Tensor] = []
        losses: list[Tensor] = []
        with progress.steps("gradient descent", self.steps) as report:
            for step in range(self.steps + 1):
                evaluation = objective.batch.evaluate(parameters, objective.X)
                gradient = objective.gradient(evaluation, parameters)
                if step % 10 == 0 or step == self.steps:  # norms and losses cost as much as a few steps
                    norms.append(norm(gradient))
                    losses.append(objective.value(evaluation.outputs, parameters))
                    share = norms[-1] / norms[0].clamp_min(torch.finfo(torch.float64).tiny)
                    if self.rate == "auto" and len(losses) > 1:
                        rate = torch.where(losses[-1] > losses[-2], rate / 2, rate)
                    if bool((share <= tolerance).all()):
                        break
                if step < self.steps:
                    parameters = torch.addcmul(parameters, gradient, rate[:, None].to(gradient.dtype), value=-1)
                    report(loss=float(losses[-1].max()) if progress.active else 0.0)
        risen = ~(losses[-1] <= losses[0])
        if bool(risen.any()) and self.steps:
            largest = float(objective.largest_curvature().max())
            raise InvalidInputError(
                f"rate={self.rate} diverges: the loss of {int(risen.sum())} networks ended above its start; "
                f"use a rate of at most {1 / largest:.3g}, or rate='auto'"
            )
        return Fit(parameters, losses[-1], share, step, share <= tolerance)


Stopped = GradientFlow | GradientDescent
Training = Converged | Stopped
