"""Descriptions of networks, and finite networks as batches that can be evaluated and differentiated."""

from unseed.networks._activations import ACTIVATION_NAMES, ACTIVATIONS, Activation, resolve_activation
from unseed.networks._initial_mean import AveragedDraws, GivenMean, InitialMean, MonteCarloMean, ZeroMean, restore_initial_mean
from unseed.networks._mlp import MLP, MLPBatch
from unseed.networks._module import Evaluation, ModuleBatch, ModuleFactory, Network, NetworkBatch, make_batch, restore_batch

__all__ = [
    "ACTIVATIONS",
    "ACTIVATION_NAMES",
    "MLP",
    "Activation",
    "AveragedDraws",
    "Evaluation",
    "GivenMean",
    "InitialMean",
    "MLPBatch",
    "ModuleBatch",
    "ModuleFactory",
    "MonteCarloMean",
    "Network",
    "NetworkBatch",
    "ZeroMean",
    "make_batch",
    "resolve_activation",
    "restore_batch",
    "restore_initial_mean",
]
