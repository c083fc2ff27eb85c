"""The interval for the function under a loss that bends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unseed._random import Streams
from unseed._resampling import HashedPlan, Plan
from unseed._results import Estimate, FloatArray
from unseed.intervals._formulas import InfinitesimalJackknife, _NamedMethod
from unseed.intervals._method import Replicates


@dataclass(frozen=True)
class LaplaceInterval(_NamedMethod):
    """Full-data prediction; variances of the infinitesimal jackknife, of the Laplace posterior and of a rival, added.

    Target: the function on the scale of the link: log-odds, the logarithm of a rate, a quantile.
    Assumes: i.i.d. rows, a network chosen for the data, more observations than effective parameters.
    Cost: the fit that is there, and two solves per new point.
    Prefer: it is what ``interval="truth"`` means under any loss but the square.
    Interval: f ± z · √(σ̂²/n + a·(K(x,x) − k(x)ᵀA⁻¹k(x)) + (f − f')²) with A of the last Newton step and f' a rival's.

    Examples
    --------
    >>> LaplaceInterval()
    LaplaceInterval()
    """

    in_words: ClassVar[str] = "the influence of every row, Laplace's posterior and a rival network together"
    uses_influence: ClassVar[bool] = True
    uses_posterior: ClassVar[bool] = True

    def plan(self, n_rows: int, streams: Streams) -> Plan:
        """The data themselves: parts of few rows can say too little of a class."""
        return InfinitesimalJackknife().plan(n_rows, streams)

    def hashed_plan(self, streams: Streams) -> HashedPlan:
        """All rows."""
        return InfinitesimalJackknife().hashed_plan(streams)

    def estimate(self, replicates: Replicates, X: FloatArray) -> Estimate:
        """Causes differ, and variances add."""
        jackknife = InfinitesimalJackknife().estimate(replicates, X)
        parts = {
            "sampling": jackknife.standard_error**2,
            "posterior": replicates.posterior_variance(X),
            "rival": replicates.rival_variance(X),
        }
        return Estimate(jackknife.centre, np.sqrt(sum(parts.values())), np.inf, parts)
