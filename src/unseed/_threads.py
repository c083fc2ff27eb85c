"""Work shared out to the cores of this machine, by threads of this process."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from typing import Any, TypeVar

import torch
from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")
_SHARED_ROWS = 2048  # of matrices that threads share with profit


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
            if not self._wanted:
                self._limiter.restore_original_limits()


_BLAS_ALONE = _BlasAlone()
_libraries = cache(ThreadpoolController)  # of this process; looking for them takes milliseconds


def on_all_cores(
    function: Callable[[Item], Result], items: Iterable[Item], device: torch.device, n_threads: int | None = None
) -> list[Result]:
    """Results of a function for every item, in order: on a CPU by several threads (as many as torch has), each for itself.

    Operations on a few ten thousand numbers are too short to be shared out, and larger ones suffer where a core is taken
    away in their middle; whole pieces of work are and do not. The thread that asks works too: one that only waited
    would be woken for every result, and stop the others each time. With ``n_threads=1``, and on a GPU, items follow each other
    and each may have all cores.

    Examples
    --------
    >>> on_all_cores(abs, [-1, 2, -3], torch.device("cpu"))
    [1, 2, 3]
    """
    todo = list(items)
    wanted = torch.get_num_threads() if n_threads is None else n_threads
    if device.type != "cpu" or not todo or n_threads == 1:
        return [function(item) for item in todo]
    waiting, results, errors = deque(enumerate(todo)), dict[int, Result](), list[BaseException]()

    def work() -> None:
        while True:
            try:
                place, item = waiting.popleft()
            except IndexError:
                return
            results[place] = function(item)

    def help_out() -> None:
        torch.set_num_threads(1)  # holds for this thread alone
        try:
            work()
        except BaseException as error:  # is for the thread that asks
            errors.append(error)
            waiting.clear()

    helpers = [threading.Thread(target=help_out, daemon=True) for _ in range(min(wanted, len(todo)) - 1)]
    with one_thread():
        try:
            with suppress(RuntimeError):  # the system gives no more threads: those that are there will do
                for helper in helpers:
                    helper.start()
            work()
        finally:
            waiting.clear()  # after an error, or Ctrl-C, nothing new is begun
            for helper in helpers:
                if helper.ident is not None:
                    helper.join()
    if errors:
        raise errors[0]
    return [results[place] for place in range(len(todo))]
