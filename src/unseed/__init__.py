"""Confidence intervals for neural-network regression, with the luck of the seed taken out."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from unseed._gone import GONE
from unseed._version import __version__ as __version__

if TYPE_CHECKING:
    from unseed import costs, engines, errors, intervals, kernels, losses, networks, plots, report, tasks  # noqa: F401
    from unseed._class_prediction import ClassPrediction as ClassPrediction
    from unseed._estimators import DeepEnsembleRegressor as DeepEnsembleRegressor
    from unseed._estimators import MCDropoutRegressor as MCDropoutRegressor
    from unseed._estimators import PNCClassifier as PNCClassifier
    from unseed._estimators import PNCRegressor as PNCRegressor
    from unseed._estimators import SingleNetworkRegressor as SingleNetworkRegressor
    from unseed._files import replaced as replaced
    from unseed._findings import Diagnosis as Diagnosis
    from unseed._many import predict_interval_many as predict_interval_many
    from unseed._parquet import parquet_pieces as parquet_pieces
    from unseed._persistence import Compression as Compression
    from unseed._persistence import read_document as read_document
    from unseed._results import Components as Components
    from unseed._results import Prediction as Prediction
    from unseed._selection import AutoNetwork as AutoNetwork
    from unseed._solvers import SGD as SGD
    from unseed._solvers import Converged as Converged
    from unseed._solvers import GaussNewton as GaussNewton
    from unseed._solvers import GradientDescent as GradientDescent
    from unseed._solvers import GradientFlow as GradientFlow
    from unseed.engines import AllRows as AllRows
    from unseed.engines import Exact as Exact
    from unseed.engines import KernelEngine as KernelEngine
    from unseed.engines import Landmarks as Landmarks
    from unseed.engines import LinearizedEngine as LinearizedEngine
    from unseed.engines import NetworkEngine as NetworkEngine
    from unseed.intervals import Batching as Batching
    from unseed.intervals import CheapBootstrap as CheapBootstrap
    from unseed.intervals import HalfSampling as HalfSampling
    from unseed.intervals import InfinitesimalJackknife as InfinitesimalJackknife
    from unseed.intervals import LaplaceInterval as LaplaceInterval
    from unseed.intervals import Sectioning as Sectioning
    from unseed.intervals import TruthInterval as TruthInterval
    from unseed.networks import MLP as MLP
    from unseed.networks import MonteCarloMean as MonteCarloMean

_MODULES = ("costs", "engines", "errors", "intervals", "kernels", "losses", "networks", "plots", "report", "tasks")
_NAMES = {
    "_estimators": (
        *("DeepEnsembleRegressor", "MCDropoutRegressor", "PNCClassifier", "PNCRegressor", "SingleNetworkRegressor"),
    ),
    "_class_prediction": ("ClassPrediction",),
    "_files": ("replaced",),
    "_findings": ("Diagnosis",),
    "_many": ("predict_interval_many",),
    "_persistence": ("Compression", "read_document"),
    "_parquet": ("parquet_pieces",),
    "_results": ("Components", "Prediction"),
    "_selection": ("AutoNetwork",),
    "_solvers": ("SGD", "Converged", "GaussNewton", "GradientDescent", "GradientFlow"),
    "engines": ("AllRows", "Exact", "Landmarks", "KernelEngine", "LinearizedEngine", "NetworkEngine"),
    "intervals": (
        "Batching",
        "CheapBootstrap",
        "HalfSampling",
        "InfinitesimalJackknife",
        "LaplaceInterval",
        "Sectioning",
        "TruthInterval",
    ),
    "networks": ("MLP", "MonteCarloMean"),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}

__all__ = sorted([*_HOMES, "__version__"])


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for: ``import unseed`` alone loads no numerical library."""
    if name in _MODULES:
        return import_module(f"unseed.{name}")
    if name in GONE:
        # Of an AttributeError the statement `from unseed import` would leave out the words.
        is_import = sys._getframe(1).f_globals.get("__name__") == "importlib._bootstrap"
        raise (ImportError if is_import else AttributeError)(GONE[name])
    if name not in _HOMES:
        raise AttributeError(f"module 'unseed' has no attribute {name!r}")
    value = getattr(import_module(f"unseed.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES, *_HOMES])
