"""How long something takes while every core is busy, and how that grows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from unseed._threads import on_all_cores
from unseed.engines._trials import seconds_of

_AT_ONCE = 4  # matrices of a trial, at most


def busy_seconds(function: Callable[[Tensor], object], matrix: Tensor, repetitions: int = 3) -> float:
    """Seconds of one when every core is busy with one of its own; the function may overwrite what it is given."""
    device = matrix.device
    cores = torch.get_num_threads() if device.type == "cpu" else 1
    at_once = min(cores, _AT_ONCE)
    times = []
    for _ in range(repetitions):
        matrices = [matrix.clone() for _ in range(at_once)]
        times.append(seconds_of(lambda: on_all_cores(function, matrices, device, at_once), device) / cores)  # noqa: B023
    return min(times)


@dataclass(frozen=True)
class Growth:
    """Seconds of something cubic in n: cubic · n³/3 + quadratic · n².

    Examples
    --------
    >>> Growth(cubic=3e-9, quadratic=0.0)(1000)
    1.0
    """

    cubic: float
    quadratic: float

    def __call__(self, n: float) -> float:
        """Seconds."""
        return self.cubic * n**3 / 3 + self.quadratic * n**2

    @classmethod
    def fitted(cls, seconds: Mapping[int, float]) -> Growth:
        """From a few sizes."""
        n, each = np.array(list(seconds)), np.array([taken / n**2 for n, taken in seconds.items()])
        slope = float(np.polyfit(n, each, 1)[0])
        whole = each.mean() / n.mean()  # if nothing of it were quadratic
        slope = min(max(slope, whole / 2), whole)  # a busy moment at the small size must not turn the large ones around
        return cls(3 * slope, float(each.mean() - slope * n.mean()))
