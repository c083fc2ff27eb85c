"""Intervals for many data sets at once: simulation studies, and one small model for each of many customers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from unseed._estimators.training import check_regularization
from unseed._machine import available_bytes, resolve_device
from unseed._random import Streams
from unseed._results import FloatArray, check_level, two_sided_quantile
from unseed.engines import HostCounts, StackedSets
from unseed.errors import InvalidInputError, SingularKernelError
from unseed.intervals import IntervalMethod, Replicates, resolve_interval
from unseed.networks import MLP

_MATRICES_OF_A_SET = 12  # n × n numbers, for a few replicates


def predict_interval_many(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    X_new: npt.ArrayLike,
    confidence_level: float | Sequence[float] = 0.95,
    *,
    network: MLP,
    regularization: float,
    interval: str | IntervalMethod = "cheap_bootstrap",
    standardize: bool = True,
    random_state: int | Sequence[int] = 0,
    device: str = "auto",
) -> tuple[FloatArray, FloatArray]:
    """Fit many data sets of one size with the kernel engine and give their confidence intervals.

    Each answer is that of `PNCRegressor` with the same options on that data set. On a GPU a hundred small data sets
    together take little more than one of them alone.

    Parameters
    ----------
    X : array-like of shape (n_sets, n_samples, n_features)
        Tensors that are on the device already are not copied.
    y : array-like of shape (n_sets, n_samples)
    X_new : array-like of shape (n_points, n_features) or (n_sets, n_points, n_features)
        The same points for all data sets, or points of their own.
    confidence_level : float or sequence of float
    network : MLP
    regularization : float
        λ_n.
    interval : str or interval method
        One that compares replicates: ``"cheap_bootstrap"``, ``"batching"``, ``"sectioning"``, ``"half_sampling"``.
    standardize : bool
        Scale each data set to mean 0 and variance 1.
    random_state : int or sequence of int
        Seed of every data set; of a single s, they are s, s + 1, …
    device : str

    Returns
    -------
    mean : array of shape (n_sets, n_points)
    intervals : array of shape (n_sets, n_points, 2, n_levels)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5, 40, 2))
    >>> y = np.sin(X).sum(axis=2) + 0.1 * rng.normal(size=(5, 40))
    >>> mean, intervals = predict_interval_many(X, y, X[0, :3], network=MLP(bias_scale=1.0), regularization=1e-3)
    >>> mean.shape, intervals.shape
    ((5, 3), (5, 3, 2, 1))
    """
    where = resolve_device(device)
    levels = [check_level(level, "confidence_level") for level in np.atleast_1d(np.asarray(confidence_level, dtype=object))]
    rows, labels, points = _checked(X, y, X_new, where)
    method = resolve_interval(interval, rows.shape[1])
    if method.uses_influence or method.uses_posterior:
        raise InvalidInputError(f"interval={method} does not compare replicates; fit PNCRegressor to each data set instead")
    if not isinstance(network, MLP) or cast(Any, regularization) == "auto":
        raise InvalidInputError("network and regularization must be given here: MLP(...) and a number")
    check_regularization(regularization)
    seeds = _seeds(random_state, len(rows))
    (x_mean, x_scale), (y_mean, y_scale) = (_units(values, active=standardize) for values in (rows, labels))
    inputs, new_inputs = ((values - x_mean) / x_scale for values in (rows, points))
    stacked = StackedSets.of(network, inputs, (labels - y_mean) / y_scale, new_inputs)
    parts = []
    for some in _groups(rows, points, where):
        counts = _counts(method, rows.shape[1], seeds[some])  # while a GPU is busy with those before
        parts.append(stacked.predict(some, counts, regularization))
    values, singular = (torch.cat(part) for part in zip(*parts, strict=True))
    if bool(singular.any()):
        raise SingularKernelError(
            f"{int(singular.sum())} of {singular.numel()} kernel matrices are singular to float64 at "
            f"regularization={regularization:g}; raise it (try 1e-6)"
        )
    by_replicate = values.permute(2, 0, 1)
    predictions = (by_replicate * y_scale + y_mean).mT.contiguous().cpu().numpy()  # (n_replicates, n_points, n_sets)
    sizes = counts[0].sum(-1).astype(np.float64)
    # To an interval method the data sets are so many outputs.
    estimate = method.estimate(cast(Replicates, _Predictions(predictions, sizes)), predictions[0])
    reach = np.stack([two_sided_quantile(level, estimate.degrees_of_freedom) * estimate.standard_error for level in levels], -1)
    bounds = np.stack([estimate.centre[..., None] - reach, estimate.centre[..., None] + reach], axis=2)
    return estimate.centre.T.copy(), bounds.swapaxes(0, 1).copy()


@dataclass(frozen=True)
class _Predictions:
    """All that a method which compares replicates asks of them."""

    values: FloatArray
    sizes: FloatArray

    def predict(self, X: FloatArray) -> FloatArray:
        return self.values


def _checked(X: npt.ArrayLike, y: npt.ArrayLike, X_new: npt.ArrayLike, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Rows (sets, rows, features), labels (sets, rows) and points (sets, points, features) on the device."""
    rows, labels, points = (torch.as_tensor(values, dtype=torch.float64) for values in (X, y, X_new))
    for name, values, wanted, words in (
        ("X", rows, (3,), "(sets, rows, features)"),
        ("y", labels, (2,), "(sets, rows)"),
        ("X_new", points, (2, 3), "(points, features) or (sets, points, features)"),
    ):
        if values.ndim not in wanted:
            raise InvalidInputError(f"{name} has shape {tuple(values.shape)}; give {words}")
    if rows.shape[:2] != labels.shape:
        raise InvalidInputError(f"X has shape {tuple(rows.shape)} and y {tuple(labels.shape)}; sets and rows must be the same")
    if points.shape[-1] != rows.shape[2] or (points.ndim == 3 and len(points) != len(rows)):
        raise InvalidInputError(
            f"X_new has shape {tuple(points.shape)} and X {tuple(rows.shape)}; features and sets must be the same"
        )
    rows, labels, points = (values.to(device) for values in (rows, labels, points))
    for name, values in (("X", rows), ("y", labels), ("X_new", points)):
        if not bool(torch.isfinite(values).all()):
            raise InvalidInputError(f"{name} contains NaN or infinity; remove or impute those values")
    return rows, labels, points if points.ndim == 3 else points.expand(len(rows), -1, -1)


