"""Half sampling: cheap subsampling with half of the rows. Not in the paper."""

from dataclasses import dataclass

import numpy as np

from unseed._random import Streams
from unseed._resampling import Plan, full_and, half_samples
from unseed._results import Estimate, FloatArray
from unseed.intervals._method import Replicates, ResampleMethod


@dataclass(frozen=True)
class HalfSampling(ResampleMethod):
    """Full-data prediction, spread of random halves around it.

    Target: h*, and beyond: what a half misses for having fewer data enters the spread, so bias widens the interval.
    Assumes: i.i.d. rows, converged wide networks, n large enough for normality.
    Cost: one full fit plus 1/8 of one per replication.
    Prefer: over the cheap bootstrap when repeated rows hurt (interpolation, λ → 0) or time is short.
    Interval: h ± t(replications) · S. Halves drawn without replacement need no factor: Var(h_half − h) = Var(h).

    Parameters
    ----------
    replications : int
        R ≥ 1.

    Examples
    --------
    >>> HalfSampling(replications=3).plan(7, Streams(seed=0)).sizes.tolist()
    [7, 3, 3, 3]
    """

    def describe(self) -> str:
        """In a user's words."""
        return "fits to random halves of the rows"

    def plan(self, n_rows: int, streams: Streams) -> Plan:
        """The data themselves, then random halves."""
        return full_and(half_samples(n_rows, self.replications, streams))

    def estimate(self, replicates: Replicates, X: FloatArray) -> Estimate:
        """Root mean square distance of the halves from the full-data prediction."""
        centre, *halves = replicates.predict(X)
        n, half = replicates.sizes[:2]
        # Var(h_half − h) = σ²(1/half − 1/n) = σ²/n for exact halves; an odd n leaves this factor.
        correction = half / (n - half)
        spread = np.sqrt(correction * np.mean((np.stack(halves) - centre) ** 2, axis=0))
        return Estimate(centre, spread, float(self.replications))
