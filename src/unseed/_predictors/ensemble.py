"""Single networks and deep ensembles: what one has without PNC."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unseed._predictors.scaled import ScaledNetworks
from unseed._resampling import Plan
from unseed._results import FloatArray


def with_members(plan: Plan, members: int) -> Plan:
    """Every replicate of a plan ``members`` times, to be trained from different starts."""
    reference = tuple(r * members + m for r in plan.reference for m in range(members))
    return Plan(np.repeat(plan.counts, members, axis=0), reference)


@dataclass(frozen=True)
class EnsembleReplicates(ScaledNetworks):
    """Averages of a few networks for every replicate of a plan, in the user's units.

    ``plan`` is the interval method's; the engine was given `with_members` of it.
    """

    members: int

    def predict(self, X: FloatArray) -> FloatArray:
        """Mean over members. Shape (n_replicates, n_points, n_outputs)."""
        return np.asarray(self.predict_members(X).mean(axis=1))

    def predict_members(self, X: FloatArray) -> FloatArray:
        """Predictions of every member. Shape (n_replicates, n_members, n_points, n_outputs)."""
        outputs = self.in_units(self.trained.predict(self.inputs(X))[:, :, 0])
        return outputs.reshape(-1, self.members, *outputs.shape[1:])

    def procedural_variance(self, X: FloatArray) -> FloatArray:
        """Variance over seeds left in the mean of the members, estimated from them; NaN for one member: not known.

        Shape (n_points, n_outputs).
        """
        predictions = self.predict_members(X)
        if self.members == 1:
            return np.full(predictions.shape[2:], np.nan)
        return np.asarray(predictions.var(axis=1, ddof=1).mean(axis=0) / self.members)
