"""Units: X and y as the user has them, and as the network sees them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.preprocessing import StandardScaler

from unseed._results import FloatArray
from unseed._state import Record, State
from unseed.errors import InvalidInputError

if TYPE_CHECKING:
    from torch import Tensor

_LARGEST, _LARGEST_USUAL = 1e300, 1e100


@dataclass(frozen=True)
class Scaling:
    """Shift and scale of every feature and output; constant columns are only shifted."""

    x_mean: FloatArray
    x_scale: FloatArray
    y_mean: FloatArray
    y_scale: FloatArray

    @classmethod
    def fit(cls, X: FloatArray, y: FloatArray, *, active: bool) -> Scaling:
        """Mean and standard deviation of X (n, ...) and y (n, k), or zeros and ones when not active."""
        if not active:
            return cls(np.zeros(X.shape[1:]), np.ones(X.shape[1:]), np.zeros(y.shape[1]), np.ones(y.shape[1]))
        (x_mean, x_scale), (y_mean, y_scale) = _mean_and_scale("X", X.reshape(len(X), -1)), _mean_and_scale("y", y)
        shape = X.shape[1:]
        return cls(x_mean.reshape(shape), x_scale.reshape(shape), y_mean, y_scale)

    @property
    def n_outputs(self) -> int:
        """Columns of y."""
        return len(self.y_mean)

    def to_network(self, X: FloatArray) -> FloatArray:
        """Features in the network's units."""
        return (X - self.x_mean) / self.x_scale

    def from_network(self, inputs: FloatArray) -> FloatArray:
        """Features in the user's units, to within rounding."""
        return inputs * self.x_scale + self.x_mean

    def to_labels(self, y: FloatArray) -> FloatArray:
        """Labels in the network's units."""
        return (y - self.y_mean) / self.y_scale

    def from_labels(self, labels: FloatArray | Tensor) -> FloatArray:
        """Predictions in the user's units (last axis: outputs)."""
        return _as_array(labels) * self.y_scale + self.y_mean

    def from_differences(self, differences: FloatArray | Tensor) -> FloatArray:
        """Differences of predictions, such as influence values and errors, in the user's units."""
        return np.asarray(_as_array(differences) * self.y_scale)

    def from_variances(self, variances: FloatArray | Tensor) -> FloatArray:
        """Variances (last axis: outputs, or one for all) in the user's squared units."""
        return np.asarray(_as_array(variances) * self.y_scale**2)

    def state(self) -> State:
        """Shift and scale."""
        return asdict(self)

    @classmethod
    def restore(cls, record: Record) -> Scaling:
        """From `state`; scales must be positive."""
        row_shape, n_outputs = record.shape("x_mean"), record.shape("y_mean")
        if len(n_outputs) != 1 or not n_outputs[0] or 0 in row_shape:
            raise record.fault(f"units have the shapes {row_shape} and {n_outputs}")
        shapes = {"x_mean": row_shape, "x_scale": row_shape, "y_mean": n_outputs, "y_scale": n_outputs}
        scaling = cls(**{name: record.array(name, *shape) for name, shape in shapes.items()})
        if (scaling.x_scale <= 0).any() or (scaling.y_scale <= 0).any():
            raise record.fault("a scale is not positive")
        return scaling


def unit_of(columns: FloatArray) -> FloatArray:
    """A power of two near the largest value of every column (n, k) whose squares float64 does not hold, and 1 of others.

    Examples
    --------
    >>> unit_of(np.array([[3.0, 3e170], [-5.0, 1e100]])).tolist() == [1.0, 2.0**566]
    True
    """
    largest = np.abs(columns).max(axis=0)
    is_usual = (largest == 0) | ((largest >= 1 / _LARGEST_USUAL) & (largest <= _LARGEST_USUAL))
    return np.where(is_usual, 1.0, 2.0 ** np.floor(np.log2(np.where(is_usual, 1.0, largest))))


def _mean_and_scale(name: str, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Of every column; one that is constant has itself for a mean, to the last bit, and a scale of one."""
    if np.abs(columns).max() > _LARGEST:
        raise InvalidInputError(f"{name} has values too large to standardise in float64; scale them down")
    unit = unit_of(columns)
    scaler = StandardScaler().fit(columns / unit)
    mean = np.where((columns == columns[0]).all(axis=0), columns[0], scaler.mean_ * unit)
    return mean, scaler.scale_ * unit


def _as_array(values: FloatArray | Tensor) -> FloatArray:
    return values if isinstance(values, np.ndarray) else values.cpu().numpy()
