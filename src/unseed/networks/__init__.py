"""Descriptions of networks, and finite networks drawn at random before any training."""

from unseed.networks.activations import ACTIVATION_NAMES, Activation, resolve_activation
from unseed.networks.initial_mean import InitialMean, MonteCarloMean, resolve_initial_mean
from unseed.networks.mlp import MLP
from unseed.networks.sampling import Parameters, draw_parameters, forward

__all__ = [
    "ACTIVATION_NAMES",
    "MLP",
    "Activation",
    "InitialMean",
    "MonteCarloMean",
    "Parameters",
    "draw_parameters",
    "forward",
    "resolve_activation",
    "resolve_initial_mean",
]
