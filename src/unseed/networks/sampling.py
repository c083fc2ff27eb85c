"""Finite networks as drawn, before training: parameters and the forward pass."""

import math
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from unseed.networks.activations import resolve_activation
from unseed.networks.mlp import MLP

Parameters = list[tuple[Tensor, Tensor]]


def draw_parameters(
    network: MLP, n_features: int, n_outputs: int, width: int, generator: np.random.Generator, device: torch.device
) -> Parameters:
    """Weights and biases of every layer, float64; drawn by NumPy so that every device gets the same numbers."""
    sizes = [n_features, *[width] * network.depth, n_outputs]
    parameters = []
    for fan_in, fan_out in pairwise(sizes):
        weight = generator.standard_normal((fan_out, fan_in))
        bias = generator.standard_normal(fan_out) if network.bias_init == "normal" else np.zeros(fan_out)
        parameters.append((torch.as_tensor(weight, device=device), torch.as_tensor(bias, device=device)))
    return parameters


def forward(network: MLP, parameters: Parameters, X: Tensor) -> Tensor:
    """Output of the network at the rows of X. Shape (n_rows, n_outputs)."""
    activation = resolve_activation(network.activation)
    (weight, bias), *later = parameters
    factors = torch.tensor(network.first_layer_factors(X.shape[1]), dtype=X.dtype, device=X.device)
    signal = (X * factors) @ weight.T + network.bias_scale * bias
    for weight, bias in later:
        factor = network.weight_std * math.sqrt(activation.normalisation / weight.shape[1])
        signal = factor * activation.function(signal) @ weight.T + network.bias_scale * bias
    return signal
