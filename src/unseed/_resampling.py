"""Resample plans: how often each replicate counts each row.

A plan is a matrix of counts. Ones are all the data, block indicators are batches, multinomial counts are bootstrap
resamples, a half sample is zeros and ones. A count of c means exactly what c repeated rows would mean.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unseed._random import Streams
from unseed._state import Record, State
from unseed.errors import InvalidInputError

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Plan:
    """Counts of every replicate.

    Attributes
    ----------
    counts : array of shape (n_replicates, n_rows)
    reference : tuple of int
        Replicates that together see every row exactly once (the full-data one, or all batches): the fits that stand
        for "the network trained on these data" when noise and procedural variance are measured.
    """

    counts: Counts
    reference: tuple[int, ...]

    @property
    def sizes(self) -> Counts:
        """Number of observations each replicate is trained on, repetitions counted. Shape (n_replicates,)."""
        return np.asarray(self.counts.sum(axis=1), dtype=np.int64)

    @property
    def n_rows(self) -> int:
        """Rows that are counted."""
        return int(self.counts.shape[1])

    @property
    def distinct_rows(self) -> list[int]:
        """Rows that each replicate knows, repetitions not counted."""
        return [int(rows) for rows in np.count_nonzero(self.counts, axis=1)]

    def replicates(self) -> Iterator[tuple[npt.NDArray[np.int64], Counts]]:
        """Yield each replicate's distinct rows and their (positive) counts."""
        for counts in self.counts:
            rows = np.flatnonzero(counts)
            yield rows, counts[rows]

    def state(self) -> State:
        """Counts, in one byte each where they fit."""
        counts = self.counts.astype(np.uint8) if self.counts.max() < 256 else self.counts
        return {"counts": counts, "reference": list(self.reference)}

    @classmethod
    def restore(cls, record: Record) -> "Plan":
        """From `state`: every replicate has rows, and the reference ones exist."""
        dtype = record.dtype("counts")
        if dtype not in ("uint8", "int64"):
            raise record.fault(f"counts are {dtype}")
        counts = record.array("counts", None, None, dtype=dtype).astype(np.int64)
        reference = record.fact("reference", list)
        is_known = bool(reference) and all(type(place) is int and 0 <= place < len(counts) for place in reference)
        if not is_known or counts.shape[1] == 0 or (counts < 0).any() or not counts.any(axis=1).all():
            raise record.fault("the plan of resamples does not fit together")
        return cls(counts, tuple(reference))


def full(n_rows: int) -> Plan:
    """One replicate, every row once."""
    return Plan(np.ones((1, n_rows), dtype=np.int64), reference=(0,))


def batches(n_rows: int, n_batches: int, streams: Streams) -> Plan:
    """Split the rows at random into batches whose sizes differ by at most one; every row is used once.

    Examples
    --------
    >>> plan = batches(10, 3, Streams(0))
    >>> sorted(plan.sizes.tolist()), plan.counts.sum(axis=0).tolist()
    ([3, 3, 4], [1, 1, 1, 1, 1, 1, 1, 1, 1, 1])
    """
    if n_batches > n_rows:
        raise InvalidInputError(
            f"batches={n_batches} is more than the n_samples={n_rows} rows to split; use at most {n_rows} batches"
        )
    counts = np.zeros((n_batches, n_rows), dtype=np.int64)
    for batch, rows in enumerate(np.array_split(streams.generator("resample", "batches").permutation(n_rows), n_batches)):
        counts[batch, rows] = 1
    return Plan(counts, reference=tuple(range(n_batches)))


def bootstrap(n_rows: int, n_replications: int, streams: Streams) -> Counts:
    """Counts of resamples of n_rows rows drawn with replacement. Shape (n_replications, n_rows)."""
    generators = [streams.generator("resample", "bootstrap", r) for r in range(n_replications)]
    return np.stack([np.bincount(one.integers(n_rows, size=n_rows), minlength=n_rows) for one in generators])


def half_samples(n_rows: int, n_replications: int, streams: Streams) -> Counts:
    """Zeros and ones of random halves (n_rows // 2 rows, without replacement). Shape (n_replications, n_rows)."""
    if n_rows < 2:
        raise InvalidInputError(f"half sampling needs at least two rows and got n_samples={n_rows}")
    counts = np.zeros((n_replications, n_rows), dtype=np.int64)
    for r in range(n_replications):
        counts[r, streams.generator("resample", "half", r).permutation(n_rows)[: n_rows // 2]] = 1
    return counts


def full_and(counts: Counts) -> Plan:
    """Put the full-data replicate first; the others follow and are compared with it."""
    return Plan(np.concatenate([full(counts.shape[1]).counts, counts]), reference=(0,))
