"""Linear solves behind the closed forms."""

from unseed.solvers.ridge import WeightedRidge
from unseed.solvers.spectral import SpectralFilter
from unseed.solvers.training import Converged, GradientDescent, GradientFlow, Training

__all__ = ["Converged", "GradientDescent", "GradientFlow", "SpectralFilter", "Training", "WeightedRidge"]
