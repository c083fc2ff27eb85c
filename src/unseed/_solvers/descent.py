"""Full-batch gradient descent on real networks: the paper's own training, and a slow road to convergence."""

from __future__ import annotations

import torch

from unseed._progress import Progress
from unseed._solvers.objective import Fit, Objective, norm
from unseed._solvers.training import GradientDescent
from unseed.errors import InvalidInputError


def descend(training: GradientDescent, objective: Objective, progress: Progress) -> Fit:
    """Gradient steps of fixed rate; ``rate="auto"`` halves the rate of a network whose loss went up.

    With a tolerance, training also stops when every network's gradient has fallen to that share of its start.
    """
    adaptive = training.rate == "auto"
    if isinstance(training.rate, str):
        rate = 0.5 / objective.largest_curvature()
    else:
        rate = torch.full((len(objective.start),), training.rate, dtype=torch.float64, device=objective.start.device)
    parameters = objective.start.clone()
    first, loss, share, start_loss, step = None, None, None, None, 0
    with progress.steps("gradient descent", training.steps) as report:
        for step in range(training.steps + 1):
            evaluation = objective.batch.evaluate(parameters, objective.X)
            gradient = objective.gradient(evaluation, parameters)
            if step % 10 == 0 or step == training.steps:  # norms and losses cost as much as a few steps
                size = norm(gradient)
                first = size.clamp_min(torch.finfo(torch.float64).tiny) if first is None else first
                share, now = size / first, objective.value(evaluation.outputs, parameters)
                if adaptive and loss is not None:
                    rate = torch.where(now > loss, rate / 2, rate)
                loss = now
                start_loss = now if start_loss is None else start_loss
                if bool((share <= (training.tolerance or 0.0)).all()):
                    break
            if step < training.steps:
                parameters = torch.addcmul(parameters, gradient, rate[:, None].to(gradient.dtype), value=-1)
                report(loss=float(loss.max()) if loss is not None and progress.active else 0.0)
    assert loss is not None
    assert share is not None
    assert start_loss is not None
    if not bool((loss <= start_loss).all()) and training.steps:
        largest = float(objective.largest_curvature().max())
        raise InvalidInputError(
            f"rate={training.rate} diverges: the loss of {int((~(loss <= start_loss)).sum())} networks ended above its start; "
            f"use a rate of at most {1 / largest:.3g}, or rate='auto'"
        )
    return Fit(parameters, loss, share, step, share <= (training.tolerance or 0.0))
