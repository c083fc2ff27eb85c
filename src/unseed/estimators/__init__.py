"""scikit-learn estimators."""

from unseed.estimators.baselines import DeepEnsembleRegressor, MCDropoutRegressor, SingleNetworkRegressor
from unseed.estimators.blockwise import BlockwisePNCRegressor
from unseed.estimators.pnc import PNCRegressor

__all__ = [
    "BlockwisePNCRegressor",
    "DeepEnsembleRegressor",
    "MCDropoutRegressor",
    "PNCRegressor",
    "SingleNetworkRegressor",
]
