"""What a loss is: a few functions of a prediction f and a label y, and the questions that training asks of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Protocol, runtime_checkable

import torch
from torch import Tensor

from unseed._findings import Finding
from unseed.errors import InvalidInputError

_PROBES = (-2.0, -0.5, 0.0, 1.0, 3.0)


@runtime_checkable
class Loss(Protocol):
    """What a prediction f costs where the label is y, minus the log-likelihood of y up to a factor and a constant.

    All functions are elementwise, on tensors of one shape and any dtype. A class that inherits from this one need only name
    itself and give value, gradient and curvature: what else it does not say is that of a loss for numbers on the real line,
    where f is what is expected of y.

    Attributes
    ----------
    name : str
    dispersion : float or None
        φ of the law exp(−ℓ/φ) of y, where it is known, as it is for classes and counts; None has it estimated.
    is_joint : bool
        Whether the outputs of a row are one f, whose curvature is a matrix; only `Softmax`.

    Examples
    --------
    >>> class LogCosh(Loss):
    ...     name = "log_cosh"
    ...
    ...     def value(self, f, y):
    ...         return torch.nn.functional.softplus(2 * (f - y)) - (f - y)
    ...
    ...     def gradient(self, f, y):
    ...         return torch.tanh(f - y)
    ...
    ...     def curvature(self, f, y):
    ...         return 1 - torch.tanh(f - y) ** 2
    >>> isinstance(LogCosh(), Loss)
    True
    """

    name: ClassVar[str]
    dispersion: ClassVar[float | None] = None
    is_joint: ClassVar[bool] = False

    def value(self, f: Tensor, y: Tensor) -> Tensor:
        """ℓ(f, y)."""

    def gradient(self, f: Tensor, y: Tensor) -> Tensor:
        """∂ℓ/∂f."""

    def curvature(self, f: Tensor, y: Tensor) -> Tensor:
        """∂²ℓ/∂f², nowhere negative."""

    def majorant(self, f: Tensor, y: Tensor) -> Tensor:
        """Curvature of a parabola that touches the loss at f and lies nowhere below it, where there is one: a safe step."""
        return self.curvature(f, y)

    def link(self, mean: Tensor) -> Tensor:
        """The f whose labels have this mean."""
        return mean

    def inverse_link(self, f: Tensor) -> Tensor:
        """What is expected of y at f."""
        return f

    def law(self, f: Tensor, dispersion: Tensor) -> torch.distributions.Distribution:
        """Law of y at f; the dispersion is its variance where it is normal."""
        return torch.distributions.Normal(f, dispersion.sqrt())

    def legal(self, labels: Tensor) -> Tensor:
        """Which labels the law can have, as booleans."""
        return torch.isfinite(labels)

    def log_normaliser(self, labels: Tensor, dispersion: Tensor) -> Tensor:
        """What is added to −ℓ/φ in the logarithm of the law's density: here of a law of y − f, by quadrature."""
        t = torch.sinh(torch.linspace(-14, 14, 4001, dtype=torch.float64, device=labels.device)) * 1e-3
        values = self.value(torch.zeros_like(t), t) - self.value(t[:1] * 0, t[:1] * 0)
        density = torch.exp(-values / dispersion[..., None]) * torch.sqrt(t * t + 1e-6) * (28 / 4000)
        return -(density.sum(-1).log() - self.value(t[0] * 0, t[0] * 0) / dispersion).expand(labels.shape)

    def scaled(self, residuals: Tensor) -> Loss:
        """The loss with a scale of its own, where it has one, set by labels minus predictions."""
        return self

    def rescaled(self, unit: float) -> Loss | None:
        """The loss of labels and predictions that were divided by a unit, up to a factor; None where there is none."""
        return None

    def report(self) -> Iterable[Finding]:
        """What a diagnosis should say of it."""
        return ()

    def start(self, labels: Tensor, weights: Tensor) -> Tensor:
        """The best constant f for labels (n, k) that count ``weights`` (n,). Shape (k,)."""
        return self.link((weights @ labels) / weights.sum())


