"""One repetition: a data set, every method that is asked for, and what each of them said."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

import unseed
from unseed import (
    MLP,
    Batching,
    CheapBootstrap,
    DeepEnsembleRegressor,
    GradientDescent,
    HalfSampling,
    InfinitesimalJackknife,
    MCDropoutRegressor,
    PNCRegressor,
    Sectioning,
    SingleNetworkRegressor,
)
from unseed_paper.experiment import Experiment
from unseed_paper.preparation import REPLICATIONS, Preparation, resample_counts
from unseed_paper.problems import Array, Setting, seed_of
from unseed_paper.protocols import REGULARIZATION, engine_for
from unseed_paper.wide import WideNetwork, dropout_passes, separate_bootstrap

LEVELS = (0.95, 0.90)
PASSES = 100
_RESAMPLING = {
    "pnc_batching": Batching(batches=4),
    "pnc_cheap_bootstrap": CheapBootstrap(replications=REPLICATIONS),
    "algorithm_3": CheapBootstrap(replications=REPLICATIONS),
    "pnc_jackknife": InfinitesimalJackknife(),
    "sectioning": Sectioning(batches=4),
    "half_sampling": HalfSampling(replications=4),
}


@dataclass(frozen=True)
class Intervals:
    """Centre and half widths at some points."""

    centre: Array  # (n_points,)
    half_widths: Array  # (n_levels, n_points)

    @classmethod
    def from_spread(cls, centre: Array, spread: Array, degrees_of_freedom: float) -> Intervals:
        """Centre ± t quantile times spread, at all levels."""
        quantiles = np.array([stats.t.ppf((1 + level) / 2, degrees_of_freedom) for level in LEVELS])
        return cls(centre, quantiles[:, None] * spread)


@dataclass(frozen=True)
class Trial:
    """One repetition of a setting."""

    experiment: Experiment
    setting: Setting
    preparation: Preparation
    repetition: int

    def records(self, methods: tuple[str, ...]) -> Iterator[dict[str, Any]]:
        """One record for each method."""
        answer = self._interval_record if self.experiment.is_about_intervals else self._error_record
        shared = self._seconds_of_the_choice()
        for method in methods:
            start = time.perf_counter() - shared
            figures = answer(method)
            yield {
                "setting": self.setting.name,
                "repetition": self.repetition,
                "method": method,
                "seed": self.seed,
                "training": self.preparation.training_of(method),
                **figures,
                "seconds": round(time.perf_counter() - start, 4),
                "device": self.experiment.device,
                "versions": versions(),
            }

    def _seconds_of_the_choice(self) -> float:
        """A network that is chosen serves all methods, and each of them needs it."""
        start = time.perf_counter()
        if self.experiment.rules.network is None:
            _ = self._chosen
        return time.perf_counter() - start

    @property
    def seed(self) -> int:
        """Of everything random but the data."""
        return seed_of("method", self.experiment.protocol, self.setting.name, self.repetition)

    @cached_property
    def data(self) -> Any:
        """Rows to learn from and test rows."""
        return self.setting.sample(self.repetition)

    @cached_property
    def places(self) -> Any:
        """Where intervals are judged."""
        return self.setting.places()

    # ---------------------------------------------------------------- intervals

    def _interval_record(self, method: str) -> dict[str, Any]:
        special: dict[str, Callable[[], Intervals]] = {"dropout_uq": self._dropout, "auto": self._auto}
        if method == "pnc_cheap_bootstrap" and self.experiment.rules.separate_resamples:
            special[method] = self._separate_bootstrap
        found = special[method]() if method in special else self._resampled(method)
        places = self.places
        target = self.preparation.converged_target if method == "pnc_jackknife" else self.preparation.target
        own, domain = slice(0, places.n_own), slice(places.n_own, None)
        off = np.abs(found.centre - places.truth)
        off_target = None if target is None else np.abs(found.centre - target)
        return {
            "truth": _numbers(places.truth[own]),
            "centre": _numbers(found.centre[own]),
            "half_width_95": _numbers(found.half_widths[0, own]),
            "half_width_90": _numbers(found.half_widths[1, own]),
            "target": None if target is None else _numbers(target[own]),
            "domain_covered_95": _bits(off[domain] <= found.half_widths[0, domain]),
            "domain_covered_90": _bits(off[domain] <= found.half_widths[1, domain]),
            "domain_target_95": None if off_target is None else _bits(off_target[domain] <= found.half_widths[0, domain]),
            "domain_width_95": float(2 * found.half_widths[0, domain].mean()),
            "domain_width_90": float(2 * found.half_widths[1, domain].mean()),
        }

    def _resampled(self, method: str) -> Intervals:
        # the jackknife is defined for training to convergence only
        budget = None if method == "pnc_jackknife" else self.preparation.budget
        options = self._network_options() | {"interval": _RESAMPLING[method], "engine": self._engine(budget)}
        return self._asked(PNCRegressor(**options))

    def _auto(self) -> Intervals:
        return _intervals(self._chosen, self.places.X)

    def _separate_bootstrap(self) -> Intervals:
        """The authors' bootstrap: base and auxiliary network of a replicate on resamples of their own."""
        X, y, budget, network = self.data.X, self.data.y, self._budget, self._network
        base, auxiliary = (resample_counts(len(X), self.seed, part) for part in ("base", "auxiliary"))
        if self.experiment.engine == "kernel":
            wide = WideNetwork.at(X, self.places.X, network, budget, REGULARIZATION, self.experiment.device)
            centre, replicates = separate_bootstrap(wide, y, base, auxiliary, np.random.default_rng([self.seed, 1]))
        else:
            everything = np.ones(len(X), dtype=np.int64)
            centre = self._pair(everything, everything, 0)
            replicates = np.stack([self._pair(base[r], auxiliary[r], r + 1) for r in range(REPLICATIONS)])
        spread = np.sqrt(np.mean((replicates - centre) ** 2, axis=0))
        return Intervals.from_spread(centre, spread, REPLICATIONS)

    def _pair(self, base: npt.NDArray[np.int64], auxiliary: npt.NDArray[np.int64], start: int) -> Array:
        """Base network minus auxiliary network: the same seed gives both the same start."""
        X, y = self.data.X, self.data.y
        options = self._network_options() | {
            "interval": None,
            "engine": self._engine(self._budget),
            "random_state": seed_of(self.seed, "start", start),
        }
        predictions = []
        for counts, labels in ((base, y), (auxiliary, np.zeros_like(y))):
            rows = np.repeat(np.arange(len(X)), counts)
            predictions.append(SingleNetworkRegressor(**options).fit(X[rows], labels[rows]).predict(self.places.X))
        return np.asarray(predictions[0] - predictions[1])

    def _dropout(self) -> Intervals:
        rate, budget = self.preparation.dropout_rate, self._budget
        assert rate is not None
        if self.experiment.engine == "kernel":
            wide = WideNetwork.at(self.data.X, self.places.X, self._network, budget, REGULARIZATION, self.experiment.device)
            answers = dropout_passes(wide, self.data.y, rate, PASSES, np.random.default_rng([self.seed, 2]))
            return Intervals.from_spread(answers.mean(axis=0), answers.std(axis=0, ddof=1), np.inf)
        options = self._network_options() | {"rate": rate, "passes": PASSES, "trainer": budget}
        return self._asked(MCDropoutRegressor(**options))

    def _asked(self, regressor: Any) -> Intervals:
        return _intervals(regressor.fit(self.data.X, self.data.y), self.places.X)

    # ------------------------------------------------------------------- errors

    def _error_record(self, method: str) -> dict[str, Any]:
        predictions = self._pnc_predictions if method == "pnc" else self._other_predictions(method)
        error = float(np.mean((predictions - self.data.y_test) ** 2))
        return {"mse": error, "mse_over_seeds": self._error_over_seeds(method)}

    def _error_over_seeds(self, method: str) -> float | None:
        """Mean over all seeds, in closed form: the error of PNC plus the seed's variance over the number of members."""
        if self.experiment.engine != "kernel":
            return None
        error = float(np.mean((self._pnc_predictions - self.data.y_test) ** 2))
        members = {"pnc": np.inf, "base_network": 1, "deep_ensemble_2": 2, "deep_ensemble_5": 5}[method]
        return error + self._seed_variance / members

    @cached_property
    def _seed_variance(self) -> float:
        return float(self._pnc.get_prediction(self.data.X_test).components.procedural.mean())

    @cached_property
    def _pnc(self) -> PNCRegressor:
        if self.experiment.rules.network is None:
            return self._chosen
        options = self._network_options() | {"interval": Sectioning(), "engine": self._engine(self.preparation.budget)}
        return PNCRegressor(**options).fit(self.data.X, self.data.y)

    @cached_property
    def _pnc_predictions(self) -> Array:
        return np.asarray(self._pnc.predict(self.data.X_test))

    @cached_property
    def _drawn(self) -> Array:
        """Eight networks of other seeds, for the base network (1) and the ensembles (2 and 5). Shape (8, n_test)."""
        return np.asarray(self._pnc.sample_networks(self.data.X_test, 8, random_state=self.seed))

    def _other_predictions(self, method: str) -> Array:
        if self.experiment.engine == "kernel":
            members = {"base_network": [0], "deep_ensemble_2": [1, 2], "deep_ensemble_5": [3, 4, 5, 6, 7]}[method]
            return np.asarray(self._drawn[members].mean(axis=0))
        options = self._network_options() | {"interval": None, "engine": self._engine(self.preparation.budget)}
        if method == "base_network":
            regressor: Any = SingleNetworkRegressor(**options)
        else:
            regressor = DeepEnsembleRegressor(members=int(method[-1]), **options)
        return np.asarray(regressor.fit(self.data.X, self.data.y).predict(self.data.X_test))

    # ------------------------------------------------------------------ options

    @cached_property
    def _chosen(self) -> PNCRegressor:
        """What a user gets, without a word about how."""
        regressor = PNCRegressor(random_state=self.seed, device=self.experiment.device, engine=self.experiment.engine)
        return regressor.fit(self.data.X, self.data.y)

    def _network_options(self) -> dict[str, Any]:
        common = {"random_state": self.seed, "device": self.experiment.device}
        network = self.experiment.rules.network
        if network is not None:
            return common | {"network": network, "regularization": REGULARIZATION, "standardize": False}
        chosen = self._chosen  # its network, so that methods differ in nothing else
        return common | {"network": chosen.network_, "regularization": chosen.regularization_}

    def _engine(self, budget: GradientDescent | None) -> Any:
        return engine_for(self.experiment.engine, budget)

    @property
    def _network(self) -> MLP:
        assert self.experiment.rules.network is not None
        return self.experiment.rules.network

    @property
    def _budget(self) -> GradientDescent:
        assert self.preparation.budget is not None
        return self.preparation.budget


@cache
def versions() -> dict[str, str]:
    """What computed a record."""
    import scipy
    import sklearn
    import torch

    libraries = {"unseed": unseed, "torch": torch, "numpy": np, "scipy": scipy, "scikit-learn": sklearn}
    return {"python": platform.python_version()} | {name: str(module.__version__) for name, module in libraries.items()}


def _intervals(regressor: Any, points: Array) -> Intervals:
    centre, bounds = regressor.predict_interval(points, confidence_level=list(LEVELS))
    return Intervals(centre, (bounds[:, 1] - bounds[:, 0]).T / 2)


def _numbers(values: Array) -> list[float]:
    return [float(value) for value in values]


def _bits(flags: npt.NDArray[np.bool_]) -> str:
    return "".join("01"[int(flag)] for flag in flags)
