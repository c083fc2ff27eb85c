"""The population NNGP and NTK by the layer recursion of the paper's appendix on the neural tangent kernel.

With w² the weight variance, b² the squared bias scale and [·] present for normally started biases only,

    Σ¹ = w² x·z + [b²]                      Θ¹ = w² x·z + b²
    Σˡ⁺¹ = w² c_σ E[σ(u)σ(v)] + [b²]        Θˡ⁺¹ = w² c_σ E[σ(u)σ(v)] + b² + w² c_σ E[σ'(u)σ'(v)] Θˡ

for (u, v) ~ N(0, Σˡ). Σ of the output layer is the NNGP, Θ the NTK.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from unseed._expectations import Expectations, Points
from unseed._expectations._pairs import Angles, first_layer_angles, next_layer_angles, outer, relative_gap
from unseed._expectations._scratch import Scratch
from unseed.errors import InvalidInputError
from unseed.networks import ACTIVATIONS, MLP, resolve_activation

Kind = Literal["ntk", "nngp"]


class KernelValues(NamedTuple):
    """NNGP and NTK of points with themselves."""

    nngp: Tensor
    ntk: Tensor


@dataclass(frozen=True)
class Profile:
    """All that depends on one point at a time, for a set of points: computed once, sliced by blocks.

    Attributes
    ----------
    directions : Tensor of shape (n, d) or (n, d + 1)
        Unit vectors of the first layer's pre-activations (the zero vector where the variance is zero).
    layers : tuple of Points
        One entry per hidden layer.
    diagonal : KernelValues of shape (n,)
        The kernels of each point with itself.
    """

    directions: Tensor
    layers: tuple[Points, ...]
    diagonal: KernelValues

    @property
    def is_stack(self) -> bool:
        """Whether these are several sets of points, of one size."""
        return self.directions.ndim == 3

    def __len__(self) -> int:
        return len(self.directions)

    def __getitem__(self, rows: slice | Tensor) -> Profile:
        return self._mapped(itemgetter(rows))

    def gathered(self, rows: Tensor) -> Profile:
        """Some points of every set of a stack, several times: (n_sets, k, m) places make n_sets · k sets of m points."""
        sets = torch.arange(len(rows), device=rows.device)[:, None, None]
        return self._mapped(lambda values: values[sets, rows].flatten(0, 1))

    def _mapped(self, function: Callable[[Tensor], Tensor]) -> Profile:
        layers = tuple(layer.mapped(function) for layer in self.layers)
        return Profile(function(self.directions), layers, KernelValues(*map(function, self.diagonal)))


def expectations_of(network: MLP) -> Expectations:
    """Gaussian moments of the network's activation."""
    activation = resolve_activation(network.activation)
    return activation.expectations_of_scaled if network.scale_inputs else activation.expectations


def profile(network: MLP, X: Tensor) -> Profile:
    """Everything the recursion needs of each row of X alone; of a stack of data sets, (n_sets, n, d), as a stack."""
    if X.ndim == 3:
        return profile(network, X.flatten(0, 1))._mapped(lambda values: values.reshape(*X.shape[:2], *values.shape[1:]))
    moments, w2, b2, start_b2 = _constants(network)
    inputs = X * torch.tensor(network.first_layer_factors(X.shape[1]), dtype=X.dtype, device=X.device)
    if start_b2 > 0:
        inputs = torch.cat([inputs, inputs.new_full((len(X), 1), network.bias_scale)], dim=1)
    length = torch.linalg.vector_norm(inputs, dim=1)
    directions = inputs / length.clamp_min(torch.finfo(X.dtype).tiny)[:, None]
    variance = length.square()
    ntk = variance + (b2 - start_b2)
    layers: list[Points] = []
    for _ in range(network.depth):
        layers.append(moments.points(variance))
        variance = w2 * layers[-1].power + start_b2
        ntk = w2 * layers[-1].power + b2 + w2 * layers[-1].slope * ntk
    if not bool(torch.isfinite(ntk).all()):
        raise InvalidInputError("the inputs are too large for float64 kernels; use standardize=True or scale the features")
    return Profile(directions, tuple(layers), KernelValues(variance, ntk))


