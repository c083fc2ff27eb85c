"""What a batch of networks is trained for: (1/n) Σ c_i ℓ(f(x_i), y_i) + λ ‖θ − θᵇ‖², centred at the start."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from unseed.losses import Loss, Squared, newton_step
from unseed.networks._protocol import Evaluation, NetworkBatch


@dataclass(frozen=True)
class Objective:
    """B training problems of one architecture, solved together.

    Attributes
    ----------
    batch : NetworkBatch
    start : Tensor of shape (B, p)
        θᵇ.
    X : Tensor of shape (B, n, ...)
    labels : Tensor of shape (B, n, k)
    counts : Tensor of shape (B, n)
        How often each row counts; 0 pads networks that have fewer rows than others.
    regularization : float
        λ.
    loss : Loss
        ℓ, summed over the outputs.
    order_seeds : tuple of int
        Of the order in which each network's mini-batches are drawn; base and auxiliary network of a replicate share one.
    """

    batch: NetworkBatch
    start: Tensor
    X: Tensor
    labels: Tensor
    counts: Tensor
    regularization: float
    loss: Loss = field(default_factory=Squared)
    order_seeds: tuple[int, ...] = ()

    @property
    def sizes(self) -> Tensor:
        """N of every network, repetitions counted. Shape (B,)."""
        return self.counts.sum(1)

    def value(self, outputs: Tensor, parameters: Tensor) -> Tensor:
        """Of every network, in float64. Shape (B,)."""
        losses = self.loss.value(outputs, self.labels).sum(2).double()
        fit = (self.counts * losses).sum(1) / self.sizes
        return fit + self.regularization * (parameters - self.start).square().sum(1).double()

    def gradient(self, evaluation: Evaluation, parameters: Tensor) -> Tensor:
        """Gradient of every network's value. Shape (B, p)."""
        gradient: Tensor = self.gradient_of_rows(evaluation, self.sizes).add_(
            parameters - self.start, alpha=2 * self.regularization
        )
        return gradient

    def gradient_of_rows(self, evaluation: Evaluation, sizes: Tensor) -> Tensor:
        """Without the penalty, and with any n for every network: a part of its rows stands for all. Shape (B, p)."""
        weights = (self.counts / sizes[:, None])[:, :, None].to(evaluation.outputs.dtype)
        return evaluation.pull(weights * self.loss.gradient(evaluation.outputs, self.labels))

    def newton_step(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Weights and residuals of the squares that agree with the loss at these outputs, in float64. Shape (B, n · k) each."""
        weights, step = newton_step(self.loss, outputs, self.labels)
        return (self.counts[:, :, None] * weights.double()).flatten(1), step.flatten(1).double()

    def rows(self, index: Tensor) -> Objective:
        """The same problem on some of the rows; index of shape (B, m)."""
        networks = torch.arange(len(index), device=index.device)[:, None]
        X, labels, counts = (whole[networks, index] for whole in (self.X, self.labels, self.counts))
        return replace(self, X=X, labels=labels, counts=counts)

    def largest_curvature(self, max_rows: int = 512) -> Tensor:
        """Upper estimate of half the largest second derivative at the start, μ_max/n + λ. Shape (B,).

        From the tangent kernel of at most ``max_rows`` rows; with more rows a tenth is added for sampling error.
        """
        n_rows = self.X.shape[1]
        part = self
        if n_rows > max_rows:
            spread = torch.linspace(0, n_rows - 1, max_rows, device=self.X.device).long()
            part = self.rows(spread.expand(len(self.X), -1))
        evaluation = part.batch.evaluate(part.start, part.X)
        kernel, roots = evaluation.tangent_kernel().double(), part.newton_step(evaluation.outputs)[0].sqrt()
        weighted = roots[:, :, None] * kernel * roots[:, None, :]
        vector = torch.ones_like(weighted[:, :, :1])
        for _ in range(30):  # power iteration: the leading eigenvalue of a tangent kernel stands far apart
            vector = weighted @ (vector / torch.linalg.vector_norm(vector, dim=1, keepdim=True))
        largest = torch.linalg.vector_norm(vector, dim=(1, 2))
        margin = 1.1 if part is not self else 1.01
        curvature: Tensor = margin * largest / part.sizes.clamp_min(1) + self.regularization
        return curvature


@dataclass(frozen=True)
class Fit:
    """Trained parameters, and how well training went for every network.

    Attributes
    ----------
    parameters : Tensor of shape (B, p)
    loss, relative_gradient : Tensor of shape (B,)
        At the end; the gradient's norm relative to the start's.
    steps : int
    converged : Tensor of shape (B,), bool
        Whether the trainer's tolerance was reached.
    """

    parameters: Tensor
    loss: Tensor
    relative_gradient: Tensor
    steps: int
    converged: Tensor


def norm(gradient: Tensor) -> Tensor:
    """Euclidean norm of every network's gradient, in float64. Shape (B,)."""
    size: Tensor = torch.linalg.vector_norm(gradient, dim=1, dtype=torch.float64)
    return size
