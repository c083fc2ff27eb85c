"""scikit-learn estimators."""

from unseed._estimators.baselines import DeepEnsembleRegressor, MCDropoutRegressor, SingleNetworkRegressor
from unseed._estimators.classifier import PNCClassifier
from unseed._estimators.pnc import PNCRegressor

__all__ = [
    "DeepEnsembleRegressor",
    "MCDropoutRegressor",
    "PNCClassifier",
    "PNCRegressor",
    "SingleNetworkRegressor",
]
