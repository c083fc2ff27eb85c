"""Resample plans: how often each replicate counts each row.

A plan is a matrix of counts. Ones are all the data, block indicators are batches, multinomial counts are bootstrap
resamples, a half sample is zeros and ones. A count of c means exactly what c repeated rows would mean.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from scipy.special import pdtr

from unseed._random import Streams
from unseed._state import Record, State
from unseed.errors import InvalidInputError

Counts = npt.NDArray[np.int64]
Summand = TypeVar("Summand")

_POISSON = pdtr(np.arange(20), 1.0)
"""Distribution function of the Poisson law with mean 1; beyond lies less than 1e-18."""


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

    @property
    def n_replicates(self) -> int:
        """How many fits there are."""
        return len(self.counts)

    def at(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Counts of some rows. Shape (n_replicates, len(positions))."""
        return self.counts[:, positions].astype(np.float64)

    def weights(self, start: int, stop: int) -> npt.NDArray[np.float64]:
        """Counts of the rows from one position to another. Shape (n_replicates, rows)."""
        return self.counts[:, start:stop].astype(np.float64)

    def summed(self, summands: Sequence[Summand]) -> list[Summand]:
        """What the replicates have of anything that can be added up: here every summand is a replicate's."""
        return list(summands)

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
    def restore(cls, record: Record) -> Plan:
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


@dataclass(frozen=True)
class HashedPlan:
    """Counts that a row's position in the data decides, so that nobody needs to see all rows, and cutting them does not matter.

    Attributes
    ----------
    law : {"all", "parts", "halves", "bootstrap"}
        All rows once; disjoint parts of them; random halves; Poisson counts, which are those of a bootstrap of many rows.
    replications : int
        Parts, halves or resamples.
    seed : int
    with_all : bool
        Whether the first replicate is all rows.
    totals : tuple of float
        Observations behind each replicate, once rows have been counted.

    Examples
    --------
    >>> plan = HashedPlan("parts", 3, seed=0)
    >>> whole = plan.weights(0, 6)
    >>> whole.sum(axis=0).tolist(), np.array_equal(np.hstack([plan.weights(0, 2), plan.weights(2, 6)]), whole)
    ([1.0, 1.0, 1.0, 1.0, 1.0, 1.0], True)
    """

    law: str
    replications: int = 0
    seed: int = 0
    with_all: bool = True
    totals: tuple[float, ...] = ()

    @property
    def reference(self) -> tuple[int, ...]:
        """Replicates that together see every row exactly once."""
        return (0,) if self.with_all else tuple(range(self.replications))

    @property
    def sizes(self) -> npt.NDArray[np.float64]:
        """Observations behind each replicate. Shape (n_replicates,)."""
        return np.array(self.totals)

    @property
    def n_rows(self) -> int:
        """Rows that were counted."""
        return int(sum(self.totals[r] for r in self.reference))

    @property
    def n_replicates(self) -> int:
        """How many fits there are."""
        return self.replications + int(self.with_all)

    def at(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Counts of some rows. Shape (n_replicates, len(positions))."""
        return np.stack(self.summed(list(self._summands(positions))))

    def weights(self, start: int, stop: int) -> npt.NDArray[np.float64]:
        """Counts of the rows from one position to another, in the summands that `summed` puts together."""
        return self._summands(np.arange(start, stop))

    def summed(self, summands: Sequence[Summand]) -> list[Summand]:
        """What the replicates have of anything that can be added up: all rows are the sum of their parts."""
        is_sum = self.law == "parts" and self.with_all
        return [reduce(operator.add, summands), *summands] if is_sum else list(summands)

    def _summands(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        ones = np.ones((1, len(positions)))
        if self.law == "all":
            return ones
        draws = range(1 if self.law == "parts" else self.replications)
        uniform = np.stack([hashed(positions, self.seed, "resample", draw) for draw in draws])
        if self.law == "parts":
            return np.asarray((uniform * self.replications).astype(np.int64) == np.arange(self.replications)[:, None]) * 1.0
        drawn = uniform < 0.5 if self.law == "halves" else _POISSON.searchsorted(uniform, side="right")
        return np.concatenate([ones, drawn.astype(np.float64)])

    def state(self) -> State:
        """Everything: the counts can be made again."""
        return {**asdict(self), "totals": list(self.totals)}

    @classmethod
    def restore(cls, record: Record) -> HashedPlan:
        """From `state`."""
        totals = record.fact("totals", list)
        law, count = record.fact("law", str), record.whole_number("replications")
        plan = cls(law, count, record.whole_number("seed"), record.fact("with_all", bool), tuple(totals))
        is_known = law in ("all", "parts", "halves", "bootstrap") and all(
            type(total) is float and total > 0 for total in totals
        )
        if not is_known or len(totals) not in (0, plan.n_replicates):  # none before the first row
            raise record.fault("the plan of resamples does not fit together")
        return plan


def hashed(positions: npt.NDArray[np.int64], seed: int, *name: str | int) -> npt.NDArray[np.float64]:
    """A uniform number for every position, from the stream called ``name``: the finaliser of SplitMix64, which mixes all bits.

    Examples
    --------
    >>> some, others = (hashed(np.arange(100_000), 3, "example", draw) for draw in range(2))
    >>> bool(abs(some.mean() - 0.5) < 0.005), bool(np.abs(np.corrcoef([some[1:], some[:-1], others[1:]])[0, 1:]).max() < 0.02)
    (True, True)
    """
    key = Streams(seed).generator("hash", *name).integers(2**63, dtype=np.uint64)
    with np.errstate(over="ignore"):
        mixed = (positions.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + key
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return np.asarray((mixed >> np.uint64(11)) * 2.0**-53)


Resamples = Plan | HashedPlan


def restore_plan(record: Record) -> Resamples:
    """Of either kind."""
    return Plan.restore(record) if record.has("counts") else HashedPlan.restore(record)
