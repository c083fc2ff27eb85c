"""The network on all rows, in the middle of the intervals that are made of their sums."""

from __future__ import annotations

import torch

from unseed._estimators.summed import SummedRows
from unseed._estimators.training import TrainingData
from unseed._predictors import PNCReplicates
from unseed._selection import Choice
from unseed.engines import AllRows, AllRowsReplicates


def solved_on_all_rows(summed: SummedRows, data: TrainingData, solver: AllRows) -> tuple[PNCReplicates, Choice]:
    """What the sums come to, its centre that of the rows, which are those that were summed up."""
    X = torch.tensor(summed.scaling.to_network(data.X), device=data.device)
    labels = torch.tensor(summed.scaling.to_labels(data.y), device=data.device) - summed.mean(data.X, X)
    with data.progress.steps("conjugate gradients", None) as step:
        return summed.solved(AllRowsReplicates.solve(summed.fitted_as_begun(), X, labels, solver.tolerance, step))
