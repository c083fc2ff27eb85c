"""Trained networks seen from outside: NumPy arrays and the user's units in and out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Self, TypeVar

import torch
from torch import Tensor

from unseed._resampling import Resamples
from unseed._results import FloatArray
from unseed._scaling import Scaling
from unseed._state import State
from unseed.engines import NewPoints, Trained

_NUMBERS_AT_A_TIME = 1 << 23  # numbers per array while new points are handled: 64 MB


def chunks(X: FloatArray, numbers_per_point: int) -> list[FloatArray]:
    """Points in pieces that are small enough to be handled at once.

    Examples
    --------
    >>> import numpy as np
    >>> [len(chunk) for chunk in chunks(np.zeros((5, 1)), numbers_per_point=1 << 22)]
    [2, 2, 1]
    """
    size = max(1, _NUMBERS_AT_A_TIME // numbers_per_point)
    return [X[start : start + size] for start in range(0, len(X), size)]


@dataclass(frozen=True)
class ScaledNetworks:
    """What all predictors share; questions about new points go to a `Query`."""

    trained: Trained
    plan: Resamples
    scaling: Scaling
    device: torch.device

    @property
    def sizes(self) -> FloatArray:
        """Number of observations behind each replicate. Shape (n_replicates,)."""
        return self.plan.sizes.astype(float)

    @cached_property
    def noise_variance(self) -> FloatArray:
        """Variance of the observations around the function. Shape (n_outputs,)."""
        return self.scaling.from_variances(self.trained.noise_variance())

    def state(self) -> State:
        """Everything but the rows."""
        return {"scaling": self.scaling.state(), "plan": self.plan.state(), "trained": self.trained.state()}

    def inputs(self, X: FloatArray) -> Tensor:
        """Rows as the network sees them."""
        return torch.tensor(self.scaling.to_network(X), dtype=torch.float64, device=self.device)


Networks = TypeVar("Networks", bound=ScaledNetworks)


@dataclass(eq=False)
class Query(Generic[Networks]):
    """What predictors say about a chunk of new points, in the user's units.

    Interval methods see it as their `Replicates`: they hand back the ``X`` that they were given, and whatever one answer has
    needed (inputs, profile, cross-kernel, predictions) is there for the next.
    """

    networks: Networks
    X: FloatArray
    is_shared: bool = False

    @property
    def sizes(self) -> FloatArray:
        """Number of observations behind each replicate. Shape (n_replicates,)."""
        return self.networks.sizes

    @cached_property
    def points(self) -> NewPoints:
        """The points as the networks see them."""
        return NewPoints(self.networks.inputs(self.X), self.is_shared)

    def at(self, X: FloatArray) -> Self:
        """Itself, or the same question about other points."""
        return self if X is self.X else type(self)(self.networks, X)
