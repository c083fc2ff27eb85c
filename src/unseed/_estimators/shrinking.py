"""`compress`: a smaller model beside the one that is there, with what that has changed.

Rows in float32, or a few rows that stand for all. Dual weights are large numbers that nearly cancel: rounding them, or the rows
under them, would be amplified by the condition number of the kernel. So they are solved for again, for the rounded rows, which
moves the function by as little as rounding moved the data.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from unseed._checks import check_whole_number
from unseed._persistence import Compression
from unseed._predictors import CheckedRows, PNCReplicates
from unseed._resampling import full
from unseed._results import Estimate, FloatArray
from unseed.engines import BlockFit, KernelEngine, Task
from unseed.errors import InvalidInputError
from unseed.kernels import PopulationKernel
from unseed.losses import Squared
from unseed.networks import MLP

if TYPE_CHECKING:
    from unseed._estimators.pnc import PNCRegressor

DTYPES = "float64", "float32"


def smaller(estimator: PNCRegressor, dtype: object, anchors: Any) -> PNCRegressor:
    """The same functions with rounded rows, or with a few rows, or both."""
    precision, replicates, task = check_dtype(dtype), estimator._replicates, estimator._task
    if "anchors" not in replicates.trained.capabilities or task is None:
        raise InvalidInputError(
            f"compress is for whole models of engine='kernel', and this one has {type(replicates.trained).__name__}"
        )
    n_anchors = _check_anchors(anchors, len(task.X))
    if n_anchors is not None and estimator.interval_.uses_influence:
        raise InvalidInputError(f"anchors={anchors}: {estimator.interval_} needs all rows; use dtype='float32' alone")
    small = copy.copy(estimator)
    if precision == "float32":
        small._replicates, small._task = _with_rounded_rows(estimator, task)
        small._probe = rounded(estimator._probe)
    n_rows = n_left = len(task.X)
    if n_anchors is not None:
        small._replicates, n_left = _with_anchors(small._replicates, n_anchors, precision)
        small._task = None
    points = np.concatenate([replicates.checked.X, estimator._probe])
    sizes = estimator.size_in_bytes(), small.size_in_bytes()
    small.compression_ = measured(estimator._estimate(points), small._estimate(points), precision, (n_rows, n_left), sizes)
    return small


def check_dtype(dtype: object) -> str:
    """Return the dtype that rows can have."""
    if dtype not in DTYPES or not isinstance(dtype, str):
        raise InvalidInputError(f"dtype={dtype!r} is not known; use 'float32' or 'float64'")
    return dtype


def measured(before: Estimate, after: Estimate, dtype: str, rows: tuple[int, int], sizes: tuple[int, int]) -> Compression:
    """How far predictions and standard errors have moved.

    Parameters
    ----------
    before, after : Estimate
        At the same points.
    dtype : str
    rows : tuple of int
        Rows before and after.
    sizes : tuple of int
        Bytes before and after.
    """
    changes = after.centre - before.centre, after.standard_error - before.standard_error
    figures = [
        tuple(map(float, summary))
        for change in changes
        for summary in (np.abs(change).max(axis=0), np.sqrt(np.mean(change**2, axis=0)))
    ]
    return Compression(dtype, *rows, *sizes, len(before.centre), *figures)


def rounded(values: FloatArray) -> FloatArray:
    """To float32 and back: numbers that take four bytes on disk."""
    return np.asarray(values.astype(np.float32).astype(np.float64))


def with_block_rounded(block: BlockFit, network: MLP, regularization: float) -> BlockFit:
    """A block solved again for rows in float32; its labels are what its weights were solved from."""
    kernel = PopulationKernel(network)
    labels = kernel.ntk_gram(kernel.profile(block.X)) @ block.dual + regularization * len(block.X) * block.dual
    solved = BlockFit.solve(network, _rounded(block.X), labels, regularization)
    return replace(solved, checked=_rounded(solved.checked))


def _check_anchors(anchors: Any, n_rows: int) -> int | None:
    """Return the number of rows to keep, or None for all."""
    if anchors is None:
        return None
    check_whole_number("anchors", anchors, at_least=1)
    if anchors >= n_rows:
        raise InvalidInputError(f"anchors={anchors} must be less than the {n_rows} rows that the model has")
    return int(anchors)


def _with_rounded_rows(estimator: PNCRegressor, task: Task) -> tuple[PNCReplicates, Task]:
    """Train again on rows and labels in float32: as many factorisations as the first time."""
    replicates, selection = estimator._replicates, estimator.selection_
    own = replace(task, X=_rounded(task.X), labels=_rounded(task.labels))
    other, candidate = replicates.rival, None if selection is None else selection.rival
    if other is not None and candidate is not None:
        theirs = replace(own, network=candidate.network, regularization=candidate.regularization, loss=Squared())
        other = KernelEngine().fit(theirs, full(len(own.X)))
    checked = replicates.checked
    rows = CheckedRows(checked.indices, rounded(checked.X), rounded(checked.y))
    trained = estimator.engine_.fit(own, replicates.plan, n_jobs=estimator.n_jobs)
    return replace(replicates, trained=trained, checked=rows, rival=other), own


def _with_anchors(replicates: PNCReplicates, n_anchors: int, dtype: str) -> tuple[PNCReplicates, int]:
    """Keep a few rows, which say as much as they can about all, and their number: less than asked for where that is enough."""
    whole, other = replicates.trained, replicates.rival
    chosen = whole.choose_anchors(n_anchors)
    checked = torch.from_numpy(replicates.checked.indices).to(chosen.device)
    if other is not None:
        other = other.cut(chosen, None, is_rounded=False)
    few = whole.cut(chosen, checked, is_rounded=dtype == "float32")
    return replace(replicates, trained=few, rival=other), len(chosen)


def _rounded(values: Tensor) -> Tensor:
    return values.float().double()
