"""Interval methods: from replicate predictions to centre, standard error and degrees of freedom."""

from unseed._listing import listed, not_known
from unseed._random import Streams
from unseed._resampling import HashedPlan, Plan
from unseed._results import Estimate
from unseed.errors import InvalidInputError
from unseed.intervals._formulas import (
    Batching,
    CheapBootstrap,
    HalfSampling,
    InfinitesimalJackknife,
    Sectioning,
    TruthInterval,
)
from unseed.intervals._laplace import LaplaceInterval
from unseed.intervals._method import IntervalMethod, Replicates, describe, hashed_plan, own_centre

__all__ = [
    "METHODS",
    "Batching",
    "CheapBootstrap",
    "Estimate",
    "HalfSampling",
    "HashedPlan",
    "InfinitesimalJackknife",
    "IntervalMethod",
    "LaplaceInterval",
    "Plan",
    "Replicates",
    "Sectioning",
    "Streams",
    "TruthInterval",
    "describe",
    "hashed_plan",
    "own_centre",
    "resolve_interval",
]

METHODS: dict[str, type[IntervalMethod]] = listed(
    truth="unseed.intervals._formulas:TruthInterval",
    sectioning="unseed.intervals._formulas:Sectioning",
    batching="unseed.intervals._formulas:Batching",
    cheap_bootstrap="unseed.intervals._formulas:CheapBootstrap",
    half_sampling="unseed.intervals._formulas:HalfSampling",
    infinitesimal_jackknife="unseed.intervals._formulas:InfinitesimalJackknife",
    laplace="unseed.intervals._laplace:LaplaceInterval",
)
"""The one list of interval methods: by these names they are asked for, and by their classes' names they are kept in files."""


def resolve_interval(
    interval: str | IntervalMethod, n_rows: int, *, has_posterior: bool = False, is_bent: bool = False
) -> IntervalMethod:
    """Interval method of that name, or the object itself.

    ``"auto"`` is the interval for the truth where networks have a posterior, sectioning where they have none: by name both
    have as many batches as there are rows where there are fewer than four. Every method needs two rows: a resample of one row
    is that row, and its zero spread would be a lie. Under a loss that bends, the interval for the truth is `LaplaceInterval`.
    """
    if n_rows < 2:
        raise InvalidInputError(
            f"n_samples={n_rows}: an interval needs at least two rows, because one sample has no spread to measure"
        )
    if is_bent and interval in ("auto", "truth"):
        return LaplaceInterval()
    if is_bent and isinstance(interval, TruthInterval):
        raise InvalidInputError(
            f"interval={interval} is for loss='squared'; use interval='truth', which is LaplaceInterval() here"
        )
    if isinstance(interval, str):
        known = {"auto": TruthInterval if has_posterior else Sectioning, **METHODS}.get(interval)
        if known in (TruthInterval, Sectioning):
            return known(min(4, n_rows))
        if known is not None:
            return known()
    elif not isinstance(interval, type) and callable(getattr(interval, "plan", None)):
        return _checked(interval)
    raise not_known("interval", interval, ("auto", *METHODS), "an object such as Sectioning(batches=5)")


def _checked(method: object) -> IntervalMethod:
    """A user's own object, which must answer the whole protocol."""
    if isinstance(method, IntervalMethod):
        return method
    missing = [name for name in ("estimate", "uses_influence", "uses_posterior") if not hasattr(method, name)]
    raise InvalidInputError(
        f"interval={method!r} has no {' and no '.join(missing)}; derive its class from unseed.intervals.IntervalMethod and "
        "write plan and estimate"
    )
