"""Models of the leave-one-out errors: structure that the network missed, and how the noise differs over x."""

from unseed._residuals.misfit import Misfit
from unseed._residuals.noise import MIN_ROWS, NoiseModel

__all__ = ["MIN_ROWS", "Misfit", "NoiseModel"]
