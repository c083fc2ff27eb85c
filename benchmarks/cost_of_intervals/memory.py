"""How much memory a job takes."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_FORGET_PEAK = "5"  # what Linux wants to read before it counts the peak from now on


@dataclass
class PeakMemory:
    """Largest memory of this process since `begin`, beyond what was there; known on Linux only.

    Memory that a library keeps for its next call counts for the job that asked for it first.

    Examples
    --------
    >>> memory = PeakMemory()
    >>> memory.begin()
    >>> numbers = b"x" * 10**8
    >>> (memory.added() or 10**8) > 5 * 10**7
    True
    """

    highest: int = 0  # of the process, which forgets it at every `begin`
    _before: int | None = None

    def begin(self) -> None:
        """Give back what is free, and count the peak from now on."""
        self.highest = max(self.highest, peak_bytes())
        self._before = None
        with suppress(OSError):
            _give_back()
            _CLEAR.write_text(_FORGET_PEAK)
            self._before = _status_bytes("VmRSS")

    def added(self) -> int | None:
        """Bytes of the peak since then beyond what was there; None where that is not known."""
        peak = None if self._before is None else _status_bytes("VmHWM")
        return None if peak is None or self._before is None else max(0, peak - self._before)

    def of_process(self) -> int:
        """Peak of the process since it began."""
        return max(self.highest, peak_bytes())


def peak_bytes() -> int:
    """Largest memory of this process so far, or since a peak was last forgotten; 0 where that is not known."""
    if find_spec("resource") is None:  # not on Windows
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _status_bytes(name: str) -> int | None:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return None


def _give_back() -> None:
    """Return free memory to the system: what the last job left over would hide what the next one takes."""
    with suppress(AttributeError):  # glibc's alone
        ctypes.CDLL(None).malloc_trim(0)
