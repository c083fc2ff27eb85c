"""An interval for the function itself: what resampling sees, what n rows cannot know, and where the network may be wrong."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unseed._random import Streams
from unseed._resampling import Plan
from unseed._results import Estimate, FloatArray
from unseed.intervals._method import BatchMethod, Replicates
from unseed.intervals._sectioning import Sectioning


@dataclass(frozen=True)
class TruthInterval(BatchMethod):
    """Full-data prediction; variances of sectioning, of the posterior, of structure left in the errors and of a rival, added.

    Target: the regression function, not only h*. Not in the paper; `docs/truth.md` has the derivation and the scoreboard.
    Assumes: i.i.d. rows, a network chosen for the data, errors that a sum of curves can see where the network is wrong.
    Cost: sectioning, one triangular solve per new point, and leave-one-out errors of at most a thousand rows.
    Prefer: as the default; the methods of the paper where h* is the question.
    Interval: h ± z · √(S²/batches + a·(K(x,x) − k(x)ᵀA⁻¹k(x)) + τ²(x) + (h − h')²), h' the prediction of a network of
    another architecture that the data like nearly as well, where there is one.

    Parameters
    ----------
    batches : int
        m' ≥ 2.

    Examples
    --------
    >>> TruthInterval(batches=4)
    TruthInterval(batches=4)
    """

    uses_posterior: ClassVar[bool] = True

    def describe(self) -> str:
        """In a user's words."""
        return "resampling, posterior, misfit and a rival network together"

    def plan(self, n_rows: int, streams: Streams) -> Plan:
        """That of sectioning."""
        return Sectioning(self.batches).plan(n_rows, streams)

    def estimate(self, replicates: Replicates, X: FloatArray) -> Estimate:
        """The variances have different causes, and none of the methods behind them sees the others'."""
        sectioning = Sectioning(self.batches).estimate(replicates, X)
        parts = {
            "sampling": sectioning.standard_error**2,
            "posterior": replicates.posterior_variance(X),
            "misfit": replicates.misfit_variance(X),
            "rival": replicates.rival_variance(X),
        }
        return Estimate(sectioning.centre, np.sqrt(sum(parts.values())), np.inf, parts)
