"""PNC infinitesimal jackknife: the theorem of the paper's appendix."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unseed._random import Streams
from unseed._resampling import Plan, full
from unseed._results import Estimate, FloatArray
from unseed.intervals._method import IntervalMethod, Replicates


@dataclass(frozen=True)
class InfinitesimalJackknife(IntervalMethod):
    """Standard error from the influence of every row on the prediction (the paper's appendix).

    Target: h*, the regularised fit to infinitely many data at the same λ.
    Assumes: i.i.d. rows, converged wide networks, n large against the fit's effective dimension; blind to bias.
    Cost: one fit, and one solve per new point (n² operations each).
    Prefer: for the narrowest interval for h* without any resampling luck, at λ that is not tiny; too narrow as λ → 0.
    Interval: ψ ± z · σ̂/√n. The appendix prints σ̂/n in two statements; its proof has √n, which is right.

    Examples
    --------
    >>> InfinitesimalJackknife()
    InfinitesimalJackknife()
    """

    uses_influence: ClassVar[bool] = True

    def describe(self) -> str:
        """In a user's words."""
        return "the influence of every row"

    def plan(self, n_rows: int, streams: Streams) -> Plan:
        """The data themselves: nothing is resampled."""
        return full(n_rows)

    def estimate(self, replicates: Replicates, X: FloatArray) -> Estimate:
        """σ̂² = mean of the squared influence values; the normal law."""
        influence = replicates.influence(X)
        sigma = np.sqrt(np.mean(influence**2, axis=0))
        return Estimate(replicates.predict(X)[0], sigma / np.sqrt(len(influence)), np.inf)
