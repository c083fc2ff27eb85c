"""The architecture of a fully connected network, as a frozen description that every engine understands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

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
