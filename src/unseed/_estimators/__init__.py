"""scikit-learn estimators."""

from unseed._estimators.baselines import DeepEnsembleRegressor, MCDropoutRegressor, SingleNetworkRegressor
from unseed._estimators.blockwise import BlockwisePNCRegressor
from unseed._estimators.pnc import PNCRegressor

__all__ = [
    "BlockwisePNCRegressor",
    "DeepEnsembleRegressor",
    "MCDropoutRegressor",
    "PNCRegressor",
    "SingleNetworkRegressor",
]
