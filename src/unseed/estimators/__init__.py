"""scikit-learn estimators."""

from unseed.estimators.baselines import DeepEnsembleRegressor, MCDropoutRegressor, SingleNetworkRegressor
from unseed.estimators.pnc import PNCRegressor

__all__ = ["DeepEnsembleRegressor", "MCDropoutRegressor", "PNCRegressor", "SingleNetworkRegressor"]
