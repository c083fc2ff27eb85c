"""What an engine is given: rows, labels, network, λ and loss; and what its networks are asked about, new points."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from unseed._progress import Progress
from unseed._random import Streams
from unseed._resampling import Plan
from unseed._state import Record, State
from unseed.losses import Loss, Squared, check_trainable
from unseed.networks import MLP, Network

T = TypeVar("T")


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
    weights : Tensor of shape (n_rows,), optional
        How much each row counts, beside the plan's counts, for a loss that bends.
    """

    X: Tensor
    labels: Tensor
    network: Network
    regularization: float
    streams: Streams = field(default_factory=lambda: Streams(0))
    progress: Progress = field(default_factory=Progress)
    loss: Loss = field(default_factory=Squared)
    weights: Tensor | None = None

    def as_ridge(self) -> Task:
        """The same problem in squares: a loss V/2 · (f − y)² has the fit of the square with λ over V/2."""
        return replace(self, regularization=self.regularization / (check_trainable(self.loss) / 2), loss=Squared())

    @property
    def difference(self) -> Tensor:
        """Labels of the first group minus those of the second, where there is one. Shape (n_rows, n_outputs)."""
        return between_groups(self.labels)

    def state(self) -> State:
        """Rows and labels as the network saw them, and the seed of its random streams."""
        weights = {} if self.weights is None else {"weights": self.weights}
        return {"inputs": self.X, **state_of_groups("labels", self.labels), "seed": self.streams.seed, **weights}

    @classmethod
    def restore(
        cls, record: Record, n_groups: int, network: Network, regularization: float, loss: Loss, device: torch.device
    ) -> Task:
        """From `state`, for the network, λ and loss that the model's options name."""
        inputs = record.tensor("inputs", device, *[None] * len(record.shape("inputs")))
        labels = restore_groups(record, "labels", (len(inputs), n_groups, record.shape("labels_base")[-1]), device)
        weights = record.tensor("weights", device, len(inputs)) if record.has("weights") else None
        return cls(inputs, labels, network, regularization, Streams(record.whole_number("seed")), loss=loss, weights=weights)


@dataclass(frozen=True)
class NewPoints:
    """A chunk of new points; what one question has made for them (a profile, a cross-kernel) the next one finds.

    Attributes
    ----------
    inputs : Tensor of shape (n_points, ...)
        In the network's units.
    is_shared : bool
        Whether several questions come, so that it pays to hold a whole cross-kernel: one prediction alone goes by without.

    Examples
    --------
    >>> import torch
    >>> points = NewPoints(torch.zeros(3, 2))
    >>> points.once(points, "sum", lambda: float(points.inputs.sum()))
    0.0
    """

    inputs: Tensor
    is_shared: bool = False
    _made: dict[tuple[int, str], tuple[object, Any]] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.inputs)

    def once(self, owner: object, name: str, make: Callable[[], T]) -> T:
        """What `make` returns, from the first time that this owner asked for it under this name.

        The owner is held with it, so that nobody else can have its identity meanwhile.
        """
        key = id(owner), name
        if key not in self._made:
            self._made[key] = owner, make()
        found: T = self._made[key][1]
        return found


@dataclass(frozen=True)
class Probe:
    """Points at which `Trained.conditions` may look, and the measure of what matters there.

    Attributes
    ----------
    points : NewPoints
    in_half_widths : function of a Tensor of shape (n_points, n_outputs)
        Mean size of differences of predictions, in half widths of the 95 % interval.
    """

    points: NewPoints
    in_half_widths: Callable[[Tensor], float]


def between_groups(values: Tensor) -> Tensor:
    """First group minus the second, where there is one: values (n, n_groups, k). Shape (n, k)."""
    return values[:, 0] - values[:, 1] if values.shape[1] > 1 else values[:, 0]


def state_of_groups(name: str, values: Tensor) -> State:
    """Values (n, n_groups, k) group by group; the auxiliary network's are left out where they are zero, as they mostly are."""
    state: State = {f"{name}_base": values[:, 0]}
    if values.shape[1] > 1 and bool(values[:, 1].any()):
        state[f"{name}_auxiliary"] = values[:, 1]
    return state


def restore_groups(record: Record, name: str, shape: tuple[int, int, int], device: torch.device) -> Tensor:
    """From `state_of_groups`. Shape (n, n_groups, k)."""
    n, n_groups, k = shape
    parts = [record.tensor(f"{name}_base", device, n, k)]
    if n_groups == 2:
        auxiliary = f"{name}_auxiliary"
        parts.append(record.tensor(auxiliary, device, n, k) if record.has(auxiliary) else torch.zeros_like(parts[0]))
    return torch.stack(parts, dim=1)


def check_kept(record: Record, kind: str, task: Task, engine: object) -> None:
    """Refuse what another engine has kept, and rows that are not there or are none of the network's."""
    if record.fact("kind", str) != kind:
        raise record.fault(f"networks of kind {record.fact('kind', str)!r:.60} do not go with {engine}")
    if not len(task.X) and kind != "anchors":
        raise record.fault("rows are missing")
    scale = task.network.input_scale if isinstance(task.network, MLP) else None
    if scale is not None and (len(scale),) != task.X.shape[1:]:
        raise record.fault(f"input_scale has {len(scale)} entries for rows of shape {tuple(task.X.shape[1:])}")


def rows_of(plan: Plan, device: torch.device, replicates: Sequence[int] | None = None) -> list[Tensor]:
    """Distinct rows of every replicate, or of some."""
    counts = plan.counts if replicates is None else plan.counts[list(replicates)]
    return [torch.from_numpy(own.nonzero()[0]).to(device) for own in counts]


def state_of_duals(duals: Iterable[Tensor]) -> State:
    """Dual weights of every replicate, each of its own rows (n_r, n_groups, k), one after the other."""
    return state_of_groups("dual", torch.cat(list(duals)))


def restore_duals(record: Record, task: Task, lengths: Sequence[int]) -> list[Tensor]:
    """From `state_of_duals`, for replicates of so many rows."""
    _, n_groups, k = task.labels.shape
    packed = restore_groups(record, "dual", (sum(lengths), n_groups, k), task.X.device)
    return list(torch.split(packed, list(lengths)))
