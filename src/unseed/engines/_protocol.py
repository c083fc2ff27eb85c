"""The two open protocols of training: what an engine answers, and what the networks answer that it has trained.

An engine of your own subclasses `Engine`, and what its `fit` returns subclasses `Trained`; whatever is not overridden has the
answer that is given here. `docs/write-your-own-engine.md` has an example.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NoReturn, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from unseed._findings import Finding
from unseed._resampling import Plan
from unseed._state import Record, State
from unseed.engines._task import NewPoints, Probe, Task
from unseed.errors import NotAvailableError

if TYPE_CHECKING:
    from unseed.engines._cost import Cost

Capability = Literal["influence", "posterior", "seeds", "anchors", "landmarks"]
"""Influence values; the posterior and leave-one-out errors; the law over seeds in closed form; a cut to a few rows."""

NOTHING: frozenset[Capability] = frozenset()
CONVERGED: frozenset[Capability] = frozenset({"influence", "posterior"})
"""What there are formulas for where training has converged on all rows."""


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


class Trained(Protocol):
    """Networks trained on every replicate of a plan."""

    @abstractmethod
    def predict(self, points: NewPoints, replicates: Sequence[int] | None = None) -> Tensor:
        """Predictions of every network, or of those of some replicates. Shape (n_replicates, n_points, n_groups, n_outputs)."""

    @abstractmethod
    def noise_variance(self) -> Tensor:
        """Variance of the labels around the function. Shape (n_outputs,)."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What can be asked beyond predictions and noise."""
        return NOTHING

    @property
    def numbers_per_point(self) -> int:
        """Numbers held for each new point while any question is answered: callers split their points by it."""
        return 4096

    @property
    def numbers_per_prediction(self) -> int:
        """The same where nothing but `predict` is asked for."""
        return self.numbers_per_point

    def handled(self, n_rows: int) -> str:
        """How so many rows were handled, in words."""
        return f"{n_rows:,} rows, all at once"

    def conditions(self, probe: Probe) -> Iterable[Finding]:
        """How what the theory needs stands here."""
        return ()

    def state(self) -> State:
        """What `Engine.restore` needs, beyond rows and plan, to have these networks again."""
        return {}

    def influence(self, points: NewPoints) -> Tensor:
        """Influence of every row on the full-data difference of the groups. Shape (n_rows, n_points, n_outputs)."""
        self._cannot("influence values need a network trained to convergence on all rows")

    def posterior_variance(self, points: NewPoints, minus: NewPoints | None = None) -> Tensor:
        """Variance at points, or of f(x) − f(x') for ``points`` and ``minus``. Shape (n_points, n_outputs).

        The posterior is that of the Gaussian process with the network's tangent kernel, amplitude zᵀA⁻¹z/n.
        """
        self._cannot("a posterior needs a network trained to convergence on all rows")

    def mean_variance(self, points: NewPoints, minus: NewPoints | None = None) -> Tensor:
        """What is added to it where the labels' mean was taken off: (1 − 1ᵀA⁻¹k(x))²/1ᵀA⁻¹1 times the amplitude.

        Whatever of a constant the networks do not fit themselves is as uncertain as that mean, which these labels have given.
        Zero where an engine does not say. Shape (n_points, n_outputs).
        """
        return points.inputs.new_zeros(len(points), 1)

    def missed_variance(self, points: NewPoints) -> Tensor:
        """What of the posterior variance is there for landmarks being few. Shape (n_points, n_outputs)."""
        self._cannot("landmarks are what solver='landmarks' has")

    def posterior_covariance(self, points: NewPoints) -> Tensor:
        """Covariance between points, output by output. Shape (n_outputs, n_points, n_points)."""
        self._cannot("a posterior needs a network trained to convergence on all rows")

    def leave_out(self, rows: Tensor) -> LeftOut:
        """Leave-one-out errors in closed form, α_i/(A⁻¹)_ii."""
        self._cannot("leave-one-out errors need a network trained to convergence on all rows")

    def procedural_variance(self, points: NewPoints) -> Tensor:
        """Variance over seeds of a single network's predictions. Shape (n_points,)."""
        self._cannot("the law over seeds is known in closed form for infinitely wide networks")

    def procedural_covariance(self, points: NewPoints) -> Tensor:
        """Covariance over seeds of a single network's predictions. Shape (n_points, n_points)."""
        self._cannot("the law over seeds is known in closed form for infinitely wide networks")

    def choose_anchors(self, n_anchors: int) -> Tensor:
        """Rows that together say most about all others. Shape (m,), at most ``n_anchors``."""
        self._cannot("a cut to a few rows is for whole models of infinitely wide networks")

    def cut(self, anchors: Tensor, checked: Tensor | None, *, is_rounded: bool) -> Trained:
        """The same functions as nearly as these rows can say them, and what is known of the checked rows."""
        self._cannot("a cut to a few rows is for whole models of infinitely wide networks")

    def _cannot(self, reason: str) -> NoReturn:
        raise NotAvailableError(f"{reason}, and this is {type(self).__name__}")


@runtime_checkable
class Engine(Protocol):
    """A way to train networks: infinitely wide in closed form, linearised, for real, or your own."""

    @property
    @abstractmethod
    def converges(self) -> bool:
        """Whether training goes on to convergence for these settings."""

    @abstractmethod
    def fit(self, task: Task, plan: Plan, *, n_jobs: int | None = None) -> Trained:
        """Train on every replicate of the plan."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What its networks, trained on all rows, can be asked beyond predictions and noise.

        Intervals, ``"auto"`` among them, go by it before anything is trained.
        """
        return NOTHING

    @property
    def is_infinite(self) -> bool:
        """Whether networks have infinite width: a kernel instead of random starts, and no torch module."""
        return False

    def check(self, plan: Plan, device: torch.device, n_jobs: int | None = None) -> None:
        """Refuse a plan that cannot be carried out, before anything else is done for it."""
        return

    def restore(self, record: Record, task: Task, plan: Plan) -> Trained:
        """Networks again from what `Trained.state` has kept; as it stands here, trained again."""
        return self.fit(task, plan)

    def cost(self, task: Task, plan: Plan) -> Cost:
        """Work and memory, before anything is begun; rows and labels of the task may be empty memory."""
        raise NotAvailableError(f"{type(self).__name__} does not say what it takes: give it a method cost(task, plan)")

    def describe(self) -> str:
        """In a few words for a reader: how networks are trained."""
        return f"{type(self).__name__}, an engine of your own"


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

    def conditions(self) -> Iterable[Finding]:
        """Gradients that are left, and networks that missed the tolerance."""
        yield Finding(
            "gradient left, relative to the start's",
            float(self.relative_gradient.max()),
            1e-2,
            "training stopped early: give the trainer more steps, or use trainer=GaussNewton()",
            "Training went on until little was left to gain.",
            "Training stopped before it was finished.",
        )
        if self.wanted:
            yield Finding(
                "networks that did not converge",
                int((~self.converged).sum()),
                1,
                f"{self.unconverged}: widen the network, raise regularization or give the trainer more steps",
                "Every network converged.",
                "Some networks did not converge.",
            )

    def state(self) -> State:
        """Everything."""
        return {**vars(self), "converged": self.converged.astype("uint8")}

    @classmethod
    def restore(cls, record: Record, *shape: int) -> Convergence:
        """From `state`, for so many replicates and groups."""
        return cls(
            record.array("relative_gradient", *shape),
            record.array("loss", *shape),
            record.array("converged", *shape, dtype="uint8").astype(bool),
            record.whole_number("steps"),
            record.fact("wanted", bool),
        )
