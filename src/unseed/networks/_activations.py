"""Activation functions: one record each, and the one list of those that have a name."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import torch
from torch import Tensor

from unseed._expectations import ERF, NODES, RELU, SIN, WEIGHTS, Expectations, HermiteExpansion
from unseed.errors import InvalidInputError

ElementwiseFunction = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Activation:
    """An elementwise nonlinearity: all that the library knows of it.

    Parameters
    ----------
    name : str
        For messages and reports.
    value : callable
        Elementwise on torch tensors.
    derivative : callable or None
        Elementwise on torch tensors, at a kink as torch has it (0 for ReLU at 0); None differentiates automatically.
    second_moment : float or None
        E[σ(z)²], z ~ N(0, 1), where it is known; None integrates numerically.
    closed_form : Expectations or None
        The Gaussian moments behind the NTK and the NNGP; None expands them in Hermite polynomials, which a smooth function
        needs few of.
    blurred_derivative : callable or None
        Of a function with kinks, its derivative at u averaged over normal noise of standard deviation s, from tensors u and s;
        Gauss-Newton steps across kinks with it.
    spellings : tuple of callable
        Other functions that are this one.

    Examples
    --------
    >>> from unseed import MLP
    >>> from unseed.kernels import nngp
    >>> from unseed.networks import Activation
    >>> bump = Activation("bump", lambda u: torch.exp(-u.square() / 2))
    >>> bump.normalisation.__round__(6)
    1.732051
    >>> nngp([[1.0, 0.0], [0.0, 1.0]], network=MLP(activation=bump)).round(4)
    array([[1.   , 0.866],
           [0.866, 1.   ]])
    """

    name: str
    value: ElementwiseFunction
    derivative: ElementwiseFunction | None = None
    second_moment: float | None = None
    closed_form: Expectations | None = None
    blurred_derivative: Callable[[Tensor, Tensor], Tensor] | None = None
    spellings: tuple[ElementwiseFunction, ...] = ()

    def __post_init__(self) -> None:
        for function in (self.value, self.derivative):
            if function is not None:
                _check_elementwise(self.name, function)

    @cached_property
    def normalisation(self) -> float:
        """The constant c_σ = 1 / E[σ(z)²]: it keeps the variance of a layer's output at one for a unit-variance input."""
        if self.second_moment is not None:
            return 1 / self.second_moment
        return 1 / float(self.value(NODES) ** 2 @ WEIGHTS)

    @cached_property
    def expectations(self) -> Expectations:
        """Gaussian moments: the closed form where there is one, Hermite expansions otherwise."""
        return self._moments_of(HermiteExpansion(self.name, self.value, self.slope, self.normalisation))

    @cached_property
    def expectations_of_scaled(self) -> Expectations:
        """The same for networks that scale their inputs already, whom warnings do not tell to."""
        remedy = "a smaller weight_std or bias_scale helps"
        return self._moments_of(HermiteExpansion(self.name, self.value, self.slope, self.normalisation, remedy))

    def _moments_of(self, expansion: HermiteExpansion) -> Expectations:
        return self.closed_form or Expectations(expansion.points, expansion.pairs)

    @property
    def has_kink(self) -> bool:
        """Whether the derivative is known to jump."""
        return self.blurred_derivative is not None

    def slope(self, u: Tensor) -> Tensor:
        """Derivative at every entry."""
        if self.derivative is not None:
            return self.derivative(u)
        with torch.inference_mode(False), torch.enable_grad():
            leaf = u.detach().clone().requires_grad_()
            (slope,) = torch.autograd.grad(self.value(leaf).sum(), leaf)
        return slope

    def backward(self, arguments: Tensor, gradient: Tensor, blur: Tensor | None = None) -> Tensor:
        """Gradient with respect to the arguments, kinks smoothed over a width of ``blur`` (broadcast against them)."""
        if blur is None or self.blurred_derivative is None:
            return self.slope(arguments) * gradient
        return self.blurred_derivative(arguments, blur) * gradient

    def __repr__(self) -> str:
        return self.name


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


def _gelu_derivative(u: Tensor) -> Tensor:
    density = torch.exp(-(u**2) / 2) / math.sqrt(2 * math.pi)
    slope: Tensor = torch.special.ndtr(u) + u * density
    return slope


def _silu_derivative(u: Tensor) -> Tensor:
    gate = torch.sigmoid(u)
    return gate * (1 + u * (1 - gate))


ACTIVATIONS = (
    Activation(
        "relu",
        torch.relu,
        lambda u: (u > 0).to(u.dtype),
        second_moment=0.5,
        closed_form=RELU,
        blurred_derivative=lambda u, width: torch.special.ndtr(u / width),
        spellings=(torch.nn.functional.relu,),
    ),
    Activation("erf", torch.erf, lambda u: 2 / math.sqrt(math.pi) * torch.exp(-(u**2)), closed_form=ERF),
    Activation("tanh", torch.tanh, lambda u: 1 - torch.tanh(u).square(), spellings=(torch.nn.functional.tanh,)),
    Activation("gelu", torch.nn.functional.gelu, _gelu_derivative),
    Activation("softplus", lambda u: torch.logaddexp(u, torch.zeros_like(u)), torch.sigmoid),
    Activation("silu", torch.nn.functional.silu, _silu_derivative),
    Activation("sin", torch.sin, torch.cos, closed_form=SIN),
)
"""The activations that have a name; there is no other list of them."""

ACTIVATION_NAMES = tuple(activation.name for activation in ACTIVATIONS)


def resolve_activation(activation: str | ElementwiseFunction | Activation) -> Activation:
    """The record itself, that of a name, or one made of an elementwise torch function by automatic differentiation.

    Examples
    --------
    >>> resolve_activation("tanh")
    tanh
    >>> resolve_activation(torch.nn.functional.elu)
    elu
    """
    if isinstance(activation, Activation):
        return activation
    names = ", ".join(ACTIVATION_NAMES)
    if not isinstance(activation, str) and (not callable(activation) or isinstance(activation, type)):
        raise InvalidInputError(f"activation={activation!r} is neither a name nor a function; use one of {names}")
    for named in ACTIVATIONS:
        if activation in (named.name, named.value, *named.spellings):
            return named
    if isinstance(activation, str):
        raise InvalidInputError(f"activation={activation!r} is not known; use one of {names}, or an elementwise torch function")
    return _of_function(activation)


@cache
def _of_function(function: ElementwiseFunction) -> Activation:
    return Activation(getattr(function, "__name__", repr(function)), function)
