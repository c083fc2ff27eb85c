"""What there is to compute on: the device, and the memory left on it before anything large is asked for."""

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from threadpoolctl import ThreadpoolController

from unseed.errors import InvalidInputError

Item = TypeVar("Item")
Result = TypeVar("Result")
_SHARED_ROWS = 2048  # of matrices that threads share with profit


# limit, usage, and the line of memory.stat with the file cache that the kernel gives back on demand
_CGROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "inactive_file"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        "total_inactive_file",
    ),
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
    return min([_machine_bytes(), *_container_bytes()])


def total_bytes(device: torch.device) -> int:
    """All memory of a device or of the container, used or not."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[1]
    return min([_physical_bytes(), *(limit for limit, _ in _containers())])


@contextmanager
def one_thread() -> Iterator[None]:
    """Run many small matrix operations on one thread: waking a second one costs more than it brings.

    On a machine that is busy with other work it costs a hundred times more: the threads of one operation wait for each other
    while something else has their core.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with _BLAS_ALONE:
            yield
    finally:
        torch.set_num_threads(threads)


def threads_for(n_rows: int) -> AbstractContextManager[None]:
    """One thread where matrices have few rows, as many as there are elsewhere."""
    return nullcontext() if n_rows >= _SHARED_ROWS else one_thread()


class _BlasAlone:
    """Linear algebra libraries on one thread while anyone wants them so; their limits hold for the whole process."""

    def __init__(self) -> None:
        self._lock, self._wanted = threading.Lock(), 0
        self._limiter: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._wanted:
                self._limiter = _libraries().limit(limits=1, user_api="blas")
            self._wanted += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._wanted -= 1
            if not self._wanted and self._limiter is not None:
                self._limiter.restore_original_limits()
                self._limiter = None


_BLAS_ALONE = _BlasAlone()


@cache
def _libraries() -> ThreadpoolController:
    """The linear algebra libraries of this process; looking for them takes milliseconds."""
    return ThreadpoolController()


def on_all_cores(
    function: Callable[[Item], Result], items: Iterable[Item], device: torch.device, n_threads: int | None = None
) -> Iterator[Result]:
    """Results of a function for every item, in order: on a CPU by several threads, each of them for itself.

    Operations on a few ten thousand numbers are too short to be shared out, and larger ones suffer where a core is taken
    away in their middle; whole pieces of work are and do not.

    Parameters
    ----------
    function : function of an item
    items : iterable
    device : torch device
        On a GPU items follow each other.
    n_threads : int or None
        As many as torch has.
    """
    available = torch.get_num_threads()
    wanted = available if n_threads is None else n_threads
    todo = list(items)
    if device.type != "cpu" or wanted <= 1 or not todo:
        yield from map(function, todo)
        return
    if len(todo) == 1:
        with one_thread():
            yield function(todo[0])
        return
    try:
        # A thread's limit holds for itself alone, but torch also hands the last one set to threads that start later.
        with _BLAS_ALONE, ThreadPoolExecutor(wanted, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            yield from pool.map(function, todo)
    finally:
        torch.set_num_threads(available)


def finish(results: Iterator[None]) -> None:
    """Run to the end what has no results."""
    for _ in results:
        pass


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


def _machine_bytes() -> int:
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return _physical_bytes()  # how much of it is free is not known on this system


def _physical_bytes() -> int:
    if hasattr(os, "sysconf"):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return sys.maxsize  # not known either: nothing is refused


def _container_bytes() -> list[int]:
    return [limit - used for limit, used in _containers()]


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
