"""Half sampling: cheap subsampling with half of the rows. Not in the paper."""

from dataclasses import dataclass

import numpy as np

from unseed import _resampling as resampling
from unseed._checks import check_whole_number
from unseed._random import Streams
from unseed._resampling import Plan
from unseed._results import Estimate, FloatArray
from unseed.intervals._method import IntervalMethod, Replicates


@dataclass(frozen=True)
class HalfSampling(IntervalMethod):
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
    >>> HalfSampling(replications=4)
    HalfSampling(replications=4)
    """

    replications: int = 4

    def __post_init__(self) -> None:
        check_whole_number("replications", self.replications, at_least=1, reason="no resample, no spread")

    def describe(self) -> str:
        """In a user's words."""
        return "fits to random halves of the rows"

    def plan(self, n_rows: int, streams: Streams) -> Plan:
        """The data themselves, then random halves."""
        return resampling.full_and(resampling.half_samples(n_rows, self.replications, streams))

    def estimate(self, replicates: Replicates, X: FloatArray) -> Estimate:
        """Root mean square distance of the halves from the full-data prediction."""
        centre, *halves = replicates.predict(X)
        n, half = replicates.sizes[:2]
        # Var(h_half − h) = σ²(1/half − 1/n) = σ²/n for exact halves; an odd n leaves this factor.
        correction = half / (n - half)
        spread = np.sqrt(correction * np.mean((np.stack(halves) - centre) ** 2, axis=0))
        return Estimate(centre, spread, float(self.replications))
