"""Many fully connected networks at once, by explicit formulas: outputs, products with the Jacobian, tangent kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from unseed._state import Record, State
from unseed.networks._activations import resolve_activation
from unseed.networks._mlp import MLP
from unseed.networks._protocol import Evaluation


@dataclass(frozen=True)
class MLPBatch:
    """Fully connected networks in the NTK parameterisation, by explicit formulas."""

    network: MLP
    n_features: int
    n_outputs: int
    width: int

    @property
    def _sizes(self) -> list[tuple[int, int]]:
        """(fan out, fan in) of every layer."""
        sizes = [self.n_features, *[self.width] * self.network.depth, self.n_outputs]
        return list(zip(sizes[1:], sizes[:-1], strict=True))

    @property
    def has_biases(self) -> bool:
        """Whether biases are parameters at all."""
        return self.network.bias_scale > 0

    @property
    def n_parameters(self) -> int:
        """Length p of a parameter vector."""
        return sum(out * (fan_in + self.has_biases) for out, fan_in in self._sizes)

    @property
    def numbers_per_row(self) -> int:
        """Neurons of a hidden layer."""
        return self.width

    @property
    def activations_per_row(self) -> int:
        """Neurons of all hidden layers."""
        return self.width * self.network.depth

    @property
    def is_explicit(self) -> bool:
        """Yes."""
        return True

    def in_double(self) -> MLPBatch:
        """These themselves, which have no numbers of their own."""
        return self

    def resized(self, width: int) -> MLPBatch:
        """The same with another width."""
        return replace(self, width=width)

    def state(self) -> State:
        """The width, which the engine may have chosen."""
        return {"width": self.width}

    def check_length(self, found: int, record: Record) -> None:
        """The description was saved too: if they do not fit, the file is at fault."""
        if found != self.n_parameters:
            raise record.fault(f"{found:,} parameters for a network that has {self.n_parameters:,}")

    def draw(self, generator: np.random.Generator) -> Tensor:
        """Weights from N(0, 1), biases from N(0, 1) or 0; layer by layer, weights before biases. Shape (p,)."""
        parts = []
        for out, fan_in in self._sizes:
            parts.append(generator.standard_normal(out * fan_in))
            if self.has_biases:
                parts.append(generator.standard_normal(out) if self.network.bias_init == "normal" else np.zeros(out))
        return torch.from_numpy(np.concatenate(parts))

    def layers(self, parameters: Tensor) -> list[tuple[Tensor, Tensor | None]]:
        """Views of weights (B, out, in) and biases (B, 1, out) of every layer."""
        views, start = [], 0
        for out, fan_in in self._sizes:
            weight = parameters[:, start : start + out * fan_in].view(-1, out, fan_in)
            start += out * fan_in
            bias = None
            if self.has_biases:
                bias = parameters[:, None, start : start + out]
                start += out
            views.append((weight, bias))
        return views

    def factor(self, layer: int) -> float:
        """What multiplies the inputs of a layer beyond the first."""
        activation = resolve_activation(self.network.activation)
        return self.network.weight_std * math.sqrt(activation.normalisation / self.width) if layer else 1.0

    def outputs(self, parameters: Tensor, X: Tensor, kept: Sequence[Tensor] = ()) -> Tensor:
        """Outputs alone, every hidden layer's activations multiplied by what is kept of them (dropout). Shape (B, n, k)."""
        return self._forward(parameters, X, kept).outputs

    def evaluate(self, parameters: Tensor, X: Tensor, blur: Tensor | None = None) -> MLPEvaluation:
        """Forward pass; pre-activations and activations are kept. ``blur`` has shape (B, depth)."""
        return replace(self._forward(parameters, X), blur=blur)

    def _forward(self, parameters: Tensor, X: Tensor, kept: Sequence[Tensor] = ()) -> MLPEvaluation:
        activation = resolve_activation(self.network.activation)
        scale = torch.tensor(self.network.first_layer_factors(self.n_features), dtype=X.dtype, device=X.device)
        inputs, arguments = [X * scale], []
        layers = self.layers(parameters)
        for layer, (weight, bias) in enumerate(layers):
            signal = inputs[-1] @ (self.factor(layer) * weight).mT
            if bias is not None:
                signal = signal + self.network.bias_scale * bias
            if layer < self.network.depth:
                arguments.append(signal)
                inputs.append(activation.value(signal) * kept[layer] if kept else activation.value(signal))
        return MLPEvaluation(self, layers, inputs, arguments, signal)

    def jacobian(self, parameters: Tensor, X: Tensor) -> Tensor:
        """Gradients of every row and output, layer by layer. Shape (n·k, p)."""
        return self.evaluate(parameters[None], X[None]).jacobian()[0]

    def cross_kernel(self, parameters: Tensor, X: Tensor, Z: Tensor) -> Tensor:
        """Tangent kernel between two sets of inputs. Shape (B, n·k, m·k)."""
        return self.evaluate(parameters, X).kernel_with(self.evaluate(parameters, Z))


