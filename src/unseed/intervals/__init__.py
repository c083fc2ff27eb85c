"""Interval methods: from replicate predictions to centre, standard error and degrees of freedom."""

from unseed.errors import InvalidInputError
from unseed.intervals._batching import Batching
from unseed.intervals._cheap_bootstrap import CheapBootstrap
from unseed.intervals._half_sampling import HalfSampling
from unseed.intervals._infinitesimal_jackknife import InfinitesimalJackknife
from unseed.intervals._method import IntervalMethod, Replicates
from unseed.intervals._sectioning import Sectioning
from unseed.intervals._truth import TruthInterval

__all__ = [
    "METHODS",
    "Batching",
    "CheapBootstrap",
    "HalfSampling",
    "InfinitesimalJackknife",
    "IntervalMethod",
    "Replicates",
    "Sectioning",
    "TruthInterval",
    "resolve_interval",
]

_Method = Batching | CheapBootstrap | HalfSampling | InfinitesimalJackknife | Sectioning | TruthInterval
METHODS: dict[str, type[_Method]] = {
    "truth": TruthInterval,
    "sectioning": Sectioning,
    "batching": Batching,
    "cheap_bootstrap": CheapBootstrap,
    "half_sampling": HalfSampling,
    "infinitesimal_jackknife": InfinitesimalJackknife,
}


def resolve_interval(interval: str | IntervalMethod, n_rows: int, *, has_posterior: bool = False) -> IntervalMethod:
    """Interval method of that name, or the object itself.

    ``"auto"`` is the interval for the truth where training converges, sectioning where it stops earlier, with as many
    batches as there are rows where there are fewer than four. Every method needs two rows: a resample of one row is that
    row, and its zero spread would be a lie.
    """
    if n_rows < 2:
        raise InvalidInputError(
            f"n_samples={n_rows}: an interval needs at least two rows, because one sample has no spread to measure"
        )
    if isinstance(interval, str):
        if interval == "auto":
            batches = min(4, n_rows)
            return TruthInterval(batches) if has_posterior else Sectioning(batches)
        if interval in METHODS:
            return METHODS[interval]()
    elif isinstance(interval, IntervalMethod) and not isinstance(interval, type):
        return interval
    raise InvalidInputError(f"interval={interval!r} is not known; use 'auto', {', '.join(map(repr, METHODS))}, or an object")
