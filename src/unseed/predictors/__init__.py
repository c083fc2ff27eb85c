"""Predictors combine what engines train."""

from unseed.predictors.dropout import DropoutNetwork, train_dropout
from unseed.predictors.ensemble import EnsembleReplicates, with_members
from unseed.predictors.pnc import PNCReplicates

__all__ = ["DropoutNetwork", "EnsembleReplicates", "PNCReplicates", "train_dropout", "with_members"]
