"""Predictors combine what engines train."""

from unseed._predictors.checked import CheckedRows
from unseed._predictors.dropout import DropoutNetwork, train_dropout
from unseed._predictors.ensemble import EnsembleQuery, EnsembleReplicates, with_members
from unseed._predictors.pnc import ContrastQuery, PNCQuery, PNCReplicates, PosteriorLaw
from unseed._predictors.scaled import chunks

__all__ = [
    "CheckedRows",
    "ContrastQuery",
    "DropoutNetwork",
    "EnsembleQuery",
    "EnsembleReplicates",
    "PNCQuery",
    "PNCReplicates",
    "PosteriorLaw",
    "chunks",
    "train_dropout",
    "with_members",
]
