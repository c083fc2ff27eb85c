"""Predictors combine what engines train."""

from unseed.predictors.blocks import BlockNetworks
from unseed.predictors.contrast import ContrastReplicates
from unseed.predictors.dropout import DropoutNetwork, train_dropout
from unseed.predictors.ensemble import EnsembleReplicates, with_members
from unseed.predictors.pnc import CheckedRows, PNCReplicates, PosteriorLaw

__all__ = [
    "BlockNetworks",
    "CheckedRows",
    "ContrastReplicates",
    "DropoutNetwork",
    "EnsembleReplicates",
    "PNCReplicates",
    "PosteriorLaw",
    "train_dropout",
    "with_members",
]
