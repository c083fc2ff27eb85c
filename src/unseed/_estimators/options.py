"""From what a user writes to the objects that do the work, with a clear word where that cannot be."""

from __future__ import annotations

import torch

from unseed._checks import check_number
from unseed._estimators.regressor import TrainingData
from unseed._selection import AutoNetwork, Choice, choose_regularization, select_network
from unseed.engines import Network
from unseed.errors import InvalidInputError
from unseed.networks import MLP

MODULE_REGULARIZATION = 1e-6
PLAIN_NETWORK = MLP(depth=1, activation="relu", bias_scale=1.0, bias_init="normal", scale_inputs=True)


def resolve_network(network: object) -> Network | AutoNetwork:
    """Architecture, or how it is to be chosen."""
    if isinstance(network, str) and network == "auto":
        return AutoNetwork()
    if isinstance(network, torch.nn.Module):
        raise InvalidInputError(
            "network is a torch module; give a function that makes one, such as network=lambda: MyModule(), so that every "
            "replicate has its own start"
        )
    if isinstance(network, (MLP, AutoNetwork)) or (callable(network) and not isinstance(network, str)):
        return network
    raise InvalidInputError(
        f"network={network!r} is not known; use 'auto', AutoNetwork(...), MLP(depth=..., activation=...) or a function that "
        "makes a torch module"
    )


def is_module(network: object) -> bool:
    """Whether the network is made by a user's function, and so may take inputs of any shape."""
    return not isinstance(resolve_network(network), (MLP, AutoNetwork))


def check_regularization(regularization: object) -> float | None:
    """Return λ_n, or None where it is to be chosen."""
    if isinstance(regularization, str):
        if regularization == "auto":
            return None
        raise InvalidInputError(f"regularization={regularization!r} must be 'auto' or a finite number >= 0, such as 1e-6")
    return check_number("regularization", regularization, at_least=0)


def choose(network: object, regularization: object, data: TrainingData, labels: torch.Tensor, *, converges: bool) -> Choice:
    """Network and λ_n as given, or chosen from the data.

    A choice by evidence is one for networks trained to convergence; where training stops earlier (``converges=False``),
    ``"auto"`` is a plain network, whose size suits usual learning rates.

    λ_n comes with a network that is chosen, from the leave-one-out error for a given `MLP`, and is a small constant
    for a module, whose kernel is not known.
    """
    architecture, given = resolve_network(network), check_regularization(regularization)
    inputs, streams = data.inputs, data.streams
    if isinstance(architecture, AutoNetwork) and not converges:
        if not isinstance(network, str):
            raise InvalidInputError(
                f"network={network} is chosen for converged training, and here it stops earlier; use 'auto'"
            )
        architecture = PLAIN_NETWORK
    if isinstance(architecture, MLP):
        architecture.first_layer_factors(inputs.shape[1])  # a relevance per feature must fit the features
    if isinstance(architecture, AutoNetwork):
        selection = select_network(inputs, labels, streams, architecture, data.progress)
        return Choice(selection.best.network, selection.best.regularization if given is None else given, selection)
    if given is not None:
        return Choice(architecture, given)
    if not isinstance(architecture, MLP):
        return Choice(architecture, MODULE_REGULARIZATION)
    return Choice(architecture, choose_regularization(inputs, labels, architecture, streams))
