"""Monte Carlo dropout (Gal and Ghahramani, 2016): a network trained with dropout, asked many times with dropout on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor

from unseed._progress import Progress
from unseed._random import Streams
from unseed._results import FloatArray
from unseed._scaling import Scaling
from unseed._solvers import GradientDescent, Objective
from unseed._state import Record, State
from unseed.errors import InvalidInputError
from unseed.networks import MLP, MLPBatch, restore_batch

_MOMENTUM = 0.9


@dataclass(frozen=True)
class DropoutNetwork:
    """A trained network with its dropout rate."""

    batch: MLPBatch
    parameters: Tensor  # (1, p)
    rate: float
    scaling: Scaling
    streams: Streams
    noise_variance: FloatArray  # (n_outputs,)

    def state(self) -> State:
        """Parameters, rate and seed."""
        return {
            "scaling": self.scaling.state(),
            "width": self.batch.width,
            "parameters": self.parameters,
            "noise_variance": self.noise_variance,
            "rate": float(self.rate),
            "seed": self.streams.seed,
        }

    @classmethod
    def restore(cls, record: Record, network: MLP, device: torch.device) -> DropoutNetwork:
        """From `state`."""
        scaling = Scaling.restore(record.part("scaling"))
        parameters, row = record.tensor("parameters", device, 1, None), torch.zeros(1, *scaling.x_mean.shape)
        batch = cast(MLPBatch, restore_batch(record, network, row, scaling.n_outputs, parameters.shape[1]))
        rate, streams = record.fact("rate", float), Streams(record.whole_number("seed"))
        if not 0 < rate < 1:
            raise record.fault(f"rate={rate} should be between 0 and 1")
        return cls(batch, parameters, rate, scaling, streams, record.array("noise_variance", scaling.n_outputs))

    def passes(self, X: FloatArray, n_passes: int) -> FloatArray:
        """Predictions under so many random sets of dropped neurons, the same sets for all points.

        Shape (n_passes, n_points, n_outputs).
        """
        inputs = torch.tensor(self.scaling.to_network(X), dtype=torch.float64, device=self.parameters.device)[None]
        passes = (self.streams.generator("dropout pass", index) for index in range(n_passes))
        with torch.no_grad():
            outputs = [
                self.batch.outputs(self.parameters, inputs, _draw_kept(self.batch, self.rate, one, inputs)) for one in passes
            ]
        return self.scaling.from_labels(torch.cat(outputs))


def train_dropout(
    objective: Objective,
    rate: float,
    trainer: int | GradientDescent,
    scaling: Scaling,
    streams: Streams,
    progress: Progress,
) -> DropoutNetwork:
    """Full-batch gradient steps on the paper's loss, a fresh set of dropped neurons at every step.

    A number of steps has momentum and a rate that suits the network; `GradientDescent` is taken at its word.
    """
    batch = cast(MLPBatch, objective.batch)  # nothing else gets here
    steps, momentum, speed = _pace(objective, rate, trainer)
    parameters = objective.start.clone()
    velocity = torch.zeros_like(parameters)
    with progress.steps("dropout training", steps) as report:
        for step in range(steps):
            kept = _draw_kept(batch, rate, streams.generator("dropout step", step), objective.X)
            leaf = parameters.detach().requires_grad_()
            loss = objective.value(batch.outputs(leaf, objective.X, kept), leaf).sum()
            (gradient,) = torch.autograd.grad(loss, leaf)
            velocity = momentum * velocity - speed * gradient
            parameters = parameters + velocity
            report(loss=float(loss.detach()))
    if not bool(torch.isfinite(parameters).all()):
        knob = f"rate={rate}" if isinstance(trainer, int) else f"trainer={trainer}"
        raise InvalidInputError(f"training with dropout diverged: {knob}; use a smaller rate")
    residual = objective.labels[0] - batch.outputs(parameters, objective.X)[0]
    noise = scaling.from_variances(residual.square().mean(0))
    return DropoutNetwork(batch, parameters, rate, scaling, streams, noise)


def _pace(objective: Objective, rate: float, trainer: int | GradientDescent) -> tuple[int, float, Tensor]:
    """Steps, momentum and learning rate."""
    # masks of the survivors multiply the curvature by up to 1/(1 − rate)
    safe = (1 - rate) * objective.rates("auto")[:, None]
    if not isinstance(trainer, GradientDescent):
        return trainer, _MOMENTUM, 2 * (1 - _MOMENTUM) * safe
    return trainer.steps, 0.0, safe if trainer.rate == "auto" else objective.rates(trainer.rate)[:, None]


def _draw_kept(batch: MLPBatch, rate: float, generator: np.random.Generator, like: Tensor) -> list[Tensor]:
    """Factors of every hidden layer's neurons: 0 with probability ``rate``, else 1/(1 − rate)."""
    kept = generator.random((batch.network.depth, batch.width)) >= rate
    return list(torch.from_numpy(kept).to(like) / (1 - rate))
