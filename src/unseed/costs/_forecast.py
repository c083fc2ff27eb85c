"""Seconds of a job: its work at the rates of a machine."""

from __future__ import annotations

from dataclasses import dataclass, replace

from unseed._machine import gigabytes
from unseed.costs._job import Job
from unseed.costs._rates import Rates


@dataclass(frozen=True)
class Forecast:
    """What a job will take.

    Attributes
    ----------
    choosing, fitting, predicting : float
        Seconds.
    bytes : int
        Peak of the large matrices; of blocks also the rows that are held.
    may_end_early : bool
        Whether training stops by itself, and the time is that of all the steps it may take.
    disk : int
        Bytes of blocks that are kept in files.
    assumed : str
        A number that only the data know, and was assumed; nothing where there is none.
    """

    choosing: float
    fitting: float
    predicting: float
    bytes: int
    may_end_early: bool = False
    disk: int = 0
    assumed: str = ""

    @property
    def seconds(self) -> float:
        """All together."""
        return self.choosing + self.fitting + self.predicting

    def __str__(self) -> str:
        times = {"choosing the network": self.choosing, "fitting": self.fitting, "predicting": self.predicting}
        parts = [f"{name} {duration(value)}" for name, value in times.items() if value]
        words = "at most about" if self.may_end_early else "about"
        disk = f", {gigabytes(self.disk)} on disk" if self.disk else ""
        assumed = f", if {self.assumed}" if self.assumed else ""
        return f"{words} {duration(self.seconds)} ({', '.join(parts)}) and {gigabytes(self.bytes)} of memory{disk}{assumed}"


def forecast(job: Job, rates: Rates) -> Forecast:
    """Time and memory of a job on a machine with these rates.

    Examples
    --------
    >>> rates = Rates(cubic=2e-11, quadratic=0.0, entry=5e-9, pair=5e-9, cut=1e-9, multiplication=1e-11, evaluation=0.006)
    >>> print(forecast(Job(rows=10**6, features=16, points=1000, block=2048), rates))
    about 38 s (fitting 33 s, predicting 5.0 s) and 0.3 GB of memory
    """
    return Forecast(
        **{part: rates.price(work, job.engine) for part, work in job.work.items()},
        bytes=job.cost.memory.needed(job.workers),
        may_end_early=any(amount.at_most for work in job.work.values() for amount in work),
        disk=job.cost.disk,
        assumed=job.cost.assumed,
    )


def shortage(job: Job, needed: int) -> str | None:
    """Why a job of so many bytes does not fit, and what would, in one sentence; None where it fits.

    Examples
    --------
    >>> job = Job(rows=1000, features=4)
    >>> shortage(job, 8 * 1000**2) is None
    True
    """
    return replace(job.cost.memory, bytes=needed).shortage(job.device)


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
