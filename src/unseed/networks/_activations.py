"""Activation functions by name: the function, its derivative and the constant c_σ = 1 / E[σ(z)²], z ~ N(0, 1)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from unseed.errors import InvalidInputError
from unseed.networks._quadrature import NODES, gaussian_mean

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

    @property
    def has_kink(self) -> bool:
        """Whether this is the ReLU, whose derivative jumps."""
        return self is _BY_NAME["relu"]

    def backward(self, arguments: Tensor, gradient: Tensor, blur: Tensor | None = None) -> Tensor:
        """Gradient with respect to the arguments; for ReLU in one pass over memory.

        ``blur`` (broadcast against the arguments) replaces ReLU's step by a normal distribution function of that width.
        """
        if not self.has_kink:
            return self.derivative(arguments) * gradient
        if blur is None:
            return torch.where(arguments > 0, gradient, 0.0)
        slope: Tensor = torch.special.ndtr(arguments / blur)
        return slope * gradient

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
        Activation("sin", torch.sin, torch.cos, known_second_moment=(1 - math.exp(-2)) / 2),
    )
}

ACTIVATION_NAMES = tuple(_BY_NAME)
_OTHER_SPELLINGS = {"relu": torch.nn.functional.relu, "tanh": torch.nn.functional.tanh}


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
    if not callable(activation) or isinstance(activation, type):
        raise InvalidInputError(
            f"activation={activation!r} is neither a name nor a function; use one of {', '.join(ACTIVATION_NAMES)}"
        )
    for named in _BY_NAME.values():
        if activation is named.function or activation is _OTHER_SPELLINGS.get(named.name):
            return named
    return _from_function(activation)


@cache
def _from_function(function: ElementwiseFunction) -> Activation:
    name = getattr(function, "__name__", repr(function))
    _check_elementwise(name, function)

    def derivative(u: Tensor) -> Tensor:
        with torch.inference_mode(False), torch.enable_grad():
            leaf = u.detach().clone().requires_grad_()
            (slope,) = torch.autograd.grad(function(leaf).sum(), leaf)
        return slope

    return Activation(name, function, derivative)


def _check_elementwise(name: str, function: ElementwiseFunction) -> None:
    probe = torch.linspace(-3, 3, 7, dtype=torch.float64)
    try:
        values = function(probe)
        apart = torch.cat([function(entry) for entry in probe.split(1)])  # type: ignore[no-untyped-call]
        fits = values.shape == probe.shape and bool(torch.isfinite(values).all()) and torch.allclose(values, apart)
    except Exception as error:
        raise InvalidInputError(f"activation={name} cannot be applied to a torch tensor: {error}") from error
    if not fits or not bool(values.any()):
        raise InvalidInputError(f"activation={name} must be an elementwise, finite torch function that is not zero")
