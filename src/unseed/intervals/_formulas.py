"""The interval methods: the paper's three, two more for h*, and one for the function itself."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unseed._checks import check_whole_number
from unseed._random import Streams
from unseed._resampling import HashedPlan, Plan, batches, bootstrap, full, full_and, half_samples
from unseed._results import Estimate, FloatArray
from unseed.intervals._method import IntervalMethod, Replicates


class _NamedMethod(IntervalMethod):
    """A method of the library."""

    in_words: ClassVar[str]

    def describe(self) -> str:
        """In a user's words."""
        return self.in_words


@dataclass(frozen=True)
class _BatchMethod(_NamedMethod):
    """A method that compares disjoint batches of rows."""

    batches: int = 4

    def __post_init__(self) -> None:
        check_whole_number("batches", self.batches, at_least=2, reason="one batch has no spread to measure")


@dataclass(frozen=True)
class _ResampleMethod(_NamedMethod):
    """A method that compares random resamples with the fit to all rows."""

    replications: int = 4

    def __post_init__(self) -> None:
        check_whole_number("replications", self.replications, at_least=1, reason="no resample, no spread")


@dataclass(frozen=True)
class Batching(_BatchMethod):
    """Mean and spread of predictions from disjoint batches (the paper's Algorithm 2).

    Target: h*, the regularised fit to infinitely many data at the same λ.
    Assumes: i.i.d. rows, converged wide networks, batches large enough for normality; blind to bias.
    Cost: one PNC fit per batch on n/batches rows each: 1/batches² of a full fit in all.
    Prefer: for large n, where nothing else is affordable; not for small n, since the centre has a batch's bias.
    Interval: ψ ± t(batches − 1) · S/√batches.

    Parameters
    ----------
    batches : int
        m' ≥ 2.

    Examples
    --------
    >>> Batching(batches=4)
    Batching(batches=4)
    """

    in_words: ClassVar[str] = "fits to separate parts of the rows"

    def plan(self, n_rows: int, streams: Streams) -> Plan:
        """Algorithm 2, step 1: disjoint batches of equal size, to within one row."""
        return batches(n_rows, self.batches, streams)

    def hashed_plan(self, streams: Streams) -> HashedPlan:
        """Disjoint parts."""
        return HashedPlan("parts", self.batches, streams.seed, with_all=False)

    def estimate(self, replicates: Replicates, X: FloatArray) -> Estimate:
        """Algorithm 2, step 2: ψ_B and S_B/√m'."""
        predictions = replicates.predict(X)
        spread = predictions.std(axis=0, ddof=1)
        return Estimate(predictions.mean(axis=0), spread / np.sqrt(self.batches), self.batches - 1.0)


@dataclass(frozen=True)
class CheapBootstrap(_ResampleMethod):
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

    in_words: ClassVar[str] = "fits to rows drawn again"

    def plan(self, n_rows: int, streams: Streams) -> Plan:
        """Algorithm 3, steps 1 and 2: the data themselves, then resamples with replacement."""
        return full_and(bootstrap(n_rows, self.replications, streams))

    def hashed_plan(self, streams: Streams) -> HashedPlan:
        """All rows, then Poisson counts."""
        return HashedPlan("bootstrap", self.replications, streams.seed)

    def estimate(self, replicates: Replicates, X: FloatArray) -> Estimate:
        """Algorithm 3, step 3: ψ_C and S_C."""
        centre, *resampled = replicates.predict(X)
        spread = np.sqrt(np.mean((np.stack(resampled) - centre) ** 2, axis=0))
        return Estimate(centre, spread, float(self.replications))


@dataclass(frozen=True)
class InfinitesimalJackknife(_NamedMethod):
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

    in_words: ClassVar[str] = "the influence of every row"
    uses_influence: ClassVar[bool] = True

    def plan(self, n_rows: int, streams: Streams) -> Plan:
        """The data themselves: nothing is resampled."""
        return full(n_rows)

    def hashed_plan(self, streams: Streams) -> HashedPlan:
        """All rows."""
        return HashedPlan("all", seed=streams.seed)

    def estimate(self, replicates: Replicates, X: FloatArray) -> Estimate:
        """σ̂² = mean of the squared influence values; the normal law."""
        influence = replicates.influence(X)
        sigma = np.sqrt(np.mean(influence**2, axis=0))
        return Estimate(replicates.predict(X)[0], sigma / np.sqrt(replicates.sizes[0]), np.inf)


