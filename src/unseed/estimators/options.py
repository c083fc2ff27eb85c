"""From what a user writes to the objects that do the work, with a clear word where that cannot be."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unseed.checks import check_number
from unseed.engines import Engine, KernelEngine, LinearizedEngine, Network, NetworkEngine
from unseed.errors import InvalidInputError
from unseed.networks import MLP
from unseed.random import Streams
from unseed.selection import Selection, choose_regularization, select_by_evidence

MODULE_REGULARIZATION = 1e-6
_ENGINES: dict[str, type[KernelEngine | LinearizedEngine | NetworkEngine]] = {
    "kernel": KernelEngine,
    "linearized": LinearizedEngine,
    "network": NetworkEngine,
}


def resolve_engine(engine: object) -> Engine:
    """Engine of that name, or the object itself."""
    if isinstance(engine, str) and engine in _ENGINES:
        return _ENGINES[engine]()
    if isinstance(engine, (KernelEngine, LinearizedEngine, NetworkEngine)):
        return engine
    raise InvalidInputError(
        f"engine={engine!r} is not known; use 'kernel', 'linearized', 'network' or an object such as NetworkEngine(width=512)"
    )


def resolve_network(network: object) -> Network | None:
    """Architecture, or None where it is to be chosen by evidence.

    ``"auto"`` is one hidden ReLU layer with scaled inputs and normal biases.
    """
    if isinstance(network, str):
        if network == "auto":
            return MLP(depth=1, activation="relu", bias_scale=1.0, bias_init="normal", scale_inputs=True)
        if network == "evidence":
            return None
    elif isinstance(network, torch.nn.Module):
        raise InvalidInputError(
            "network is a torch module; give a function that makes one, such as network=lambda: MyModule(), so that every "
            "replicate has its own start"
        )
    elif isinstance(network, MLP) or callable(network):
        return network
    raise InvalidInputError(
        f"network={network!r} is not known; use 'auto', 'evidence', MLP(depth=..., activation=...) or a function that makes a "
        "torch module"
    )


def is_module(network: object) -> bool:
    """Whether the network is made by a user's function, and so may take inputs of any shape."""
    return not isinstance(resolve_network(network), (MLP, type(None)))


def check_regularization(regularization: object) -> float | None:
    """Return λ_n, or None where it is to be chosen."""
    if isinstance(regularization, str):
        if regularization == "auto":
            return None
        raise InvalidInputError(f"regularization={regularization!r} must be 'auto' or a finite number >= 0, such as 1e-6")
    return check_number("regularization", regularization, at_least=0)


@dataclass(frozen=True)
class Choice:
    """Network and λ_n to train with, and how they were chosen where that was by evidence."""

    network: Network
    regularization: float
    selection: Selection | None = None


def choose(network: object, regularization: object, inputs: Tensor, labels: Tensor, streams: Streams) -> Choice:
    """Network and λ_n as given, or chosen from the data.

    λ_n comes from the evidence with the network, from the leave-one-out error for a given `MLP`, and is a small constant
    for a module, whose kernel is not known.
    """
    architecture, given = resolve_network(network), check_regularization(regularization)
    if isinstance(architecture, MLP):
        architecture.first_layer_factors(inputs.shape[1])  # a relevance per feature must fit the features
    if architecture is None:
        selection = select_by_evidence(inputs, labels, streams)
        return Choice(selection.best.network, selection.best.regularization if given is None else given, selection)
    if given is not None:
        return Choice(architecture, given)
    if not isinstance(architecture, MLP):
        return Choice(architecture, MODULE_REGULARIZATION)
    return Choice(architecture, choose_regularization(inputs, labels, architecture, streams))
