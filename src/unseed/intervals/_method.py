"""What an interval method is, and what it may see: replicate predictions or influence values, nothing of networks."""

from __future__ import annotations

from typing import ClassVar, Protocol, runtime_checkable

from unseed._random import Streams
from unseed._resampling import Plan
from unseed._results import Estimate, FloatArray


class Replicates(Protocol):
    """Predictions fitted to every replicate of a plan."""

    @property
    def sizes(self) -> FloatArray:
        """Number of observations behind each replicate. Shape (n_replicates,)."""
        ...

    def predict(self, X: FloatArray) -> FloatArray:
        """Predictions of every replicate. Shape (n_replicates, n_points, n_outputs)."""
        ...

    def misfit_variance(self, X: FloatArray) -> FloatArray:
        """Square of the structure that the network has left in its errors. Shape (n_points, n_outputs)."""
        ...

    def posterior_variance(self, X: FloatArray) -> FloatArray:
        """What the rows cannot know of a function as smooth as the network's. Shape (n_points, n_outputs)."""
        ...

    def rival_variance(self, X: FloatArray) -> FloatArray:
        """Squared distance to a network that the data like nearly as well. Shape (n_points, n_outputs)."""
        ...

    def influence(self, X: FloatArray) -> FloatArray:
        """Influence of every row on the full-data prediction. Shape (n_rows, n_points, n_outputs)."""
        ...


@runtime_checkable
class IntervalMethod(Protocol):
    """A plan of resamples, and a formula from their predictions to centre, standard error and degrees of freedom."""

    uses_influence: ClassVar[bool]
    uses_posterior: ClassVar[bool]

    def plan(self, n_rows: int, streams: Streams) -> Plan:
        """Resamples this method needs; refuses data sets that are too small for it."""
        ...

    def estimate(self, replicates: Replicates, X: FloatArray) -> Estimate:
        """Centre and standard error at the rows of X."""
        ...
