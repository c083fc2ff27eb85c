"""How wide the posterior around a network on all rows is, by landmarks and by the exact one at some rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from unseed.engines._landmarks import LandmarkReplicates


@dataclass(frozen=True)
class Widening:
    """The posterior of the network on all rows, as what landmarks know of it.

    With K̂ = φᵀφ' + r the function is g + h, h being what the landmarks leave out. They would know g to s φᵀ(sI + ΦᵀΦ)⁻¹φ if
    h(X) were noise of variance s − 1, and nothing of h, whose prior variance is r; the sum of both is a shape. At some rows the
    same iterations say what the posterior without that row is, 1/(A⁻¹)_ii − 1, and the shape is widened until it is nowhere
    less.

    Attributes
    ----------
    root : Tensor of shape (p, p)
        Lower Cholesky factor of I + ΦᵀΦ/s.
    spread : float
        s.
    at_most, on_average : float
        What the posterior is of the shape: a figure that it does not exceed, and its mean.
    """

    root: Tensor
    spread: float
    at_most: float = 1.0
    on_average: float = 1.0

    @classmethod
    def of(cls, landmarks: LandmarkReplicates) -> Widening:
        """Not measured yet. What a landmark stands for disturbs its neighbours' labels by what it leaves out of them."""
        p, left_out = len(landmarks.factor), float(left_out_at_kept(landmarks).mean())
        spread = 1 + landmarks.n_rows * left_out / (2 * p)
        factor = landmarks.factor.tril()
        inner = factor @ factor.T
        inner.diagonal().add_(spread - 1)
        root = torch.linalg.cholesky(inner) / spread**0.5
        return cls(root.contiguous(), spread)  # solves depend on the order in memory, in their last bits

    def shape(self, landmarks: LandmarkReplicates) -> Tensor:
        """At the kept rows, each without its own label. Shape (n_kept,)."""
        features, _ = landmarks.spaces(landmarks.kept.X)
        known: Tensor = torch.linalg.solve_triangular(self.root, features.T, upper=False).square().sum(0)
        return known / (1 - known / self.spread) + left_out_at_kept(landmarks)

    def at(self, landmarks: LandmarkReplicates, X: Tensor) -> Tensor:
        """The shape at points that are no rows. Shape (n_points,)."""
        features, prior = landmarks.spaces(X)
        known: Tensor = torch.linalg.solve_triangular(self.root, features.T, upper=False).square().sum(0)
        return known + (prior - features.square().sum(1)).clamp_min(0.0)

    def measured(self, at_rows: Tensor, elsewhere: Tensor) -> Widening:
        """By the posterior over the shape, at rows and elsewhere.

        At further points it may exceed the largest by half of that one's distance to the mean, and by a hundredth at least.
        """
        mean, largest = float(at_rows.mean()), float(torch.cat([at_rows, elsewhere]).max())
        return replace(self, at_most=largest + max((largest - mean) / 2, largest / 100), on_average=mean)


def left_out_at_kept(landmarks: LandmarkReplicates) -> Tensor:
    """R at the kept rows. Shape (n_kept,)."""
    features, prior = landmarks.spaces(landmarks.kept.X)
    return (prior - features.square().sum(1)).clamp_min(0.0)
