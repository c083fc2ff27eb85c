"""Finite networks, made anew or again from what was saved; any torch module as a batch of them, by torch.func."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call, jacrev, vjp, vmap

from unseed._state import Record
from unseed.errors import InvalidInputError, ModelFileError
from unseed.networks._mlp import MLP, MLPBatch, MLPEvaluation

WIDTH_PER_ROW = 32  # the paper's choice
_NUMBERS_AT_A_TIME = 1 << 26  # entries of a Jacobian held at once: 512 MB in float64
ModuleFactory = Callable[[], torch.nn.Module]


@dataclass(frozen=True)
class ModuleBatch:
    """Networks made by a user's function, with their own initialisation.

    Attributes
    ----------
    factory : callable
        Makes a freshly initialised module.
    template : torch.nn.Module
        One of them, for its structure and constants; in evaluation mode.
    n_outputs : int
    """

    width = None  # a module's layers are its own,
    activations_per_row = 0  # not known,
    is_explicit = False  # and Jacobians are passes of automatic differentiation, row by row

    factory: ModuleFactory
    template: torch.nn.Module
    n_outputs: int

    @classmethod
    def of(cls, factory: ModuleFactory, X: Tensor, n_outputs: int) -> ModuleBatch:
        """Build a template and try it on two rows, before anything expensive starts."""
        first, second = (_make(factory, seed) for seed in (0, 1))
        _check_module(first, second)
        rows, batch = X[:2], cls(factory, copy.deepcopy(first).to(X.device).eval(), n_outputs)
        start = torch.cat([parameter.detach().flatten() for parameter in _trained(batch.template)]).to(X)
        try:
            with torch.no_grad():
                outputs, again, alone = (batch._outputs(start, some) for some in (rows, rows, rows[:1]))
        except Exception as error:
            raise InvalidInputError(
                f"the network failed on an input of shape {tuple(rows.shape)}: {error}. Inputs are {X.dtype} and standardised "
                "unless standardize=False"
            ) from error
        if not isinstance(outputs, Tensor) or outputs.shape not in ((len(rows), n_outputs), (len(rows),) * (n_outputs == 1)):
            shape = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
            raise InvalidInputError(
                f"the network's output has shape {shape} for {len(rows)} rows and {n_outputs} columns of y; "
                f"it must be ({len(rows)}, {n_outputs})"
            )
        if not torch.equal(outputs, again) or not torch.allclose(outputs[:1], alone, rtol=1e-3, atol=1e-4):
            raise InvalidInputError(
                "the network's prediction of a row is random or depends on the other rows of its batch; remove what makes it so"
            )
        return batch

    @property
    def n_parameters(self) -> int:
        """Numbers that are trained."""
        return sum(parameter.numel() for parameter in _trained(self.template))

    @property
    def numbers_per_row(self) -> int:
        """Taken to be no more than its parameters."""
        return self.n_parameters

    def resized(self, width: int) -> ModuleBatch:
        """Not possible."""
        raise InvalidInputError(f"width={width} belongs to an MLP; a torch module has its own")

    def draw(self, generator: np.random.Generator) -> Tensor:
        """Parameters of a fresh module, its own initialisation under a seed of ours. Shape (p,), float64."""
        module = _make(self.factory, int(generator.integers(2**62)))
        return torch.cat([parameter.detach().flatten().double().cpu() for parameter in _trained(module)])

    def outputs(self, parameters: Tensor, X: Tensor) -> Tensor:
        """Outputs of every network. Shape (B, n, k)."""
        with torch.no_grad():
            return torch.stack([self._call(theta, x) for theta, x in zip(parameters, X, strict=True)])

    def evaluate(self, parameters: Tensor, X: Tensor, blur: Tensor | None = None) -> ModuleEvaluation:
        """Outputs and the graph behind them; a module's kinks stay as they are."""
        return ModuleEvaluation(self, parameters, X)

    def cross_kernel(self, parameters: Tensor, X: Tensor, Z: Tensor) -> Tensor:
        """Tangent kernel between two sets of inputs, from Jacobians held a chunk of rows at a time."""
        return torch.stack([self._kernel(theta, x, x if X is Z else z) for theta, x, z in zip(parameters, X, Z, strict=True)])

    def _kernel(self, theta: Tensor, x: Tensor, z: Tensor) -> Tensor:
        rows = max(1, _NUMBERS_AT_A_TIME // (2 * self.n_outputs * len(theta)))
        if x is z and len(x) <= rows:
            jacobian = self.jacobian(theta, x)
            return jacobian @ jacobian.T
        kept = [self.jacobian(theta, z)] if len(z) <= rows else None
        strips = []
        for left in (self.jacobian(theta, chunk) for chunk in torch.split(x, rows)):
            others = kept or (self.jacobian(theta, chunk) for chunk in torch.split(z, rows))
            strips.append(torch.cat([left @ other.T for other in others], dim=1))
        return torch.cat(strips)

    def jacobian(self, parameters: Tensor, X: Tensor) -> Tensor:
        """Per-row gradients of every output. Shape (n·k, p)."""

        def single(theta: Tensor, row: Tensor) -> Tensor:
            return self._call(theta, row[None])[0]

        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            jacobian: Tensor = vmap(jacrev(single), in_dims=(None, 0))(parameters, X)
        return jacobian.flatten(0, 1).detach()

    def _call(self, theta: Tensor, x: Tensor) -> Tensor:
        return self._outputs(theta, x).reshape(len(x), self.n_outputs)

    def _outputs(self, theta: Tensor, x: Tensor) -> Tensor:
        """What the module returns: its constants are the template's, in the type of the parameters."""
        constants = {
            name: values.to(theta.device, theta.dtype)
            for name, values in _constants(self.template).items()
            if values.is_floating_point()
        }
        named = {name: values for name, values in self.template.named_parameters() if values.requires_grad}
        parts = torch.split(theta, [values.numel() for values in named.values()])
        trained = {name: part.view(values.shape) for (name, values), part in zip(named.items(), parts, strict=True)}
        outputs: Tensor = functional_call(self.template, constants | trained, (x,))
        return outputs


@dataclass(frozen=True)
class ModuleEvaluation:
    """Modules at their inputs; every question is answered by a pass of automatic differentiation."""

    batch: ModuleBatch
    parameters: Tensor
    X: Tensor

    @property
    def outputs(self) -> Tensor:
        """Shape (B, n, k)."""
        return self.batch.outputs(self.parameters, self.X)

    def pull(self, weights: Tensor) -> Tensor:
        """Backpropagation of output weights. Shape (B, p)."""
        gradients = []
        for theta, x, weight in zip(self.parameters, self.X, weights, strict=True):
            leaf = theta.detach().requires_grad_()
            with torch.enable_grad():
                outputs = self.batch._call(leaf, x)
            (gradient,) = torch.autograd.grad(outputs, leaf, weight)
            gradients.append(gradient)
        return torch.stack(gradients)

    def push(self, directions: Tensor) -> Tensor:
        """J v as the derivative of ⟨Jᵀu, v⟩ in u: reverse mode twice, which every layer supports. Shape (B, n, k)."""
        tangents = []
        for theta, x, direction in zip(self.parameters, self.X, directions, strict=True):
            with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
                outputs, pull = vjp(lambda parameters, rows=x: self.batch._call(parameters, rows), theta)  # type: ignore[misc]
                _, push = vjp(lambda weights, pull=pull: pull(weights)[0], torch.zeros_like(outputs))  # type: ignore[misc]
                tangents.append(push(direction)[0].detach())
        return torch.stack(tangents)

    def blur_since(self, before: object) -> None:
        """Nothing is known of a module's kinks."""

    def tangent_kernel(self) -> Tensor:
        """J Jᵀ. Shape (B, n·k, n·k)."""
        return self.batch.cross_kernel(self.parameters, self.X, self.X)


def _make(factory: ModuleFactory, seed: int) -> torch.nn.Module:
    """Call the user's function under a seed of ours, leaving torch's own random state alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            module = factory()
        except TypeError as error:
            raise InvalidInputError(f"network could not be called without arguments: {error}") from error
    if not isinstance(module, torch.nn.Module):
        raise InvalidInputError(f"network must return a torch.nn.Module and returned {type(module).__name__}")
    return module


def _trained(module: torch.nn.Module) -> list[torch.nn.Parameter]:
    return [parameter for parameter in module.parameters() if parameter.requires_grad]


def _constants(module: torch.nn.Module) -> dict[str, Tensor]:
    """Buffers and frozen parameters."""
    return dict(module.named_buffers()) | {name: p for name, p in module.named_parameters() if not p.requires_grad}


def _check_module(module: torch.nn.Module, other: torch.nn.Module) -> None:
    """Refuse what the theory or the engines cannot deal with."""
    if module is other:
        raise InvalidInputError("network returns the same module every time; it must make a new one, with a start of its own")
    if not _trained(module):
        raise InvalidInputError("the network has no parameters to train")
    for name, layer in module.named_modules():
        if isinstance(layer, torch.nn.modules.batchnorm._BatchNorm):
            raise InvalidInputError(
                f"the network's layer {name!r} is {type(layer).__name__}, which makes a row's prediction depend on the other "
                "rows of its batch; use LayerNorm or GroupNorm"
            )
    others = _constants(other)
    for name, values in _constants(module).items():
        if not torch.equal(values, others[name]):
            raise InvalidInputError(
                f"the network's constant {name!r} (a buffer or a frozen parameter) is drawn anew for every module; fix its "
                "values, or make it a parameter that is trained"
            )
    dropped = [
        name
        for name, layer in module.named_modules()
        if (isinstance(layer, torch.nn.modules.dropout._DropoutNd) and layer.p)
        or (isinstance(layer, torch.nn.MultiheadAttention) and layer.dropout)
    ]
    if dropped:
        warnings.warn(
            f"dropout in {', '.join(map(repr, dropped))} is switched off: noise inside training is not part of the theory; "
            "remove it, or use MCDropoutRegressor",
            UserWarning,
            stacklevel=4,
        )


Network = MLP | ModuleFactory
NetworkBatch = MLPBatch | ModuleBatch
"""Many networks of one architecture, which answer the same questions: that is all that trainers and engines know of them."""

Evaluation = MLPEvaluation | ModuleEvaluation
"""Networks at their inputs, ready for first-order questions. J is the Jacobian in the parameters."""


def make_batch(network: Network, X: Tensor, n_outputs: int, width: int | None = None) -> NetworkBatch:
    """Finite networks for rows such as these.

    Parameters
    ----------
    network : MLP or callable
        An architecture, or a function that makes a torch module.
    X : Tensor of shape (n_rows, ...)
        A module is tried on two of them.
    n_outputs : int
    width : int or None
        Of hidden layers; None takes the network's own, or 32 per row. A module has its own.

    Examples
    --------
    >>> make_batch(MLP(), torch.zeros(10, 3), n_outputs=1).n_parameters
    1280
    """
    if isinstance(network, MLP):
        return MLPBatch(network, X.shape[1], n_outputs, width or network.width or WIDTH_PER_ROW * len(X))
    batch = ModuleBatch.of(network, X[:2], n_outputs)
    return batch if width is None else batch.resized(width)


def restore_batch(record: Record, network: Network, X: Tensor, n_outputs: int, n_parameters: int | None = None) -> NetworkBatch:
    """Finite networks whose width was recorded; ``network`` is its description, or the function given again.

    What was saved has ``n_parameters`` numbers for each, where that is known.
    """
    if isinstance(network, MLP):
        if X.ndim != 2:
            raise record.fault(f"an MLP cannot have rows of shape {tuple(X.shape[1:])}")
        of_ours = MLPBatch(network, X.shape[1], n_outputs, record.whole_number("width", at_least=1))
        if n_parameters not in (None, of_ours.n_parameters):
            raise record.fault(f"{n_parameters:,} parameters for a network that has {of_ours.n_parameters:,}")
        return of_ours
    batch = ModuleBatch.of(network, X[:2], n_outputs)
    if n_parameters not in (None, batch.n_parameters):
        raise ModelFileError(
            f"{record.source}: the network given to load has {batch.n_parameters:,} parameters and the saved one had "
            f"{n_parameters:,}; give the function that the model was fitted with"
        )
    return batch