def pairs(
    network: MLP,
    left: Profile,
    right: Profile,
    kind: Kind,
    scratch: Scratch | None = None,
    *,
    right_ends_with_left: bool = False,
) -> Tensor:
    """One of the kernels at every pair. Shape (..., n, m), in scratch memory where there is some.

    Where the points on the right end with those on the left, each of them with itself has its value from the profile.
    """
    scratch = scratch or Scratch()
    moments, w2, b2, _ = _constants(network)
    same = right.directions.shape[-2] - left.directions.shape[-2] if right_ends_with_left else None
    angles = first_layer_angles(left.directions, right.directions, scratch, same=same)
    if moments.shallow_tangent is not None and is_shallow(network, kind):
        values = moments.shallow_tangent(left.layers[0], right.layers[0], angles, scratch, w2).add_(b2)
    else:
        values = _through_layers(network, left, right, kind, angles, scratch)
    if same is not None:
        values.diagonal(same, dim1=-2, dim2=-1).copy_(getattr(left.diagonal, kind))
    return values


def is_shallow(network: MLP, kind: Kind) -> bool:
    """Whether this is the tangent kernel of one hidden layer, biases the same for both of its parts."""
    return kind == "ntk" and network.depth == 1 and network.bias_scale**2 == network.initial_bias_variance


def _through_layers(network: MLP, left: Profile, right: Profile, kind: Kind, angles: Angles, scratch: Scratch) -> Tensor:
    expectations, w2, b2, start_b2 = _constants(network)
    root, other_root = outer(left.layers[0].variance.sqrt(), right.layers[0].variance.sqrt())
    values = torch.mul(angles.cosine, root, out=scratch.take(root, angles.cosine.shape)).mul_(other_root)
    if b2 != start_b2:
        values.add_(b2 - start_b2)
    for layer, (here, there) in enumerate(zip(left.layers, right.layers, strict=True), start=1):
        is_last = layer == network.depth
        value, derivative, gap = expectations.pairs(here, there, angles, scratch, is_last=is_last)
        if gap is None and not is_last:
            gap = relative_gap(value, here.power, there.power, scratch)
        # Θ ← w² (value + derivative · Θ) + b²
        values = values.mul_(derivative).add_(value) if kind == "ntk" else value
        if w2 != 1:
            values.mul_(w2)
        if bias := b2 if kind == "ntk" else start_b2:
            values.add_(bias)
        if gap is not None:
            angles = next_layer_angles(gap, here.power, there.power, w2, start_b2, scratch)
            scratch.keep_only(values, angles.cosine, angles.sine)
    return values


def _constants(network: MLP) -> tuple[Expectations, float, float, float]:
    """Moments of the activation, w², b² and what of b² is there at the start."""
    return expectations_of(network), network.weight_std**2, network.bias_scale**2, network.initial_bias_variance


def ntk_of_scales(
    X: Tensor,
    input_scale: Tensor,
    weight_std: Tensor,
    bias_scale: Tensor,
    activation: str,
    depth: int,
    rows: slice = slice(None),
) -> Tensor:
    """NTK of some rows of X and all, biases started from N(0, 1), as a function of scales to be differentiated.

    ``input_scale`` is the relevance of every feature, (d,), or one for all, (1,). Nearly parallel points lose the digits that
    `pairs` takes pains to keep; a criterion does not need them.
    """
    moments = resolve_activation(activation).expectations.of_covariance
    if moments is None:
        able = tuple(one.name for one in ACTIVATIONS if one.expectations.of_covariance is not None)
        raise InvalidInputError(f"activation={activation!r} has no differentiable kernel; use one of {able}")
    scaled = X * input_scale
    covariance = weight_std**2 * (scaled[rows] @ scaled.T) + bias_scale**2
    is_square = len(covariance) == len(X)
    variance = covariance.diagonal() if is_square else weight_std**2 * scaled.square().sum(1) + bias_scale**2
    same = torch.eye(len(X), dtype=torch.bool, device=X.device) if is_square else _same(rows, X)
    tangent = covariance
    for _ in range(depth):
        value, derivative = moments(covariance, variance[rows, None], variance[None, :], same)
        covariance = weight_std**2 * value + bias_scale**2
        tangent = covariance + weight_std**2 * derivative * tangent
        if is_square:
            variance = covariance.diagonal()
        else:
            own, _ = moments(variance, variance, variance, torch.ones_like(variance, dtype=torch.bool))
            variance = weight_std**2 * own + bias_scale**2
    return tangent


def _same(rows: slice, X: Tensor) -> Tensor:
    """Where a row meets itself. Shape (n_rows, n)."""
    places = torch.arange(len(X), device=X.device)
    return places[rows, None] == places
