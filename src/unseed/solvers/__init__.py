"""Linear solves behind the closed forms, and trainers of real networks."""

from unseed.solvers.descent import descend
from unseed.solvers.gauss_newton import GaussNewton
from unseed.solvers.iterated import StoppedRidge
from unseed.solvers.objective import Fit, Objective
from unseed.solvers.ridge import WeightedRidge
from unseed.solvers.sgd import SGD
from unseed.solvers.spectral import SpectralFilter
from unseed.solvers.training import Converged, GradientDescent, GradientFlow, Training

__all__ = [
    "SGD",
    "Converged",
    "Fit",
    "GaussNewton",
    "GradientDescent",
    "GradientFlow",
    "Objective",
    "SpectralFilter",
    "StoppedRidge",
    "Training",
    "WeightedRidge",
    "descend",
]
