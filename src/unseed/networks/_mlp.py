"""Fully connected networks: the architecture that every engine understands, and many finite ones by explicit formulas."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import torch
from torch import Tensor

from unseed._checks import check_flag, check_number, check_whole_number
from unseed.errors import InvalidInputError
from unseed.networks._activations import Activation, ElementwiseFunction, resolve_activation

BIAS_INITS = ("normal", "zero")


@dataclass(frozen=True)
class MLP:
    """Fully connected network in the NTK parameterisation, all weights drawn from N(0, 1).

    The first layer is f¹ = weight_std · (1/√d if scale_inputs else 1) · W¹x + bias_scale · b¹, the others
    fˡ⁺¹ = weight_std · √(c_σ / width) · Wˡ⁺¹ σ(fˡ) + bias_scale · bˡ⁺¹, the output layer included,
    with c_σ = 1 / E[σ(z)²]. The defaults are the paper's text.

    Parameters
    ----------
    depth : int
        Number of hidden layers, at least 1.
    activation : str or elementwise torch function
        ``"relu"`` and ``"erf"`` have kernels in closed form; ``"tanh"``, ``"gelu"``, ``"softplus"``, ``"silu"``,
        ``"sin"`` and smooth functions of your own are integrated numerically (a kink costs accuracy, and a warning
        says how much).
    width : int or None
        Neurons of a hidden layer where a finite network is needed; None leaves the choice to the engine.
    weight_std, bias_scale : float
        Factors on weights and biases. ``bias_scale=0`` means no biases.
    bias_init : {"normal", "zero"}
        Biases start at N(0, 1) draws or at 0; they are trained in both cases.
    scale_inputs : bool
        Divide the first layer by √d, so that d standardised features do not add up to a variance of d.
    input_scale : sequence of float or None
        One non-negative factor per feature (its relevance), applied to x before the first layer.

    Examples
    --------
    >>> MLP(depth=2, activation="erf", bias_scale=1.0)
    MLP(depth=2, activation='erf', bias_scale=1.0)
    """

    depth: int = 1
    activation: str | ElementwiseFunction | Activation = "relu"
    width: int | None = None
    weight_std: float = 1.0
    bias_scale: float = 0.0
    bias_init: str = "normal"
    scale_inputs: bool = False
    input_scale: Sequence[float] | None = None

    def __post_init__(self) -> None:
        check_whole_number("depth", self.depth, at_least=1)
        resolve_activation(self.activation)
        if self.width is not None:
            check_whole_number("width", self.width, at_least=1)
        check_number("weight_std", self.weight_std, above=0)
        check_number("bias_scale", self.bias_scale, at_least=0)
        check_flag("scale_inputs", self.scale_inputs)
        if self.bias_init not in BIAS_INITS:
            raise InvalidInputError(f"bias_init={self.bias_init!r} is not known; use 'normal' or 'zero'")
        if self.input_scale is not None:
            if np.ndim(np.asarray(self.input_scale)) != 1:
                raise InvalidInputError(f"input_scale={self.input_scale!r} must be one number per feature, or None")
            scale = tuple(check_number("input_scale", factor, at_least=0) for factor in self.input_scale)
            object.__setattr__(self, "input_scale", scale)

    def __repr__(self) -> str:
        changed = (
            f"{name}={value!r}"
            for name, field in type(self).__dataclass_fields__.items()
            if (value := getattr(self, name)) != field.default
        )
        return f"MLP({', '.join(changed)})"

    @property
    def initial_bias_variance(self) -> float:
        """Variance that the biases add to every pre-activation of the untrained network."""
        return self.bias_scale**2 if self.bias_init == "normal" else 0.0

    def first_layer_factors(self, n_features: int) -> tuple[float, ...]:
        """Factor on each input feature in the first layer: weight_std, input scaling and relevance together."""
        if self.input_scale is not None and len(self.input_scale) != n_features:
            raise InvalidInputError(
                f"input_scale has {len(self.input_scale)} entries for {n_features} features; give one per feature"
            )
        common = self.weight_std / (math.sqrt(n_features) if self.scale_inputs else 1.0)
        return tuple(common * factor for factor in self.input_scale or [1.0] * n_features)


@dataclass(frozen=True)
class MLPBatch:
    """Networks of one architecture, by explicit formulas.

    Parameters of B networks are one matrix (B, p), and they see inputs (B, n, d): each network its own rows.
    """

    is_explicit = True  # Jacobians are formulas: a tangent kernel at every step is affordable

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

    def resized(self, width: int) -> MLPBatch:
        """The same with another width."""
        return replace(self, width=width)

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
        return self.evaluate(parameters, X, kept=kept).outputs

    def evaluate(self, parameters: Tensor, X: Tensor, blur: Tensor | None = None, kept: Sequence[Tensor] = ()) -> MLPEvaluation:
        """Forward pass, ready for questions about J; ``blur``, of shape (B, depth), smooths kinks."""
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
        return MLPEvaluation(self, layers, inputs, arguments, signal, blur)

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

    def blur_since(self, before: object) -> Tensor | None:
        """Root mean square change of every layer's pre-activations, where there are kinks. Shape (B, depth)."""
        assert isinstance(before, MLPEvaluation)
        if not resolve_activation(self.batch.network.activation).has_kink:
            return None
        both = zip(self.arguments, before.arguments, strict=True)
        return torch.stack([(now - then).square().mean(dim=(1, 2)).sqrt() for now, then in both], dim=1)

    def _through(self, layer: int, gradient: Tensor) -> Tensor:
        """Gradient before the activation that feeds ``layer``, for (B, n, width) or (B, n, k, width)."""
        shape = (-1, *[1] * (gradient.dim() - 1))
        blur = None if self.blur is None else self.blur[:, layer - 1].view(shape)
        arguments = self.arguments[layer - 1]
        if gradient.dim() == 4:
            arguments = arguments[:, :, None, :]
        return resolve_activation(self.batch.network.activation).backward(arguments, gradient, blur)

    def pull(self, weights: Tensor) -> Tensor:
        """Jᵀ weights, for weights (B, n, k), by backpropagation. Shape (B, p)."""
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
        """J directions, for directions (B, p), by forward differentiation. Shape (B, n, k)."""
        bias_scale = self.batch.network.bias_scale
        moved = self.batch.layers(directions)
        tangent = directions  # after a layer, from here on
        for layer, ((weight, _), (step, bias_step)) in enumerate(zip(self.layers, moved, strict=True)):
            factor = self.batch.factor(layer)
            change = self.inputs[layer] @ (factor * step).mT
            if bias_step is not None:
                change = change + bias_scale * bias_step
            if layer:
                change = change + self._through(layer, tangent) @ (factor * weight).mT
            tangent = change
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
        bias_variance, n, m, k = self.batch.network.bias_scale**2, *self.outputs.shape[1:2], *other.outputs.shape[1:]

        def of_layer(layer: int, here: Tensor, there: Tensor) -> Tensor:
            inner = self.batch.factor(layer) ** 2 * self.inputs[layer] @ other.inputs[layer].mT + bias_variance  # (B, n, m)
            outer = here.flatten(1, 2) @ there.flatten(1, 2).mT
            return inner[:, :, None, :, None] * outer.view(-1, n, k, m, k)

        terms = map(of_layer, range(len(self.layers)), self._signals(), other._signals())
        return reduce(torch.add, terms).flatten(3, 4).flatten(1, 2)

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
