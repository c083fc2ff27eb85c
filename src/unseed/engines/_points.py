"""New points as engines are asked about them, and what was made for them on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from torch import Tensor

T = TypeVar("T")


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
