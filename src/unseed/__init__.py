"""Confidence intervals for neural-network regression, with the luck of the seed taken out."""

from unseed.blocks import parquet_pieces
from unseed.engines import KernelEngine, LinearizedEngine, NetworkEngine
from unseed.estimators import (
    BlockwisePNCRegressor,
    DeepEnsembleRegressor,
    MCDropoutRegressor,
    PNCRegressor,
    SingleNetworkRegressor,
)
from unseed.findings import Diagnosis
from unseed.intervals import Batching, CheapBootstrap, HalfSampling, InfinitesimalJackknife, Sectioning, TruthInterval
from unseed.many import predict_interval_many
from unseed.networks import MLP, MonteCarloMean
from unseed.persistence import Compression, read_document
from unseed.results import Components, Prediction
from unseed.selection import AutoNetwork
from unseed.solvers import SGD, Converged, GaussNewton, GradientDescent, GradientFlow
from unseed.version import __version__

__all__ = [
    "MLP",
    "SGD",
    "AutoNetwork",
    "Batching",
    "BlockwisePNCRegressor",
    "CheapBootstrap",
    "Components",
    "Compression",
    "Converged",
    "DeepEnsembleRegressor",
    "Diagnosis",
    "GaussNewton",
    "GradientDescent",
    "GradientFlow",
    "HalfSampling",
    "InfinitesimalJackknife",
    "KernelEngine",
    "LinearizedEngine",
    "MCDropoutRegressor",
    "MonteCarloMean",
    "NetworkEngine",
    "PNCRegressor",
    "Prediction",
    "Sectioning",
    "SingleNetworkRegressor",
    "TruthInterval",
    "__version__",
    "parquet_pieces",
    "predict_interval_many",
    "read_document",
]
