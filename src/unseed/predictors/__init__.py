"""Predictors combine what engines train."""

from unseed.predictors.blocks import BlockNetworks
from unseed.predictors.contrast import ContrastReplicates
from unseed.predictors.dropout import DropoutNetwork, train_dropout
from unseed.predictors.ensemble import EnsembleReplicates, with_members
from unseed.predictors.pnc import CheckedRows, PNCReplicates, PosteriorLaw
from unseed.predictors.scaled import chunks

__all__ = [
    "BlockNetworks",
    "CheckedRows",
    "ContrastReplicates",
    "DropoutNetwork",
    "EnsembleReplicates",
    "PNCReplicates",
    "PosteriorLaw",
    "chunks",
    "train_dropout",
    "with_members",
]
