"""What an interval method is, and what it may see: replicate predictions or influence values, nothing of networks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, Protocol, runtime_checkable

from unseed._random import Streams
from unseed._resampling import HashedPlan, Plan
from unseed._results import Estimate, FloatArray
from unseed.errors import InvalidInputError


class Replicates(Protocol):
    """Predictions fitted to every replicate of a plan."""

    @property
    def sizes(self) -> FloatArray:
        """Number of observations behind each replicate. Shape (n_replicates,)."""

    def predict(self, X: FloatArray) -> FloatArray:
        """Predictions of every replicate. Shape (n_replicates, n_points, n_outputs)."""

    def misfit_variance(self, X: FloatArray) -> FloatArray:
        """Square of the structure that the network has left in its errors. Shape (n_points, n_outputs)."""

    def posterior_variance(self, X: FloatArray) -> FloatArray:
        """What the rows cannot know of a function as smooth as the network's. Shape (n_points, n_outputs)."""

    def missed_variance(self, X: FloatArray) -> FloatArray | None:
        """The part of the posterior variance that is there for landmarks being few; None where all rows are landmarks."""
        ...

    def rival_variance(self, X: FloatArray) -> FloatArray:
        """Squared distance to a network that the data like nearly as well. Shape (n_points, n_outputs)."""

    def influence(self, X: FloatArray) -> FloatArray:
        """Influence of every row on the full-data prediction. Shape (n_rows, n_points, n_outputs)."""


@runtime_checkable
class IntervalMethod(Protocol):
    """A plan of resamples, and a formula from their predictions to centre, standard error and degrees of freedom.

    A class that derives from this one needs `plan` and `estimate` alone. It may say more: ``describe()``, one sentence for
    the report (see `describe`), and ``centre(replicates, X)`` where its centre is not the mean of the plan's reference
    replicates (see `own_centre`). `docs/write-your-own-interval.md` has an example.

    Attributes
    ----------
    uses_influence : bool
        Whether `estimate` asks for influence values: needs converged training and a positive λ.
    uses_posterior : bool
        Whether `estimate` asks for the posterior, misfit or rival variance: needs converged training, and the interval is
        one for the function itself.
    """

    uses_influence: ClassVar[bool] = False
    uses_posterior: ClassVar[bool] = False

    @abstractmethod
    def plan(self, n_rows: int, streams: Streams) -> Plan:
        """Resamples this method needs; refuses data sets that are too small for it."""

    @abstractmethod
    def estimate(self, replicates: Replicates, X: FloatArray) -> Estimate:
        """Centre and standard error at the rows of X."""


def describe(method: IntervalMethod) -> str:
    """What a method does, in a user's words: its own, or the first line of its docstring, or its name.

    Examples
    --------
    >>> from unseed.intervals import HalfSampling
    >>> describe(HalfSampling())
    'fits to random halves of the rows'
    """
    own = getattr(method, "describe", None)
    if callable(own):
        return str(own())
    kind = type(method)
    first = (kind.__doc__ or "").strip().partition("\n")[0].rstrip(".")
    is_signature = first.startswith(f"{kind.__name__}(")  # what a dataclass writes where nobody did
    return kind.__name__ if is_signature or not first else first


def hashed_plan(method: IntervalMethod, streams: Streams) -> HashedPlan:
    """The method's resamples where rows are summed up and not held: a row's position decides how often it counts."""
    own = getattr(method, "hashed_plan", None)
    if not callable(own):
        raise InvalidInputError(
            f"interval={method} does not say how rows that are summed up are resampled: give it a method hashed_plan(streams), "
            "or use solver='exact'"
        )
    plan: HashedPlan = own(streams)
    return plan


def own_centre(method: IntervalMethod) -> Callable[[Replicates, FloatArray], FloatArray] | None:
    """The method's formula for its centre, or None for the mean of the plan's reference replicates."""
    own: Callable[[Replicates, FloatArray], FloatArray] | None = getattr(method, "centre", None)
    return own if callable(own) else None
