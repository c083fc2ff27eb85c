"""Single networks and deep ensembles: what one has without PNC."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unseed._predictors.scaled import Query, ScaledNetworks
from unseed._resampling import Plan
from unseed._results import FloatArray
from unseed._state import State
from unseed.errors import NotAvailableError

_NO_POSTERIOR = "interval='truth' is for PNCRegressor; use 'sectioning' or another resampling method"


def with_members(plan: Plan, members: int) -> Plan:
    """Every replicate of a plan ``members`` times, to be trained from different starts."""
    reference = tuple(r * members + m for r in plan.reference for m in range(members))
    return Plan(np.repeat(plan.counts, members, axis=0), reference)


@dataclass(frozen=True)
class EnsembleReplicates(ScaledNetworks):
    """Averages of a few networks for every replicate of a plan.

    ``plan`` is the interval method's; the engine was given `with_members` of it.
    """

    members: int

    def at(self, X: FloatArray, *, is_shared: bool = False) -> EnsembleQuery:
        """New points to be asked about."""
        return EnsembleQuery(self, X, is_shared)

    def state(self) -> State:
        """Everything but the rows."""
        return {**super().state(), "members": int(self.members)}


class EnsembleQuery(Query[EnsembleReplicates]):
    """What ensembles say about f(x)."""

    @cached_property
    def members(self) -> FloatArray:
        """Predictions of every member. Shape (n_replicates, n_members, n_points, n_outputs)."""
        networks = self.networks
        values = networks.scaling.from_labels(networks.trained.predict(self.points)[:, :, 0])
        return values.reshape(-1, networks.members, *values.shape[1:])

    def predict(self, X: FloatArray) -> FloatArray:
        """Mean over members. Shape (n_replicates, n_points, n_outputs)."""
        return np.asarray(self.at(X).members.mean(axis=1))

    def procedural_variance(self) -> FloatArray:
        """Variance over seeds left in the mean of the members, estimated from them; NaN for one member: not known.

        Shape (n_points, n_outputs).
        """
        if self.networks.members == 1:
            return np.full(self.members.shape[2:], np.nan)
        return np.asarray(self.members.var(axis=1, ddof=1).mean(axis=0) / self.networks.members)

    def influence(self, X: FloatArray) -> FloatArray:
        """Only for PNC."""
        raise NotAvailableError(_NO_POSTERIOR)

    misfit_variance = rival_variance = posterior_variance = influence
