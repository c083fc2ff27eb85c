"""Descriptions of networks, and finite networks as batches that can be evaluated and differentiated."""

from unseed.networks._activations import ACTIVATION_NAMES, ACTIVATIONS, Activation, resolve_activation
from unseed.networks._batch import MLPBatch
from unseed.networks._initial_mean import AveragedDraws, GivenMean, InitialMean, MonteCarloMean, ZeroMean, restore_initial_mean
from unseed.networks._making import Network, make_batch, restore_batch
from unseed.networks._mlp import MLP
from unseed.networks._module import ModuleBatch, ModuleFactory
from unseed.networks._protocol import Evaluation, NetworkBatch

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
