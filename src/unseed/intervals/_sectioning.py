"""Sectioning: batching's spread around the full-data prediction. Classical; not in the paper."""

from dataclasses import dataclass

import numpy as np

from unseed._random import Streams
from unseed._resampling import Plan, batches, full_and
from unseed._results import Estimate, FloatArray
from unseed.intervals._method import BatchMethod, Replicates


@dataclass(frozen=True)
class Sectioning(BatchMethod):
    """Full-data prediction, spread of disjoint batches around it.

    Target: h*, and beyond: what the batches miss for having fewer data enters the spread, so bias widens the interval.
    Assumes: i.i.d. rows, converged wide networks; same asymptotics as batching.
    Cost: one full fit plus one per batch on n/batches rows: 1 + 1/batches² of a full fit.
    Prefer: as the default when the function itself, not h*, must be covered.
    Interval: h ± t(batches − 1) · S/√batches, S² = Σ(h_j − h)²/(batches − 1).

    Parameters
    ----------
    batches : int
        m' ≥ 2.

    Examples
    --------
    >>> Sectioning(batches=2).plan(6, Streams(seed=0)).sizes.tolist()
    [6, 3, 3]
    """

    def describe(self) -> str:
        """In a user's words."""
        return "fits to parts of the rows around the fit to all"

    def plan(self, n_rows: int, streams: Streams) -> Plan:
        """The data themselves, then disjoint batches of equal size, to within one row."""
        return full_and(batches(n_rows, self.batches, streams).counts)

    def estimate(self, replicates: Replicates, X: FloatArray) -> Estimate:
        """Spread of the batches around the full-data prediction, not around their own mean."""
        centre, *batches = replicates.predict(X)
        spread = np.sqrt(np.sum((np.stack(batches) - centre) ** 2, axis=0) / (self.batches - 1))
        return Estimate(centre, spread / np.sqrt(self.batches), self.batches - 1.0)
