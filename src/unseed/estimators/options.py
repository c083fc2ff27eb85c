"""From what a user writes to the objects that do the work, with a clear word where that cannot be."""

from __future__ import annotations

import torch

from unseed.checks import check_number
from unseed.engines import Engine, KernelEngine, LinearizedEngine, Network, NetworkEngine
from unseed.errors import InvalidInputError
from unseed.networks import MLP
from unseed.random import Streams
from unseed.selection import choose_regularization

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


def resolve_network(network: object) -> Network:
    """Architecture; ``"auto"`` is one hidden ReLU layer with scaled inputs and normal biases."""
    if isinstance(network, str) and network == "auto":
        return MLP(depth=1, activation="relu", bias_scale=1.0, bias_init="normal", scale_inputs=True)
    if isinstance(network, torch.nn.Module):
        raise InvalidInputError(
            "network is a torch module; give a function that makes one, such as network=lambda: MyModule(), so that every "
            "replicate has its own start"
        )
    if isinstance(network, MLP) or (callable(network) and not isinstance(network, str)):
        return network
    raise InvalidInputError(
        f"network={network!r} is not known; use 'auto', MLP(depth=..., activation=...) or a function that makes a torch module"
    )


def check_regularization(regularization: object) -> float | None:
    """Return λ_n, or None where it is to be chosen."""
    if isinstance(regularization, str):
        if regularization == "auto":
            return None
        raise InvalidInputError(f"regularization={regularization!r} must be 'auto' or a finite number >= 0, such as 1e-6")
    return check_number("regularization", regularization, at_least=0)


def regularization_for(
    regularization: float | None, network: Network, inputs: torch.Tensor, labels: torch.Tensor, streams: Streams
) -> float:
    """λ_n as given, by leave-one-out for an `MLP`, or a small constant for a module, whose kernel is not known."""
    if regularization is not None:
        return regularization
    if not isinstance(network, MLP):
        return MODULE_REGULARIZATION
    return choose_regularization(inputs, labels, network, streams)


def check_network_fits(network: Network, n_features: int) -> None:
    """Refuse a relevance per feature that does not fit the features."""
    if isinstance(network, MLP):
        network.first_layer_factors(n_features)