def _units(values: Tensor, *, active: bool) -> tuple[Tensor, Tensor]:
    """Mean and scale of every column of every data set; rows are along the second axis."""
    if not active:
        return values.new_zeros(1), values.new_ones(1)
    scale, mean = torch.std_mean(values, dim=1, correction=0, keepdim=True)
    # Constant columns are only shifted; what is left of them by rounding is no spread.
    return mean, torch.where(scale > 10 * torch.finfo(values.dtype).eps * mean.abs(), scale, 1.0)


def _counts(method: IntervalMethod, n_rows: int, seeds: list[int]) -> HostCounts:
    """How often each replicate of each data set counts each row, in few bytes. Shape (n_sets, n_replicates, n_rows)."""
    few_bytes = np.min_scalar_type(-n_rows)
    return np.stack([method.plan(n_rows, Streams(seed)).counts.astype(few_bytes) for seed in seeds])


def _seeds(random_state: int | Sequence[int], n_sets: int) -> list[int]:
    if isinstance(random_state, (int, np.integer)):
        return [int(random_state) + i for i in range(n_sets)]
    if len(random_state) != n_sets:
        raise InvalidInputError(f"random_state has {len(random_state)} seeds for {n_sets} data sets; give one for each, or one")
    return [int(seed) for seed in random_state]


def _groups(rows: Tensor, points: Tensor, device: torch.device) -> list[slice]:
    """As many data sets at a time as half of the free memory holds: matrices, parts cut out of them, factors, crosses."""
    n_sets, n_rows, _ = rows.shape
    each = 8 * n_rows * (_MATRICES_OF_A_SET * n_rows + points.shape[1])
    size = max(1, available_bytes(device) // 2 // each)
    return [slice(start, start + size) for start in range(0, n_sets, size)]
