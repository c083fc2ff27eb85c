"""Mini-batch stochastic gradient descent with momentum, for modules of the user's own and for many rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from unseed._checks import check_share, check_whole_number
from unseed._progress import Progress
from unseed._solvers.objective import Fit, Objective, check_rate, norm, stalled
from unseed._solvers.work import Work


@dataclass(frozen=True)
class SGD:
    """Mini-batch gradient steps with momentum, a cosine schedule, and an early stop on the training loss.

    A network whose loss explodes goes back to its best epoch and on at half the rate.

    Base and auxiliary network of a replicate see the same batches in the same order, so what the order adds is the same
    for both and cancels to first order in their difference.

    Parameters
    ----------
    epochs : int
        At most so many passes over the rows.
    batch_size : int
    rate : float or "auto"
        Largest rate of the schedule; ``"auto"`` is half the inverse of the largest curvature of the loss.
    momentum : float
    tolerance : float
        Stop when ten epochs together lowered no network's loss by more than this share.

    Examples
    --------
    >>> SGD(epochs=50)
    SGD(epochs=50, batch_size=64, rate='auto', momentum=0.9, tolerance=0.0001)
    """

    epochs: int = 300
    batch_size: int = 64
    rate: float | str = "auto"
    momentum: float = 0.9
    tolerance: float = 1e-4

    def __post_init__(self) -> None:
        check_whole_number("epochs", self.epochs, at_least=1)
        check_whole_number("batch_size", self.batch_size, at_least=1)
        check_rate(self.rate)
        if self.momentum != 0:
            check_share("momentum", self.momentum)
        check_share("tolerance", self.tolerance)

    def network_work(self, n_rows: int, n_outputs: int) -> list[Work]:
        """What one network takes at most: rows are gathered too, and the loss of all is looked at once an epoch."""
        return [Work("network.step", (n_rows,), 2 * self.epochs, at_most=True)]

    def rows_of_a_step(self, n_rows: int) -> int:
        """A mini-batch."""
        return min(n_rows, self.batch_size)

    def train(self, objective: Objective, progress: Progress) -> Fit:
        """Train every network of the batch together."""
        n_rows = objective.X.shape[1]
        orders = [np.random.default_rng(seed) for seed in objective.order_seeds or [0] * len(objective.start)]
        per_epoch = -(-n_rows // self.batch_size)
        rate = objective.rates(self.rate, max_rows=min(256, 4 * self.batch_size))
        parameters, velocity = objective.start.clone(), torch.zeros_like(objective.start)
        evaluation = objective.batch.evaluate(parameters, objective.X)
        first = norm(objective.gradient(evaluation, parameters)).clamp_min(torch.finfo(torch.float64).tiny)
        losses = [objective.value(evaluation.outputs, parameters)]
        best, best_loss = parameters, losses[0]
        last_lost = torch.zeros_like(first)
        settled, epoch = torch.zeros_like(first, dtype=torch.bool), 0
        with progress.steps("stochastic gradient descent", self.epochs) as report:
            for epoch in range(1, self.epochs + 1):
                rows = torch.from_numpy(np.stack([order.permutation(n_rows) for order in orders])).to(objective.X.device)
                for index, chunk in enumerate(torch.split(rows, self.batch_size, dim=1)):
                    done = (epoch - 1 + index / per_epoch) / self.epochs
                    now = (rate * 0.5 * (1 + math.cos(math.pi * done)))[:, None].to(parameters.dtype)
                    gradient = self._gradient(objective, parameters, chunk)
                    velocity = self.momentum * velocity - now * gradient
                    parameters = parameters + velocity
                loss = objective.value(objective.batch.outputs(parameters, objective.X), parameters)
                # A loss far above the best so far (or NaN): go back there and on at half the rate.
                lost = ~(loss <= 4 * best_loss)
                last_lost = torch.where(lost, epoch, last_lost)
                parameters = torch.where(lost[:, None], best, parameters)
                velocity = torch.where(lost[:, None], 0.0, velocity)
                rate = torch.where(lost, rate / 2, rate)
                loss = torch.where(lost, best_loss, loss)
                better = loss < best_loss
                best, best_loss = torch.where(better[:, None], parameters, best), torch.where(better, loss, best_loss)
                losses.append(loss)
                report(loss=float(losses[-1].max()) if progress.active else 0.0)
                settled = stalled(losses, 10, self.tolerance, floor=1e-12) & (last_lost <= epoch - 10)
                if bool(settled.all()):
                    break
        share = norm(objective.gradient(objective.batch.evaluate(best, objective.X), best)) / first
        # A cosine schedule ends at rate zero: where the loss has stopped falling by then, training is over.
        return Fit(best, best_loss, share, epoch, settled | (share < 0.01))

    def _gradient(self, objective: Objective, parameters: Tensor, chunk: Tensor) -> Tensor:
        part = objective.rows(chunk)
        evaluation = part.batch.evaluate(parameters, part.X)
        # weights over the expected weight of a batch: an unbiased estimate of the full gradient also with padded rows
        expected = objective.sizes / objective.X.shape[1] * chunk.shape[1]
        return part.gradient_of_rows(evaluation, expected) + 2 * objective.regularization * (parameters - objective.start)
