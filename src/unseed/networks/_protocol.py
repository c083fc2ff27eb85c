"""What trainers and engines ask of many networks of one architecture.

A batch of B networks has its parameters in one matrix (B, p) and sees inputs (B, n, ...): each network its own rows.
`unseed.networks._batch` implements the two protocols by explicit formulas, `unseed.networks._module` for any torch module.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from torch import Tensor

from unseed._state import Record, State


class Evaluation(Protocol):
    """Networks evaluated at their inputs, ready for first-order questions. J is the Jacobian in the parameters."""

    @property
    def outputs(self) -> Tensor:
        """Shape (B, n, k)."""
        ...

    def pull(self, weights: Tensor) -> Tensor:
        """Jᵀ weights, for weights (B, n, k). Shape (B, p)."""
        ...

    def push(self, directions: Tensor) -> Tensor:
        """J directions, for directions (B, p). Shape (B, n, k)."""
        ...

    def tangent_kernel(self) -> Tensor:
        """J Jᵀ. Shape (B, n·k, n·k), exactly symmetric up to rounding."""
        ...

    def blur_since(self, before: Evaluation) -> Tensor | None:
        """How far activations with kinks have moved since an earlier evaluation; None where there are none."""
        ...


class NetworkBatch(Protocol):
    """An architecture, applied to batches of parameter vectors."""

    @property
    def n_outputs(self) -> int:
        """Number of output columns k."""
        ...

    @property
    def n_parameters(self) -> int:
        """Length p of a parameter vector."""
        ...

    @property
    def width(self) -> int | None:
        """Neurons of a hidden layer; None where the architecture is not ours to resize."""
        ...

    @property
    def numbers_per_row(self) -> int:
        """Bound on the numbers that a layer holds for one row of input: neurons, or all parameters where they are not known."""
        ...

    @property
    def activations_per_row(self) -> int:
        """Hidden activations of one row, all layers together; 0 where they are not known."""
        ...

    @property
    def is_explicit(self) -> bool:
        """Whether Jacobians are formulas written by hand, so that a tangent kernel at every step is affordable."""
        ...

    def in_double(self) -> NetworkBatch:
        """The same architecture for parameters in float64."""
        ...

    def resized(self, width: int) -> NetworkBatch:
        """The same architecture with so many neurons in a hidden layer."""
        ...

    def state(self) -> State:
        """What of the architecture its description does not say (see `restore_batch`)."""
        ...

    def check_length(self, found: int, record: Record) -> None:
        """Refuse saved networks that have not as many parameters as these."""
        ...

    def draw(self, generator: np.random.Generator) -> Tensor:
        """Random start of one network, on the CPU. Shape (p,), float64."""
        ...

    def outputs(self, parameters: Tensor, X: Tensor) -> Tensor:
        """Outputs alone. Shape (B, n, k)."""
        ...

    def evaluate(self, parameters: Tensor, X: Tensor, blur: Tensor | None = None) -> Evaluation:
        """Outputs and what is needed to differentiate them, kinks smoothed by ``blur`` if given."""
        ...

    def jacobian(self, parameters: Tensor, X: Tensor) -> Tensor:
        """J of one network, a row for every row and output of inputs (n, ...) at parameters (p,). Shape (n·k, p)."""
        ...

    def cross_kernel(self, parameters: Tensor, X: Tensor, Z: Tensor) -> Tensor:
        """Tangent kernel between two sets of inputs. Shape (B, n·k, m·k)."""
        ...
