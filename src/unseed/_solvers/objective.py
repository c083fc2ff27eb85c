"""What a batch of networks is trained for: (1/n) Σ w_i ℓ(f(x_i), y_i) + λ ‖θ − θᵇ‖², centred at the start."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from unseed._checks import check_number
from unseed.losses import Loss, Squared, newton_step
from unseed.networks import Evaluation, NetworkBatch


@dataclass(frozen=True)
class Objective:
    """B training problems of one architecture, solved together.

    A row of weight 0 pads a network that has fewer rows than others. Base and auxiliary network of a replicate share the seed
    of the order in which mini-batches are drawn.
    """

    batch: NetworkBatch
    start: Tensor  # (B, p) θᵇ
    X: Tensor  # (B, n, ...)
    labels: Tensor  # (B, n, k)
    weights: Tensor  # (B, n) w: how often each row counts
    regularization: float  # λ
    loss: Loss = field(default_factory=Squared)  # ℓ, summed over the outputs
    order_seeds: tuple[int, ...] = ()

    @property
    def sizes(self) -> Tensor:
        """N = Σ w of every network. Shape (B,)."""
        return self.weights.sum(1)

    def value(self, outputs: Tensor, parameters: Tensor) -> Tensor:
        """Of every network, in float64. Shape (B,)."""
        losses = self.loss.value(outputs, self.labels).sum(2).double()
        fit = (self.weights * losses).sum(1) / self.sizes
        return fit + self.regularization * (parameters - self.start).square().sum(1).double()

    def gradient(self, evaluation: Evaluation, parameters: Tensor) -> Tensor:
        """Gradient of every network's value. Shape (B, p)."""
        gradient: Tensor = self.gradient_of_rows(evaluation, self.sizes).add_(
            parameters - self.start, alpha=2 * self.regularization
        )
        return gradient

    def gradient_of_rows(self, evaluation: Evaluation, sizes: Tensor) -> Tensor:
        """Without the penalty, and with any n for every network: a part of its rows stands for all. Shape (B, p)."""
        shares = (self.weights / sizes[:, None])[:, :, None].to(evaluation.outputs.dtype)
        return evaluation.pull(shares * self.loss.gradient(evaluation.outputs, self.labels))

    def newton_step(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Weights and residuals of the squares that agree with the loss at these outputs, in float64. Shape (B, n · k) each."""
        curvature, step = newton_step(self.loss, outputs, self.labels)
        return (self.weights[:, :, None] * curvature.double()).flatten(1), step.flatten(1).double()

    def rows(self, index: Tensor) -> Objective:
        """The same problem on some of the rows; index of shape (B, m)."""
        networks = torch.arange(len(index), device=index.device)[:, None]
        X, labels, weights = (whole[networks, index] for whole in (self.X, self.labels, self.weights))
        return replace(self, X=X, labels=labels, weights=weights)

    def rates(self, rate: float | str, max_rows: int = 512) -> Tensor:
        """The learning rate of every network: as given, or half the inverse of its largest curvature. Shape (B,)."""
        if isinstance(rate, str):
            return 0.5 / self.largest_curvature(max_rows)
        return torch.full((len(self.start),), rate, dtype=torch.float64, device=self.start.device)

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
    """Trained parameters, and how well training went for every network."""

    parameters: Tensor  # (B, p)
    loss: Tensor  # (B,) at the end
    relative_gradient: Tensor  # (B,) its norm at the end, relative to the start's
    steps: int
    converged: Tensor  # (B,) bool: whether the trainer's tolerance was reached


def check_rate(rate: object) -> None:
    """Refuse what is neither a learning rate nor ``"auto"``."""
    if rate != "auto":
        check_number("rate", rate, above=0)


def stalled(losses: list[Tensor], steps: int, tolerance: float, floor: float = 0.0) -> Tensor:
    """Whether the last steps together have changed every network's loss by no more than this share of it. Shape (B,)."""
    if len(losses) <= steps:
        return torch.zeros_like(losses[-1], dtype=torch.bool)
    before, now = losses[-1 - steps], losses[-1]
    return (before - now).abs() <= tolerance * before.clamp_min(floor)


def norm(gradient: Tensor) -> Tensor:
    """Euclidean norm of every network's gradient, in float64. Shape (B,)."""
    size: Tensor = torch.linalg.vector_norm(gradient, dim=1, dtype=torch.float64)
    return size
