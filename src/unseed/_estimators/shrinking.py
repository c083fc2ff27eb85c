"""`compress`: a smaller model beside the one that is there, with what that has changed.

Rows in float32, or a few rows that stand for all. Dual weights are large numbers that nearly cancel: rounding them, or the rows
under them, would be amplified by the condition number of the kernel. So they are solved for again, for the rounded rows, which
moves the function by as little as rounding moved the data.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import torch
from torch import Tensor

from unseed._checks import check_whole_number
from unseed._estimators.regressor import IntervalRegressor
from unseed._estimators.training import train_rival
from unseed._persistence import Compression
from unseed._predictors import PNCReplicates
from unseed._resampling import HashedPlan
from unseed._results import FloatArray
from unseed.errors import InvalidInputError

if TYPE_CHECKING:
    from unseed._estimators.pnc import PNCRegressor

Numbers = TypeVar("Numbers", FloatArray, Tensor)


def smaller(estimator: PNCRegressor, dtype: str, anchors: int | None) -> PNCRegressor:
    """The same functions with rounded rows, or with a few rows, or both."""
    _check_dtype(dtype)
    replicates, task = estimator._replicates, estimator._task
    plan = replicates.plan
    if "anchors" not in replicates.trained.capabilities or task is None or isinstance(plan, HashedPlan):
        raise InvalidInputError(
            f"compress is for whole models of engine='kernel', and this one has {type(replicates.trained).__name__}"
        )
    n_rows = n_left = len(task.X)
    if anchors is not None and check_whole_number("anchors", anchors, at_least=1) >= n_rows:
        raise InvalidInputError(f"anchors={anchors} must be less than the {n_rows} rows that the model has")
    if anchors is not None and estimator.interval_.uses_influence:
        raise InvalidInputError(f"anchors={anchors}: {estimator.interval_} needs all rows; use dtype='float32' alone")
    small = copy.copy(estimator)
    if dtype == "float32":
        small._task = replace(task, X=rounded(task.X), labels=rounded(task.labels))
        rival = None if replicates.rival is None else train_rival(small._task, estimator.selection_)
        checked = replace(replicates.checked, X=rounded(replicates.checked.X), y=rounded(replicates.checked.y))
        trained = estimator.engine_.fit(small._task, plan, n_jobs=estimator.n_jobs)
        small._replicates = replace(replicates, trained=trained, checked=checked, rival=rival)
        small._probe = rounded(estimator._probe)
    if anchors is not None:
        small._replicates, n_left = _with_anchors(small._replicates, anchors, is_rounded=dtype == "float32")
        small._task = None
    points = np.concatenate([replicates.checked.X, estimator._probe])
    small.compression_ = _measured(estimator, small, points, dtype, n_rows, n_left)
    return small


def _check_dtype(dtype: object) -> None:
    """Refuse what rows cannot have."""
    if dtype not in ("float64", "float32"):
        raise InvalidInputError(f"dtype={dtype!r} is not known; use 'float32' or 'float64'")


def _measured(
    whole: IntervalRegressor, small: IntervalRegressor, points: FloatArray, dtype: str, n_rows: int, n_left: int
) -> Compression:
    """Bytes before and after, and how far predictions and standard errors at some points have moved."""
    before, after = whole._estimate(points), small._estimate(points)
    figures = [
        tuple(map(float, summary))
        for change in (after.centre - before.centre, after.standard_error - before.standard_error)
        for summary in (np.abs(change).max(axis=0), np.sqrt(np.mean(change**2, axis=0)))
    ]
    return Compression(dtype, n_rows, n_left, whole.size_in_bytes(), small.size_in_bytes(), len(points), *figures)


def rounded(values: Numbers) -> Numbers:
    """To float32 and back: numbers that take four bytes on disk."""
    if isinstance(values, Tensor):
        return values.float().double()
    return values.astype(np.float32).astype(np.float64)


def _with_anchors(replicates: PNCReplicates, n_anchors: int, *, is_rounded: bool) -> tuple[PNCReplicates, int]:
    """Keep a few rows, which say as much as they can about all, and their number: less than asked for where that is enough."""
    rival, chosen = replicates.rival, replicates.trained.choose_anchors(n_anchors)
    checked = torch.from_numpy(replicates.checked.indices).to(chosen.device)
    if rival is not None:
        rival = rival.cut(chosen, None, is_rounded=False)
    few = replicates.trained.cut(chosen, checked, is_rounded=is_rounded)
    return replace(replicates, trained=few, rival=rival), len(chosen)