@dataclass(frozen=True)
class MLPEvaluation:
    """A forward pass of `MLPBatch` and everything linear that hangs on it."""

    batch: MLPBatch
    layers: list[tuple[Tensor, Tensor | None]]
    inputs: list[Tensor]  # of every layer, before its factor: (B, n, fan in)
    arguments: list[Tensor]  # of every activation: (B, n, width)
    outputs: Tensor
    blur: Tensor | None = None  # (B, depth)

    def blur_since(self, before: Evaluation) -> Tensor | None:
        """Root mean square change of every layer's pre-activations, for ReLU. Shape (B, depth)."""
        assert isinstance(before, MLPEvaluation)
        if not resolve_activation(self.batch.network.activation).has_kink:
            return None
        changes = [
            (now - then).square().mean(dim=(1, 2)).sqrt() for now, then in zip(self.arguments, before.arguments, strict=True)
        ]
        return torch.stack(changes, dim=1)

    def _through(self, layer: int, gradient: Tensor) -> Tensor:
        """Gradient before the activation that feeds ``layer``, for (B, n, width) or (B, n, k, width)."""
        shape = (-1, *[1] * (gradient.dim() - 1))
        blur = None if self.blur is None else self.blur[:, layer - 1].view(shape)
        arguments = self.arguments[layer - 1]
        if gradient.dim() == 4:
            arguments = arguments[:, :, None, :]
        return resolve_activation(self.batch.network.activation).backward(arguments, gradient, blur)

    def pull(self, weights: Tensor) -> Tensor:
        """Backpropagation of any output weights. Shape (B, p)."""
        bias_scale = self.batch.network.bias_scale
        parts: list[Tensor] = []
        signal = weights
        for layer in reversed(range(len(self.layers))):
            weight, bias = self.layers[layer]
            factor = self.batch.factor(layer)
            if bias is not None:
                parts.append(bias_scale * signal.sum(1))
            parts.append((factor * signal.mT @ self.inputs[layer]).flatten(1))
            if layer:
                signal = self._through(layer, signal @ (factor * weight))
        return torch.cat(parts[::-1], dim=1)

    def push(self, directions: Tensor) -> Tensor:
        """Forward differentiation. Shape (B, n, k)."""
        bias_scale = self.batch.network.bias_scale
        moved = self.batch.layers(directions)
        tangent: Tensor | None = None
        for layer, ((weight, _), (step, bias_step)) in enumerate(zip(self.layers, moved, strict=True)):
            factor = self.batch.factor(layer)
            change = self.inputs[layer] @ (factor * step).mT
            if bias_step is not None:
                change = change + bias_scale * bias_step
            if tangent is not None:
                change = change + self._through(layer, tangent) @ (factor * weight).mT
            tangent = change
        assert tangent is not None
        return tangent

    def jacobian(self) -> Tensor:
        """Outer products of backpropagated signals and inputs. Shape (B, n·k, p)."""
        parts = []
        for layer, signal in enumerate(self._signals()):
            inputs = self.batch.factor(layer) * self.inputs[layer]
            parts.append((signal[..., None] * inputs[:, :, None, None, :]).flatten(3))
            if self.batch.has_biases:
                parts.append(self.batch.network.bias_scale * signal)
        return torch.cat(parts, dim=3).flatten(1, 2)

    def tangent_kernel(self) -> Tensor:
        """J Jᵀ. Shape (B, n·k, n·k)."""
        return self.kernel_with(self)

    def kernel_with(self, other: MLPEvaluation) -> Tensor:
        """Sum over layers of (inner products of inputs + bias) ⊙ (inner products of backpropagated signals)."""
        bias_variance = self.batch.network.bias_scale**2
        total: Tensor | None = None
        for layer, (here, there) in enumerate(zip(self._signals(), other._signals(), strict=True)):
            factor = self.batch.factor(layer) ** 2
            inner = factor * self.inputs[layer] @ other.inputs[layer].mT + bias_variance  # (B, n, m)
            outer = torch.einsum("bniw,bmjw->bnimj", here, there) if here.shape[2] > 1 else None
            if outer is None:
                term = (inner * (here[:, :, 0] @ there[:, :, 0].mT))[:, :, None, :, None]
            else:
                term = inner[:, :, None, :, None] * outer
            total = term if total is None else total + term
        assert total is not None
        return total.flatten(3, 4).flatten(1, 2)

    def _signals(self) -> list[Tensor]:
        """∂output_j / ∂pre-activation of every layer. Shape (B, n, k, fan out) each."""
        k = self.batch.n_outputs
        n_networks, n_rows = self.outputs.shape[:2]
        signal = torch.eye(k, dtype=self.outputs.dtype, device=self.outputs.device).expand(n_networks, n_rows, k, k)
        signals = [signal]
        for layer in reversed(range(1, len(self.layers))):
            weight = self.batch.factor(layer) * self.layers[layer][0]
            back = weight[:, None].expand(-1, n_rows, -1, -1) if layer == len(self.layers) - 1 else signal @ weight[:, None]
            signal = self._through(layer, back)
            signals.append(signal)
        return signals[::-1]
