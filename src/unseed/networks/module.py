"""Any torch module as a batch of networks: the same questions as `MLPBatch`, answered by torch.func."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call, jacrev, vjp, vmap

from unseed.errors import InvalidInputError
from unseed.networks.batch import Evaluation

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
        One of them, for its structure and buffers; in evaluation mode.
    n_outputs : int
    """

    factory: ModuleFactory
    template: torch.nn.Module
    n_outputs: int

    @classmethod
    def of(cls, factory: ModuleFactory, X: Tensor, n_outputs: int, dtype: torch.dtype) -> ModuleBatch:
        """Build a template and try it on a few rows, before anything expensive starts."""
        module = factory()
        if not isinstance(module, torch.nn.Module):
            raise InvalidInputError(f"network must return a torch.nn.Module and returned {type(module).__name__}")
        _check_layers(module)
        template = module.to(device=X.device, dtype=dtype).eval()
        with torch.no_grad():
            outputs = template(X.to(dtype))
        if outputs.shape != (len(X), n_outputs) and not (n_outputs == 1 and outputs.shape == (len(X),)):
            raise InvalidInputError(
                f"the network's output has shape {tuple(outputs.shape)} for {len(X)} rows and {n_outputs} columns of y; "
                f"it must be ({len(X)}, {n_outputs})"
            )
        return cls(factory, template, n_outputs)

    def draw(self, generator: np.random.Generator) -> Tensor:
        """Parameters of a fresh module, its own initialisation under a seed of ours. Shape (p,), float64."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(generator.integers(2**62)))
            module = self.factory()
        return torch.cat([parameter.detach().flatten().double().cpu() for parameter in module.parameters()])

    def outputs(self, parameters: Tensor, X: Tensor) -> Tensor:
        """Outputs of every network. Shape (B, n, k)."""
        with torch.no_grad():
            return torch.stack([self._call(theta, x) for theta, x in zip(parameters, X, strict=True)])

    def evaluate(self, parameters: Tensor, X: Tensor, blur: Tensor | None = None) -> ModuleEvaluation:
        """Outputs and the graph behind them; a module's kinks stay as they are."""
        return ModuleEvaluation(self, parameters, X)

    def cross_kernel(self, parameters: Tensor, X: Tensor, Z: Tensor) -> Tensor:
        """Tangent kernel between two sets of inputs, from Jacobians held a chunk of rows at a time."""
        return torch.stack([self._kernel(theta, x, z) for theta, x, z in zip(parameters, X, Z, strict=True)])

    def _kernel(self, theta: Tensor, x: Tensor, z: Tensor) -> Tensor:
        rows = max(1, _NUMBERS_AT_A_TIME // (2 * self.n_outputs * len(theta)))
        right = torch.split(z, rows)
        kept = [self._jacobian(theta, chunk) for chunk in right] if len(right) == 1 else None
        blocks = []
        for chunk in torch.split(x, rows):
            left = self._jacobian(theta, chunk)
            others = kept or (self._jacobian(theta, other) for other in right)
            blocks.append(torch.cat([left @ other.T for other in others], dim=1))
        return torch.cat(blocks)

    def _jacobian(self, theta: Tensor, x: Tensor) -> Tensor:
        """Per-row gradients of every output. Shape (n·k, p)."""

        def single(parameters: Tensor, row: Tensor) -> Tensor:
            return self._call(parameters, row[None])[0]

        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            jacobian: Tensor = vmap(jacrev(single), in_dims=(None, 0))(theta, x)
        return jacobian.flatten(0, 1).detach()

    def _call(self, theta: Tensor, x: Tensor) -> Tensor:
        named, start = {}, 0
        for name, parameter in self.template.named_parameters():
            named[name] = theta[start : start + parameter.numel()].view(parameter.shape)
            start += parameter.numel()
        outputs: Tensor = functional_call(self.template, named, (x,))
        return outputs.reshape(len(x), self.n_outputs)


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

    def blur_since(self, before: Evaluation) -> Tensor | None:
        """Nothing is known of a module's kinks."""
        return None

    def tangent_kernel(self) -> Tensor:
        """J Jᵀ. Shape (B, n·k, n·k)."""
        return self.batch.cross_kernel(self.parameters, self.X, self.X)


def _check_layers(module: torch.nn.Module) -> None:
    for name, layer in module.named_modules():
        if isinstance(layer, torch.nn.modules.batchnorm._BatchNorm):
            raise InvalidInputError(
                f"the network's layer {name!r} is {type(layer).__name__}, which makes a row's prediction depend on the other "
                "rows of its batch; use LayerNorm or GroupNorm"
            )
    dropped = [n for n, layer in module.named_modules() if isinstance(layer, torch.nn.modules.dropout._DropoutNd) and layer.p]
    if dropped:
        warnings.warn(
            f"dropout in {', '.join(map(repr, dropped))} is switched off: noise inside training is not part of the theory; "
            "remove it, or use MCDropoutRegressor",
            UserWarning,
            stacklevel=4,
        )