@dataclass(frozen=True)
class Sectioning(_BatchMethod):
    """Full-data prediction, spread of disjoint batches around it.

    Target: h*, and beyond: what the batches miss for having fewer data enters the spread, so bias widens the interval.
    Assumes: i.i.d. rows, converged wide networks; same asymptotics as batching.
    Cost: one full fit plus one per batch on n/batches rows: 1 + 1/batches² of a full fit.
    Prefer: as the default when the function itself, not h*, must be covered.
    Interval: h ± t(batches − 1) · S/√batches, S² = Σ(h_j − h)²/(batches − 1).

    Parameters
    ----------
    batches : int
        m' ≥ 2.

    Examples
    --------
    >>> Sectioning(batches=2).plan(6, Streams(seed=0)).sizes.tolist()
    [6, 3, 3]
    """

    in_words: ClassVar[str] = "fits to parts of the rows around the fit to all"

    def plan(self, n_rows: int, streams: Streams) -> Plan:
        """The data themselves, then disjoint batches of equal size, to within one row."""
        return full_and(batches(n_rows, self.batches, streams).counts)

    def hashed_plan(self, streams: Streams) -> HashedPlan:
        """All rows, then disjoint parts."""
        return HashedPlan("parts", self.batches, streams.seed)

    def estimate(self, replicates: Replicates, X: FloatArray) -> Estimate:
        """Spread of the batches around the full-data prediction, not around their own mean."""
        centre, *batches = replicates.predict(X)
        spread = np.sqrt(np.sum((np.stack(batches) - centre) ** 2, axis=0) / (self.batches - 1))
        return Estimate(centre, spread / np.sqrt(self.batches), self.batches - 1.0)


@dataclass(frozen=True)
class HalfSampling(_ResampleMethod):
    """Full-data prediction, spread of random halves around it.

    Target: h*, and beyond: what a half misses for having fewer data enters the spread, so bias widens the interval.
    Assumes: i.i.d. rows, converged wide networks, n large enough for normality.
    Cost: one full fit plus 1/8 of one per replication.
    Prefer: over the cheap bootstrap when repeated rows hurt (interpolation, λ → 0) or time is short.
    Interval: h ± t(replications) · S. Halves drawn without replacement need no factor: Var(h_half − h) = Var(h).

    Parameters
    ----------
    replications : int
        R ≥ 1.

    Examples
    --------
    >>> HalfSampling(replications=3).plan(7, Streams(seed=0)).sizes.tolist()
    [7, 3, 3, 3]
    """

    in_words: ClassVar[str] = "fits to random halves of the rows"

    def plan(self, n_rows: int, streams: Streams) -> Plan:
        """The data themselves, then random halves."""
        return full_and(half_samples(n_rows, self.replications, streams))

    def hashed_plan(self, streams: Streams) -> HashedPlan:
        """All rows, then random halves."""
        return HashedPlan("halves", self.replications, streams.seed)

    def estimate(self, replicates: Replicates, X: FloatArray) -> Estimate:
        """Root mean square distance of the halves from the full-data prediction."""
        centre, *halves = replicates.predict(X)
        n, half = replicates.sizes[:2]
        # Var(h_half − h) = σ²(1/half − 1/n) = σ²/n for exact halves; an odd n leaves this factor.
        correction = half / (n - half)
        spread = np.sqrt(correction * np.mean((np.stack(halves) - centre) ** 2, axis=0))
        return Estimate(centre, spread, float(self.replications))


@dataclass(frozen=True)
class TruthInterval(_BatchMethod):
    """Full-data prediction; variances of sectioning, of the posterior, of structure left in the errors and of a rival, added.

    Target: the regression function, not only h*. Not in the paper; `docs/truth.md` has the derivation and the scoreboard.
    Assumes: i.i.d. rows, a network chosen for the data, errors that a sum of curves can see where the network is wrong.
    Cost: sectioning, one triangular solve per new point, and leave-one-out errors of at most a thousand rows.
    Prefer: as the default; the methods of the paper where h* is the question.
    Interval: h ± t(n − 2) · √(S²/batches + a·(K(x,x) − k(x)ᵀA⁻¹k(x)) + τ²(x) + (h − h')²), h' the prediction of a network of
    another architecture that the data like nearly as well, where there is one. One degree of freedom goes to the mean of y, one
    to what is noise and what is not: of two rows none is left, and the interval has no end.

    Parameters
    ----------
    batches : int
        m' ≥ 2.

    Examples
    --------
    >>> TruthInterval(batches=4)
    TruthInterval(batches=4)
    """

    in_words: ClassVar[str] = "resampling, posterior, misfit and a rival network together"
    uses_posterior: ClassVar[bool] = True

    def plan(self, n_rows: int, streams: Streams) -> Plan:
        """That of sectioning."""
        return Sectioning(self.batches).plan(n_rows, streams)

    def hashed_plan(self, streams: Streams) -> HashedPlan:
        """That of sectioning."""
        return Sectioning(self.batches).hashed_plan(streams)

    def estimate(self, replicates: Replicates, X: FloatArray) -> Estimate:
        """The variances have different causes, and none of the methods behind them sees the others'."""
        sectioning = Sectioning(self.batches).estimate(replicates, X)
        parts = {
            "sampling": sectioning.standard_error**2,
            "posterior": replicates.posterior_variance(X),
            "misfit": replicates.misfit_variance(X),
            "rival": replicates.rival_variance(X),
        }
        missed = replicates.missed_variance(X)
        if missed is not None:
            parts |= {"posterior": parts["posterior"] - missed, "landmarks": missed}
        freedom = float(replicates.sizes[0]) - 2
        error = np.sqrt(sum(parts.values()))
        return Estimate(sectioning.centre, error if freedom > 0 else error + np.inf, max(freedom, 1.0), parts)
