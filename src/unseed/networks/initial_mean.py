"""s̄, the mean of the untrained network over its random start: what the auxiliary network is labelled with."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from unseed.errors import InvalidInputError
from unseed.networks.mlp import MLP
from unseed.networks.sampling import draw_parameters, forward
from unseed.random import Streams

InitialMean = Callable[[Tensor, int], Tensor]
"""Maps rows (n_rows, n_features) and a number of outputs k to s̄ of shape (n_rows, k)."""

DEFAULT_WIDTH = 512


@dataclass(frozen=True)
class MonteCarloMean:
    """Average of untrained networks over random starts.

    It brings back a procedural variance of 1/draws of the untrained network's; "zero" is exact for this library's own
    networks, so this is for seeing that the choice does not matter, as the paper does.

    Parameters
    ----------
    draws : int
        Number of untrained networks averaged.

    Examples
    --------
    >>> MonteCarloMean(draws=100)
    MonteCarloMean(draws=100)
    """

    draws: int = 1000

    def __post_init__(self) -> None:
        if isinstance(self.draws, bool) or not isinstance(self.draws, (int, np.integer)) or self.draws < 1:
            raise InvalidInputError(f"MonteCarloMean(draws={self.draws!r}): draws must be a whole number of at least 1")


@dataclass(frozen=True)
class _ZeroMean:
    def __call__(self, X: Tensor, n_outputs: int) -> Tensor:
        return X.new_zeros(len(X), n_outputs)


@dataclass(frozen=True)
class _AveragedDraws:
    """Draws are made again from their seeds at every call and added up one by one; none is stored."""

    network: MLP
    draws: int
    streams: Streams

    def __call__(self, X: Tensor, n_outputs: int) -> Tensor:
        total = X.new_zeros(len(X), n_outputs)
        width = self.network.width or DEFAULT_WIDTH
        for draw in range(self.draws):
            generator = self.streams.generator("initial mean", draw)
            parameters = draw_parameters(self.network, X.shape[1], n_outputs, width, generator, X.device)
            total += forward(self.network, parameters, X)
        return total / self.draws


def resolve_initial_mean(initial_mean: str | MonteCarloMean, network: MLP, streams: Streams) -> InitialMean:
    """Turn the option into a function s̄ of the network's own inputs."""
    if isinstance(initial_mean, MonteCarloMean):
        return _AveragedDraws(network, initial_mean.draws, streams)
    if initial_mean == "zero":
        return _ZeroMean()
    raise InvalidInputError(
        f"initial_mean={initial_mean!r} is not known; use 'zero', MonteCarloMean(draws=...) or a function of X"
    )
