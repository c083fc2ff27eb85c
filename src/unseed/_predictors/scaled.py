"""Trained networks seen from outside: NumPy arrays and the user's units in and out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from unseed._resampling import Plan
from unseed._results import FloatArray
from unseed._scaling import Scaling
from unseed.engines import Trained
from unseed.errors import NotAvailableError

_NUMBERS_AT_A_TIME = 1 << 23  # numbers per array while new points are handled: 64 MB
_NO_POSTERIOR = "interval='truth' is for PNCRegressor; use 'sectioning' or another resampling method"


def chunks(X: FloatArray, numbers_per_point: int) -> list[FloatArray]:
    """Points in pieces that are small enough to be handled at once.

    Examples
    --------
    >>> [len(chunk) for chunk in chunks(np.zeros((5, 1)), numbers_per_point=1 << 22)]
    [2, 2, 1]
    """
    size = max(1, _NUMBERS_AT_A_TIME // numbers_per_point)
    return [X[start : start + size] for start in range(0, len(X), size)]


@dataclass(frozen=True)
class ScaledNetworks:
    """What every predictor shares."""

    trained: Trained
    plan: Plan
    scaling: Scaling
    device: torch.device

    @property
    def sizes(self) -> FloatArray:
        """Number of observations behind each replicate. Shape (n_replicates,)."""
        return self.plan.sizes.astype(np.float64)

    @property
    def numbers_per_prediction(self) -> int:
        """Numbers held for each new point that is only predicted."""
        return self.trained.numbers_per_prediction

    @property
    def numbers_per_point(self) -> int:
        """Numbers held for each new point while it is predicted."""
        return self.trained.numbers_per_point

    @cached_property
    def noise_variance(self) -> FloatArray:
        """Variance of the observations around the function. Shape (n_outputs,)."""
        return np.asarray(self.trained.noise_variance().cpu().numpy() * self.scaling.y_scale**2)

    def misfit_variance(self, X: FloatArray) -> FloatArray:
        """Only where there is a posterior."""
        raise NotAvailableError(_NO_POSTERIOR)

    def rival_variance(self, X: FloatArray) -> FloatArray:
        """Only where there is a posterior."""
        raise NotAvailableError(_NO_POSTERIOR)

    def posterior_variance(self, X: FloatArray) -> FloatArray:
        """Only where there is a posterior."""
        raise NotAvailableError(_NO_POSTERIOR)

    def influence(self, X: FloatArray) -> FloatArray:
        """Influence of every row on the full-data prediction. Shape (n_rows, n_points, n_outputs)."""
        return np.asarray(self.trained.influence(self.inputs(X)).cpu().numpy() * self.scaling.y_scale)

    def inputs(self, X: FloatArray) -> Tensor:
        """Rows as the network sees them."""
        return torch.tensor(self.scaling.to_network(X), dtype=torch.float64, device=self.device)

    def in_units(self, labels: Tensor) -> FloatArray:
        """Network outputs (last axis: outputs) in the user's units."""
        return self.scaling.from_labels(labels.cpu().numpy())
