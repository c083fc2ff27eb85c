"""The paper's loss for a batch of networks: (1/n) Σ c_i |f(x_i) − y_i|² + λ ‖θ − θᵇ‖², centred at the start."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

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
    order_seeds : tuple of int
        Of the order in which each network's mini-batches are drawn; base and auxiliary network of a replicate share one.
    """

    batch: NetworkBatch
    start: Tensor
    X: Tensor
    labels: Tensor
    counts: Tensor
    regularization: float
    order_seeds: tuple[int, ...] = ()

    @property
    def sizes(self) -> Tensor:
        """N of every network, repetitions counted. Shape (B,)."""
        return self.counts.sum(1)

    def loss(self, outputs: Tensor, parameters: Tensor) -> Tensor:
        """Value of every network's loss, in float64. Shape (B,)."""
        squares = (outputs - self.labels).square().sum(2).double()
        fit = (self.counts * squares).sum(1) / self.sizes
        return fit + self.regularization * (parameters - self.start).square().sum(1).double()

    def gradient(self, evaluation: Evaluation, parameters: Tensor) -> Tensor:
        """Gradient of every network's loss. Shape (B, p)."""
        weights = (2 * self.counts / self.sizes[:, None])[:, :, None].to(parameters.dtype)
        fit = evaluation.pull(weights * (evaluation.outputs - self.labels))
        gradient: Tensor = fit.add_(parameters - self.start, alpha=2 * self.regularization)
        return gradient

    def rows(self, index: Tensor) -> Objective:
        """The same problem on some of the rows; index of shape (B, m)."""
        networks = torch.arange(len(index), device=index.device)[:, None]
        return Objective(
            self.batch,
            self.start,
            self.X[networks, index],
            self.labels[networks, index],
            self.counts[networks, index],
            self.regularization,
            self.order_seeds,
        )

    def largest_curvature(self, max_rows: int = 512) -> Tensor:
        """Upper estimate of half the largest second derivative of the loss at the start, μ_max/n + λ. Shape (B,).

        From the tangent kernel of at most ``max_rows`` rows; with more rows a tenth is added for sampling error.
        """
        n_rows = self.X.shape[1]
        part = self
        if n_rows > max_rows:
            spread = torch.linspace(0, n_rows - 1, max_rows, device=self.X.device).long()
            part = self.rows(spread.expand(len(self.X), -1))
        kernel = part.batch.evaluate(part.start, part.X).tangent_kernel().double()
        roots = part.counts.sqrt().repeat_interleave(self.labels.shape[2], dim=1)
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
