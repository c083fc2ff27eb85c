"""PNC cheap bootstrap: Algorithm 3 of the paper."""

from dataclasses import dataclass

import numpy as np

from unseed._random import Streams
from unseed._resampling import Plan, bootstrap, full_and
from unseed._results import Estimate, FloatArray
from unseed.intervals._method import Replicates, ResampleMethod


@dataclass(frozen=True)
class CheapBootstrap(ResampleMethod):
    """Full-data prediction, spread of a few bootstrap replicates around it (the paper's Algorithm 3).

    Target: h*, the regularised fit to infinitely many data at the same λ.
    Assumes: i.i.d. rows, converged wide networks, n large enough for normality; blind to bias.
    Cost: 1 + replications PNC fits, the resampled ones on about 0.63 n distinct rows.
    Prefer: for small and medium n, when an interval for h* is wanted; few replications, wide but honest t quantile.
    Interval: ψ ± t(replications) · S.

    Parameters
    ----------
    replications : int
        R ≥ 1. Base and auxiliary network share each resample.

    Examples
    --------
    >>> CheapBootstrap(replications=4)
    CheapBootstrap(replications=4)
    """

    def describe(self) -> str:
        """In a user's words."""
        return "fits to rows drawn again"

    def plan(self, n_rows: int, streams: Streams) -> Plan:
        """Algorithm 3, steps 1 and 2: the data themselves, then resamples with replacement."""
        return full_and(bootstrap(n_rows, self.replications, streams))

    def estimate(self, replicates: Replicates, X: FloatArray) -> Estimate:
        """Algorithm 3, step 3: ψ_C and S_C."""
        centre, *resampled = replicates.predict(X)
        spread = np.sqrt(np.mean((np.stack(resampled) - centre) ** 2, axis=0))
        return Estimate(centre, spread, float(self.replications))
