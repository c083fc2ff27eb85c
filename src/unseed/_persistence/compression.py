"""Smaller models: rows in float32, or a few rows that stand for all; dual weights are solved for again, never just rounded.

Dual weights are large numbers that nearly cancel. Rounding them, or the rows under them, would be amplified by the condition
number of the kernel; solving again for the rounded rows moves the function by as little as rounding moved the data.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from unseed._predictors import CheckedRows, PNCReplicates
from unseed._resampling import full
from unseed._results import FloatArray
from unseed._selection import Candidate
from unseed.engines import AnchoredReplicates, BlockFit, Engine, KernelEngine, KernelReplicates, Task
from unseed.engines._anchored import choose_anchors
from unseed.kernels import PopulationKernel
from unseed.networks import MLP


def rounded(values: FloatArray) -> FloatArray:
    """To float32 and back: numbers that take four bytes on disk."""
    return np.asarray(values.astype(np.float32).astype(np.float64))


def with_rounded_rows(
    replicates: PNCReplicates, task: Task, engine: Engine, rival: Candidate | None, n_jobs: int | None
) -> tuple[PNCReplicates, Task]:
    """Train again on rows and labels in float32: as many factorisations as the first time."""
    own = replace(task, X=_rounded(task.X), labels=_rounded(task.labels))
    other = replicates.rival
    if other is not None and rival is not None:
        theirs = replace(own, network=rival.network, regularization=rival.regularization)
        other = KernelEngine().fit(theirs, full(len(own.X)))
    checked = replicates.checked
    rows = CheckedRows(checked.indices, rounded(checked.X), rounded(checked.y))
    trained = engine.fit(own, replicates.plan, n_jobs=n_jobs)
    return replace(replicates, trained=trained, checked=rows, rival=other), own


def with_anchors(replicates: PNCReplicates, X: Tensor, n_anchors: int, dtype: str) -> tuple[PNCReplicates, int]:
    """Keep a few rows, which say as much as they can about all, and their number: less than asked for where that is enough."""
    whole, other = replicates.trained, replicates.rival
    assert isinstance(whole, KernelReplicates)
    chosen = choose_anchors(whole.kernel, whole.points, n_anchors)
    checked = torch.from_numpy(replicates.checked.indices).to(X.device)
    if isinstance(other, KernelReplicates):
        other = AnchoredReplicates.of(other, X, chosen)
    few = AnchoredReplicates.of(whole, X, chosen, checked)
    if dtype == "float32" and few.posterior is not None:  # a triangle whose inverse is at most one: rounding stays small
        few = replace(few, posterior=replace(few.posterior, root=_rounded(few.posterior.root)))
    return replace(replicates, trained=few, rival=other), len(chosen)


def with_block_rounded(block: BlockFit, network: MLP, regularization: float) -> BlockFit:
    """A block solved again for rows in float32; its labels are what its weights were solved from."""
    kernel = PopulationKernel(network)
    labels = kernel.ntk_gram(kernel.profile(block.X)) @ block.dual + regularization * len(block.X) * block.dual
    solved = BlockFit.solve(network, _rounded(block.X), labels, regularization)
    return replace(solved, checked=_rounded(solved.checked))


def _rounded(values: Tensor) -> Tensor:
    return values.float().double()
