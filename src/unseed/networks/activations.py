"""Activation functions by name: the function, its derivative and the constant c_σ = 1 / E[σ(z)²], z ~ N(0, 1)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from unseed.errors import InvalidInputError
from unseed.networks.quadrature import NODES, gaussian_mean

ElementwiseFunction = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Activation:
    """An elementwise nonlinearity.

    Attributes
    ----------
    name : str
    function, derivative : callable
        Elementwise on tensors; the derivative at a kink is the one torch uses (0 for ReLU at 0).
    known_second_moment : float or None
        E[σ(z)²] where it is known in closed form; otherwise it is integrated.
    """

    name: str
    function: ElementwiseFunction
    derivative: ElementwiseFunction
    known_second_moment: float | None = None

    @property
    def normalisation(self) -> float:
        """The constant c_σ that keeps the variance of a layer's output at one for a unit-variance input."""
        if self.known_second_moment is not None:
            return 1 / self.known_second_moment
        return 1 / float(gaussian_mean(self.function(NODES) ** 2))

    def __repr__(self) -> str:
        return self.name


def _gelu_derivative(u: Tensor) -> Tensor:
    density = torch.exp(-(u**2) / 2) / math.sqrt(2 * math.pi)
    slope: Tensor = torch.special.ndtr(u) + u * density
    return slope


def _silu_derivative(u: Tensor) -> Tensor:
    gate = torch.sigmoid(u)
    return gate * (1 + u * (1 - gate))


_BY_NAME = {
    activation.name: activation
    for activation in (
        Activation("relu", torch.relu, lambda u: (u > 0).to(u.dtype), known_second_moment=0.5),
        Activation(
            "erf",
            torch.erf,
            lambda u: 2 / math.sqrt(math.pi) * torch.exp(-(u**2)),
            known_second_moment=2 / math.pi * math.asin(2 / 3),
        ),
        Activation("tanh", torch.tanh, lambda u: 1 - torch.tanh(u).square()),
        Activation("gelu", torch.nn.functional.gelu, _gelu_derivative),
        Activation("softplus", lambda u: torch.logaddexp(u, torch.zeros_like(u)), torch.sigmoid),
        Activation("silu", torch.nn.functional.silu, _silu_derivative),
        Activation("sin", torch.sin, torch.cos),
    )
}

ACTIVATION_NAMES = tuple(_BY_NAME)


def resolve_activation(activation: str | ElementwiseFunction) -> Activation:
    """Activation of that name, or one built from an elementwise torch function by automatic differentiation.

    Examples
    --------
    >>> resolve_activation("tanh")
    tanh
    >>> resolve_activation(torch.nn.functional.elu)
    elu
    """
    if isinstance(activation, str):
        if activation not in _BY_NAME:
            raise InvalidInputError(
                f"activation={activation!r} is not known; use one of {', '.join(ACTIVATION_NAMES)}, "
                "or an elementwise torch function"
            )
        return _BY_NAME[activation]
    if not callable(activation):
        raise InvalidInputError(
            f"activation={activation!r} is neither a name nor a function; use one of {', '.join(ACTIVATION_NAMES)}"
        )
    return _from_function(activation)


@cache
def _from_function(function: ElementwiseFunction) -> Activation:
    def derivative(u: Tensor) -> Tensor:
        with torch.enable_grad():
            leaf = u.detach().requires_grad_()
            (slope,) = torch.autograd.grad(function(leaf).sum(), leaf)
        return slope

    return Activation(getattr(function, "__name__", repr(function)), function, derivative)
