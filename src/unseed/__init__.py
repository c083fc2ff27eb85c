"""Confidence intervals for neural-network regression, with the luck of the seed taken out."""

from unseed.engines import KernelEngine
from unseed.estimators import PNCRegressor
from unseed.intervals import Batching, CheapBootstrap, HalfSampling, InfinitesimalJackknife, Sectioning
from unseed.networks import MLP, MonteCarloMean
from unseed.results import Components, Prediction
from unseed.solvers import Converged, GradientDescent, GradientFlow

__version__ = "0.1.0"

__all__ = [
    "MLP",
    "Batching",
    "CheapBootstrap",
    "Components",
    "Converged",
    "GradientDescent",
    "GradientFlow",
    "HalfSampling",
    "InfinitesimalJackknife",
    "KernelEngine",
    "MonteCarloMean",
    "PNCRegressor",
    "Prediction",
    "Sectioning",
    "__version__",
]
