"""How long something takes at best."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch


def best_seconds(function: Callable[[], object], device: torch.device, repetitions: int = 4) -> float:
    """The least of a few timings: whatever else the machine does only adds."""
    return min(seconds_of(function, device) for _ in range(repetitions))


def seconds_of(function: Callable[[], object], device: torch.device) -> float:
    """One timing, to the end of what was begun on a GPU."""
    _synchronise(device)
    start = time.perf_counter()
    function()
    _synchronise(device)
    return time.perf_counter() - start


def _synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