def newton_step(loss: Loss, f: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Weights V/2 and steps −u/V, with u and V the gradient and curvature of the loss at f.

    The squares with these weights around the working labels f − u/V agree with the loss to second order: one step of
    Newton's is one ridge.

    Examples
    --------
    >>> from unseed.losses import Squared
    >>> newton_step(Squared(), torch.tensor([1.0]), torch.tensor([3.0]))
    (tensor([1.]), tensor([2.]))
    """
    curvature = loss.curvature(f, y)
    return curvature / 2, -loss.gradient(f, y) / curvature


def constant_curvature(loss: Loss) -> float | None:
    """V of a loss that is V/2 · (f − y)² up to a constant; None for any other."""
    probes = torch.tensor(_PROBES, dtype=torch.float64)
    f, y = torch.cartesian_prod(probes, probes).T
    f, y = f[loss.legal(y)], y[loss.legal(y)]
    curvature = loss.curvature(f, y)
    first = float(curvature[0]) if len(curvature) else 0.0
    if not 0 < first < float("inf"):
        return None
    agree = (
        torch.allclose(curvature, torch.full_like(curvature, first), rtol=1e-9),
        torch.allclose(loss.gradient(f, y), first * (f - y), rtol=1e-9, atol=1e-9 * first),
        torch.allclose(loss.value(f, y) - loss.value(y, y), first / 2 * (f - y) ** 2, rtol=1e-9, atol=1e-9 * first),
    )
    return first if all(agree) else None


def is_bent(loss: Loss) -> bool:
    """Whether its curvature is not the same everywhere, so that networks are trained in several steps."""
    return loss.is_joint or constant_curvature(loss) is None


def check_trainable(loss: Loss) -> float:
    """Return the curvature of a loss that one solve can train; refuse any other."""
    curvature = constant_curvature(loss)
    if curvature is None:
        raise InvalidInputError(
            f"loss={loss.name!r} is not a constant times (f - y)², and here networks are trained in one solve, which needs a "
            "constant curvature; use engine='kernel', solver='exact' and training=Converged(), or loss='squared'"
        )
    return curvature


def is_location(loss: Loss) -> bool:
    """Whether f and y live on one scale, the real line: the link is the identity."""
    probes = torch.tensor(_PROBES, dtype=torch.float64)
    return not loss.is_joint and bool(loss.legal(probes).all()) and torch.equal(loss.inverse_link(probes), probes)


def check_curvature(loss: Loss) -> None:
    """Refuse a loss that bends the wrong way somewhere, by the first f and y where it does."""
    if loss.is_joint:
        return
    probes = torch.cat([torch.linspace(-4, 4, 33, dtype=torch.float64), torch.tensor(_PROBES, dtype=torch.float64)])
    f, y = torch.cartesian_prod(probes, torch.tensor([0.0, 0.25, 1.0, 2.0, -1.5], dtype=torch.float64)).T
    f, y = f[loss.legal(y)], y[loss.legal(y)]
    found = loss.curvature(f, y)
    wrong = ~(found >= 0)
    if bool(wrong.any()):
        at = int(wrong.nonzero()[0])
        raise InvalidInputError(
            f"loss={loss.name!r} has the curvature {float(found[at]):g} at f={float(f[at]):g}, y={float(y[at]):g}; a loss "
            "must be convex in f, with a curvature that is nowhere negative"
        )


def check_labels(loss: Loss, labels: Tensor) -> None:
    """Refuse labels that the loss cannot have, by the first of them."""
    illegal = ~loss.legal(labels)
    if bool(illegal.any()):
        first = illegal.nonzero()[0].tolist()
        raise InvalidInputError(
            f"loss={loss.name!r} cannot have the label {float(labels[tuple(first)]):g} (row {first[0]} of y)"
        )


def logistic_majorant(x: Tensor) -> Tensor:
    """Curvature of the parabola above log(1 + exp x) that touches it at x: tanh(x/2)/2x."""
    size = x.abs().clamp_min(1e-6)
    return torch.tanh(size / 2) / (2 * size)


def weighted_quantile(labels: Tensor, weights: Tensor, level: float) -> Tensor:
    """Smallest of the labels (n, k) below or at which that share of the weights (n,) lies. Shape (k,)."""
    ordered, places = labels.sort(0)
    shares = weights[places].cumsum(0) / weights.sum()
    first = (shares < level - 1e-12).sum(0).clamp_max(len(labels) - 1)
    return ordered.gather(0, first[None])[0]
