"""Memory for temporaries that is used again, tile after tile: fresh memory costs more to touch than most operations on it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

TILE_NUMBERS = 1 << 18
"""Numbers in a buffer: those of a tile on a CPU. Smaller ones would have to be thrown away when a larger tile comes."""


class Scratch:
    """Buffers of one thread; results in them live until `keep_only` lets their memory be used again.

    On a GPU torch's own allocator does this already, and buffers are new ones.

    Examples
    --------
    >>> scratch = Scratch()
    >>> first, second = (scratch.take(torch.zeros(1), (2, 3)) for _ in range(2))
    >>> scratch.keep_only(second)
    >>> scratch.take(torch.zeros(1), (3, 1)).data_ptr() == first.data_ptr()
    True
    """

    def __init__(self) -> None:
        self._free: list[Tensor] = []
        self._used: list[Tensor] = []

    def take(self, like: Tensor, shape: torch.Size | tuple[int, ...]) -> Tensor:
        """An uninitialised tensor of that shape, and of the type and device of another."""
        size = torch.Size(shape).numel()
        if like.device.type != "cpu":
            return like.new_empty(shape)
        for i, buffer in enumerate(self._free):
            if buffer.numel() >= size and buffer.dtype == like.dtype:
                self._used.append(self._free.pop(i))
                break
        else:
            self._used.append(like.new_empty(max(size, TILE_NUMBERS)))
        return self._used[-1][:size].view(shape)

    def keep_only(self, *kept: Tensor) -> None:
        """Let the memory of all others be used again."""
        pointers = {tensor.data_ptr() for tensor in kept}
        self._free += [buffer for buffer in self._used if buffer.data_ptr() not in pointers]
        self._used = [buffer for buffer in self._used if buffer.data_ptr() in pointers]


_IDLE: deque[Scratch] = deque(maxlen=16)


@contextmanager
def borrowed_scratch() -> Iterator[Scratch]:
    """Memory for one thread until it leaves the block; a few are kept for whoever asks next."""
    try:
        scratch = _IDLE.pop()
    except IndexError:
        scratch = Scratch()
    yield scratch
    scratch.keep_only()
    _IDLE.append(scratch)
