"""PNC batching: Algorithm 2 of the paper."""

from dataclasses import dataclass

import numpy as np

from unseed._random import Streams
from unseed._resampling import Plan, batches
from unseed._results import Estimate, FloatArray
from unseed.intervals._method import BatchMethod, Replicates


@dataclass(frozen=True)
class Batching(BatchMethod):
    """Mean and spread of predictions from disjoint batches (the paper's Algorithm 2).

    Target: h*, the regularised fit to infinitely many data at the same λ.
    Assumes: i.i.d. rows, converged wide networks, batches large enough for normality; blind to bias.
    Cost: one PNC fit per batch on n/batches rows each: 1/batches² of a full fit in all.
    Prefer: for large n, where nothing else is affordable; not for small n, since the centre has a batch's bias.
    Interval: ψ ± t(batches − 1) · S/√batches.

    Parameters
    ----------
    batches : int
        m' ≥ 2.

    Examples
    --------
    >>> Batching(batches=4)
    Batching(batches=4)
    """

    def describe(self) -> str:
        """In a user's words."""
        return "fits to separate parts of the rows"

    def plan(self, n_rows: int, streams: Streams) -> Plan:
        """Algorithm 2, step 1: disjoint batches of equal size, to within one row."""
        return batches(n_rows, self.batches, streams)

    def estimate(self, replicates: Replicates, X: FloatArray) -> Estimate:
        """Algorithm 2, step 2: ψ_B and S_B/√m'."""
        predictions = replicates.predict(X)
        spread = predictions.std(axis=0, ddof=1)
        return Estimate(predictions.mean(axis=0), spread / np.sqrt(self.batches), self.batches - 1.0)
