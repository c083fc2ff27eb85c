"""What there is to compute on: the device, and the memory left on it before anything large is asked for."""

import os
import sys
from pathlib import Path

import numpy as np
import torch

from unseed.errors import InvalidInputError

# limit, usage, and the line of memory.stat with the file cache that the kernel gives back on demand
_OLD = "/sys/fs/cgroup/memory/memory."
_CGROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "inactive_file"),
    (_OLD + "limit_in_bytes", _OLD + "usage_in_bytes", "total_inactive_file"),
)


def resolve_device(device: str | torch.device) -> torch.device:
    """Device of that name; ``"auto"`` is the first GPU where there is one.

    Examples
    --------
    >>> resolve_device("cpu")
    device(type='cpu')
    """
    has_gpu = torch.cuda.is_available()
    if device == "auto":
        return torch.device("cuda" if has_gpu else "cpu")
    try:
        resolved = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise InvalidInputError(f"device={device!r} is not known; use 'auto', 'cpu', 'cuda' or 'cuda:1'") from error
    if resolved.type not in {"cpu", "cuda"}:
        raise InvalidInputError(f"device={device!r} has no float64 solves in unseed; use 'auto', 'cpu' or 'cuda'")
    if resolved.type == "cuda" and (resolved.index or 0) >= torch.cuda.device_count():
        raise InvalidInputError(f"device={device!r} is not on this machine ({torch.cuda.device_count()} GPUs seen); use 'auto'")
    return resolved


def available_bytes(device: torch.device) -> int:
    """Bytes that can still be allocated on a device: the free share of the machine, its container or the GPU."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return min([_machine_bytes(), *(limit - used for limit, used in _containers())])


def uninitialised(like: torch.Tensor, *shape: int) -> torch.Tensor:
    """Tensor of a type and device, its memory not touched yet: NumPy's has large pages, four times as fast to write first."""
    if like.device.type == "cpu" and like.dtype == torch.float64:
        return torch.from_numpy(np.empty(shape))
    return like.new_empty(shape)


def gigabytes(n_bytes: float) -> str:
    """Human-readable size.

    Examples
    --------
    >>> gigabytes(2.5e9)
    '2.5 GB'
    """
    return f"{n_bytes / 1e9:,.1f} GB"


def duration(seconds: float) -> str:
    """Seconds, minutes, hours or days, two digits.

    Examples
    --------
    >>> [duration(s) for s in (0.0123, 7.31, 61.0, 7300.0, 1e6)]
    ['12 ms', '7.3 s', '61 s', '2.0 h', '12 days']
    """
    if seconds < 1:
        return f"{1e3 * seconds:.0f} ms"
    for size, unit, limit in ((1, "s", 120), (60, "min", 120), (3600, "h", 72)):
        if seconds / size < limit:
            value = seconds / size
            return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"
    return f"{seconds / 86400:.0f} days"


def _machine_bytes() -> int:
    meminfo = Path("/proc/meminfo")
    lines = meminfo.read_text().splitlines() if meminfo.exists() else ()
    free = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    return free[0] if free else _physical_bytes()  # how much of it is free is not known on this system


def _physical_bytes() -> int:
    if not hasattr(os, "sysconf"):
        return sys.maxsize  # not known either: nothing is refused
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _containers() -> list[tuple[int, int]]:
    """Limit of every container around this process, and how much of it is used for good."""
    found = []
    for limit_file, usage_file, cache_line in _CGROUPS:
        try:
            limit, usage = int(Path(limit_file).read_text()), int(Path(usage_file).read_text())
            statistics = dict(line.split() for line in Path(usage_file).with_name("memory.stat").read_text().splitlines())
        except (OSError, ValueError):  # no such hierarchy here, or the limit reads "max"
            continue
        found.append((limit, usage - int(statistics.get(cache_line, 0))))
    return found
