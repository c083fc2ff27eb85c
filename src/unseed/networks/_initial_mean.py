"""s̄, the mean of the untrained network over its random start: what the auxiliary network is labelled with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from unseed._checks import check_whole_number
from unseed._random import Streams
from unseed._scaling import Scaling
from unseed._state import Record, State
from unseed.errors import InvalidInputError
from unseed.networks._module import Network, NetworkBatch, restore_batch

_DRAWS_AT_A_TIME = 8
_NUMBERS_AT_A_TIME = 1 << 25  # hidden activations held at once
_TYPICAL_WIDTH = 1000  # of a module, whose own is not known


@dataclass(frozen=True)
class MonteCarloMean:
    """Average of untrained networks over random starts.

    It brings back a procedural variance of 1/draws of the untrained network's. For an `MLP` "zero" is exact, and this is
    for seeing that the choice does not matter, as the paper does; a module of your own may need it.

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
        check_whole_number("draws", self.draws, at_least=1)


@dataclass(frozen=True)
class ZeroMean:
    """s̄ = 0: exact for networks in the NTK parameterisation."""

    n_outputs: int

    def __call__(self, X: npt.NDArray[np.float64], inputs: Tensor) -> Tensor:
        """Zeros. Shape (n_rows, n_outputs)."""
        return inputs.new_zeros(len(inputs), self.n_outputs)

    def state(self) -> State:
        """Its kind."""
        return {"kind": "zero"}


@dataclass(frozen=True)
class AveragedDraws:
    """Draws are made again from their seeds at every call and added up a few at a time; none is stored."""

    batch: NetworkBatch
    draws: int
    streams: Streams

    def __call__(self, X: npt.NDArray[np.float64], inputs: Tensor) -> Tensor:
        """Mean output of the untrained networks. Shape (n_rows, n_outputs)."""
        size = max(1, _NUMBERS_AT_A_TIME // (_DRAWS_AT_A_TIME * (self.batch.width or _TYPICAL_WIDTH)))
        return torch.cat([self._mean(chunk) for chunk in torch.split(inputs, size)])

    def state(self) -> State:
        """How many, from which seed, of which width."""
        return {"kind": "draws", "draws": int(self.draws), "seed": self.streams.seed, "width": self.batch.width}

    def _mean(self, inputs: Tensor) -> Tensor:
        total = inputs.new_zeros(len(inputs), self.batch.n_outputs)
        for first in range(0, self.draws, _DRAWS_AT_A_TIME):
            names = range(first, min(first + _DRAWS_AT_A_TIME, self.draws))
            starts = [self.batch.draw(self.streams.generator("initial mean", draw)) for draw in names]
            parameters = torch.stack(starts).to(inputs)
            total += self.batch.outputs(parameters, inputs.expand(len(starts), *inputs.shape)).sum(0)
        return total / self.draws


@dataclass(frozen=True)
class GivenMean:
    """s̄ given by the user as a function of X, both in the user's units."""

    function: Callable[[npt.NDArray[np.float64]], npt.ArrayLike]
    scaling: Scaling

    def __call__(self, X: npt.NDArray[np.float64], inputs: Tensor) -> Tensor:
        """The user's values in the network's units. Shape (n_rows, n_outputs)."""
        values = np.asarray(self.function(X.copy()), dtype=np.float64)
        n_outputs = len(self.scaling.y_scale)
        allowed = [(len(X), n_outputs), (len(X),)] if n_outputs == 1 else [(len(X), n_outputs)]
        if values.shape not in allowed or not np.isfinite(values).all():
            raise InvalidInputError(
                f"initial_mean returned an array of shape {values.shape} for {len(X)} rows; it must return finite numbers "
                f"of shape {allowed[0]}"
            )
        return torch.tensor(self.scaling.to_labels(values.reshape(len(X), n_outputs)), device=inputs.device)

    def state(self) -> State:
        """Its kind: the function is code."""
        return {"kind": "given"}


InitialMean = ZeroMean | AveragedDraws | GivenMean
"""s̄ as a function of X in the user's units and in the network's; values in the network's units, shape (n_rows, n_outputs)."""


def restore_initial_mean(record: Record, network: Network, sample: Tensor, scaling: Scaling, given: object) -> InitialMean:
    """s̄ from its ``state()``; ``sample`` are rows to try a module on, ``given`` is the function where it was one."""
    kind, n_outputs = record.fact("kind", str), scaling.n_outputs
    if kind == "zero":
        return ZeroMean(n_outputs)
    if kind == "draws":
        batch = restore_batch(record, network, sample, n_outputs)
        return AveragedDraws(batch, record.whole_number("draws", at_least=1), Streams(record.whole_number("seed")))
    if kind == "given" and callable(given):
        return GivenMean(given, scaling)
    raise record.fault(f"initial mean of kind {kind!r:.60} is not known")
