"""The one question every engine answers, and the answer's shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from unseed._progress import Progress
from unseed._random import Streams
from unseed._resampling import Plan
from unseed._solvers import Converged, GradientDescent, GradientFlow
from unseed.errors import InvalidInputError
from unseed.losses import Loss, Squared, check_trainable
from unseed.networks import MLP

if TYPE_CHECKING:
    from unseed.engines._cost import Cost

Network = MLP | Callable[[], torch.nn.Module]


@dataclass(frozen=True)
class Task:
    """What to train on.

    Attributes
    ----------
    X : Tensor of shape (n_rows, ...), float64
    labels : Tensor of shape (n_rows, n_groups, n_outputs), float64
        One network is trained per group, all groups of a replicate from the same start: y and s̄ for PNC.
    network : MLP or function that makes a torch module
    regularization : float
        λ_n of the paper's loss.
    streams : Streams
        Where random starts come from.
    progress : Progress
    loss : Loss
        Of a prediction that misses its label, summed over the outputs.
    """

    X: Tensor
    labels: Tensor
    network: Network
    regularization: float
    streams: Streams = field(default_factory=lambda: Streams(0))
    progress: Progress = field(default_factory=Progress)
    loss: Loss = field(default_factory=Squared)

    def as_ridge(self) -> Task:
        """The same problem in squares: a loss V/2 · (f − y)² has the fit of the square with λ over V/2."""
        return replace(self, regularization=self.regularization / (check_trainable(self.loss) / 2), loss=Squared())

    @property
    def contrast(self) -> Tensor:
        """Labels of the first group minus those of the second, where there is one. Shape (n_rows, n_outputs)."""
        return self.labels[:, 0] - self.labels[:, 1] if self.labels.shape[1] > 1 else self.labels[:, 0]


@dataclass(frozen=True)
class Convergence:
    """How training went, network by network.

    Attributes
    ----------
    relative_gradient, loss : array of shape (n_replicates, n_groups)
    converged : array of shape (n_replicates, n_groups), bool
    steps : int
        Of the network that took longest.
    wanted : bool
        Whether the trainer had a tolerance to reach; a fixed number of steps has none.
    """

    relative_gradient: npt.NDArray[np.float64]
    loss: npt.NDArray[np.float64]
    converged: npt.NDArray[np.bool_]
    steps: int
    wanted: bool

    @property
    def unconverged(self) -> str:
        """The networks that missed the tolerance, in words; empty where all reached it."""
        missing = np.argwhere(~self.converged).tolist()
        named = ", ".join(f"{'base' if g == 0 else 'auxiliary'} network of replicate {r}" for r, g in missing[:4])
        return named + (f" and {len(missing) - 4} more" if len(missing) > 4 else "")


class Trained(Protocol):
    """Networks trained on every replicate of a plan."""

    def predict(self, X: Tensor) -> Tensor:
        """Predictions of every network. Shape (n_replicates, n_points, n_groups, n_outputs)."""
        ...

    def influence(self, X: Tensor) -> Tensor:
        """Influence of every row on the full-data difference of the groups. Shape (n_rows, n_points, n_outputs)."""
        ...

    def noise_variance(self) -> Tensor:
        """Variance of the labels around the function. Shape (n_outputs,)."""
        ...

    @property
    def numbers_per_prediction(self) -> int:
        """The same where nothing but `predict` is asked for."""
        ...

    @property
    def numbers_per_point(self) -> int:
        """Numbers held for each new point while it is predicted: callers split their points by it."""
        ...


@dataclass(frozen=True)
class LeftOut:
    """What the network trained on all other rows makes of a row, for some or all of the rows.

    Attributes
    ----------
    rows : Tensor of shape (m,)
    errors : Tensor of shape (m, n_outputs)
        Label minus prediction.
    variance : Tensor of shape (m, n_outputs)
        Posterior variance of the prediction, without noise.
    """

    rows: Tensor
    errors: Tensor
    variance: Tensor


@runtime_checkable
class KnowsPosterior(Protocol):
    """Converged networks with a full-data factorisation: what n rows cannot know of a function of this smoothness.

    The posterior is that of the Gaussian process with the network's tangent kernel, amplitude zᵀA⁻¹z/n.
    """

    def posterior_variance(self, X: Tensor, minus: Tensor | None = None) -> Tensor:
        """Variance at points, or of f(x) − f(x') for points ``X`` and ``minus``. Shape (n_points, n_outputs)."""
        ...

    def posterior_covariance(self, X: Tensor) -> Tensor:
        """Covariance between points, output by output. Shape (n_outputs, n_points, n_points)."""
        ...

    def leave_out(self, rows: Tensor) -> LeftOut:
        """Leave-one-out errors in closed form, α_i/(A⁻¹)_ii."""
        ...


@runtime_checkable
class KnowsOtherSeeds(Protocol):
    """Trained networks whose law over seeds is known in closed form."""

    def procedural_covariance(self, X: Tensor) -> Tensor:
        """Covariance over seeds of a single network's predictions. Shape (n_points, n_points)."""
        ...

    def procedural_variance(self, X: Tensor) -> Tensor:
        """Diagonal of `procedural_covariance`. Shape (n_points,)."""
        ...


class Engine(Protocol):
    """A way to train networks: infinitely wide in closed form, linearised, or for real."""

    @property
    def converges(self) -> bool:
        """Whether `Trained.influence` is defined for these settings: training goes on to convergence."""
        ...

    @property
    def is_infinite(self) -> bool:
        """Whether networks have infinite width: a kernel instead of random starts, and no torch module."""
        ...

    def fit(self, task: Task, plan: Plan, *, n_jobs: int | None) -> Trained:
        """Train on every replicate of the plan."""
        ...

    def cost(self, task: Task, plan: Plan) -> Cost:
        """What that takes, and what it takes to ask the networks; rows and labels of the task may be empty memory."""
        ...


def check_training(engine: str, training: object) -> None:
    """Refuse what is not a way of training in closed form."""
    if not isinstance(training, (Converged, GradientFlow, GradientDescent)):
        raise InvalidInputError(
            f"{engine}(training={training!r}): use Converged(), GradientFlow(time=...) or GradientDescent(steps=..., rate=...)"
        )


def influence_values(residual: Tensor, weights: Tensor) -> Tensor:
    """IF_i(x) = n r_i c_i(x) − Σ_j r_j c_j(x): the paper's theorem on the jackknife with every 1/λ cancelled.

    Parameters
    ----------
    residual : Tensor of shape (n_rows, n_outputs)
    weights : Tensor of shape (n_rows, n_outputs, n_points, n_outputs)
        c(x): how far each label moves each prediction.

    Returns
    -------
    Tensor of shape (n_rows, n_points, n_outputs)
    """
    effect = torch.einsum("ij,ijmk->imk", residual, weights)
    return len(residual) * effect - effect.sum(0)


def pooled_noise(moments: Iterable[tuple[Tensor, float]]) -> Tensor:
    """Noise variance from the summed squares and traces of several fits. Shape (n_outputs,)."""
    squares, traces = zip(*moments, strict=True)
    total = torch.stack(squares).sum(0)
    variance: Tensor = total / max(sum(traces), torch.finfo(total.dtype).tiny)
    return variance
