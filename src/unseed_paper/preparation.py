"""What has to be known about a setting before its first repetition: training budget, dropout rate, the theorems' target.

All of it comes from pilot data sets and from the population, none from the repetitions that are judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from unseed import MLP, CheapBootstrap, GradientDescent, KernelEngine, PNCRegressor
from unseed.kernels import nngp
from unseed_paper.experiment import Experiment
from unseed_paper.problems import Array, Setting, seed_of
from unseed_paper.protocols import REGULARIZATION
from unseed_paper.wide import WideNetwork, rate_for_width, separate_bootstrap

REPLICATIONS = 4
POPULATION_ROWS = 2048
_PILOTS = (-2, -3, -4)


@dataclass(frozen=True)
class Preparation:
    """Of one setting.

    Attributes
    ----------
    budget : GradientDescent or None
        None trains to convergence.
    dropout_rate : float or None
    target, converged_target : array or None
        h*, what the same training makes of infinitely many data, at the places where intervals are judged: after the
        budget, and after training to convergence (for the jackknife).
    """

    budget: GradientDescent | None
    dropout_rate: float | None = None
    target: Array | None = None
    converged_target: Array | None = None

    def training_of(self, method: str) -> dict[str, float] | str:
        """How the networks behind a method are trained, as records say it."""
        if self.budget is None or method == "pnc_jackknife":
            return "converged"
        words: dict[str, float] = {"steps": self.budget.steps, "rate": float(self.budget.rate)}
        return words | {"dropout": self.dropout_rate} if method == "dropout_uq" and self.dropout_rate else words


def prepare(experiment: Experiment, setting: Setting) -> Preparation:
    """Everything that the methods of an experiment need to know of a setting."""
    rules = experiment.rules
    budget = rules.budget(setting, for_errors=not experiment.is_about_intervals)
    if budget is None or rules.network is None or not experiment.is_about_intervals:
        return Preparation(budget)  # a network chosen anew for every data set has no one h*
    rate = None
    if "dropout_uq" in experiment.methods:
        rate = _dropout_rate(setting, rules.network, budget, separate=rules.separate_resamples)
    converged = _target(setting, rules.network, None) if "pnc_jackknife" in experiment.methods else None
    return Preparation(budget, rate, _target(setting, rules.network, budget), converged)


def resample_counts(n_rows: int, seed: int, part: str) -> npt.NDArray[np.int64]:
    """How often each row is drawn in each of four bootstrap resamples. Shape (4, n_rows)."""
    rng = np.random.default_rng([seed, seed_of(part)])
    return np.stack([np.bincount(rng.integers(n_rows, size=n_rows), minlength=n_rows) for _ in range(REPLICATIONS)])


def _target(setting: Setting, network: MLP, budget: GradientDescent | None) -> Array:
    X, y = setting.population(POPULATION_ROWS)
    engine = KernelEngine() if budget is None else KernelEngine(training=budget)
    options: dict[str, Any] = {"network": network, "regularization": REGULARIZATION, "standardize": False, "device": "cpu"}
    fitted = PNCRegressor(interval=CheapBootstrap(replications=1), engine=engine, random_state=0, **options).fit(X, y)
    return np.asarray(fitted.predict(setting.places().X))


def _dropout_rate(setting: Setting, network: MLP, budget: GradientDescent, *, separate: bool) -> float:
    """The rate whose intervals at the paper's points are as wide as those of the PNC cheap bootstrap.

    The paper tunes the rate until widths are similar; here the root mean square width over the points is the mean width of
    the bootstrap on three pilot data sets.
    """
    places = setting.places()
    own = places.X[: places.n_own]
    widths = [_bootstrap_width(setting, pilot, own, network, budget, separate=separate) for pilot in _PILOTS]
    variance = np.diagonal(nngp(own, network=network)).mean()
    return rate_for_width(float(np.mean(widths)), float(stats.norm.ppf(0.975)), float(variance))


def _bootstrap_width(
    setting: Setting, pilot: int, points: Array, network: MLP, budget: GradientDescent, *, separate: bool
) -> float:
    data, seed = setting.sample(pilot), seed_of("pilot", setting.name, pilot)
    wide = WideNetwork.at(data.X, points, network, budget, REGULARIZATION)
    base = resample_counts(len(data.X), seed, "base")
    auxiliary = resample_counts(len(data.X), seed, "auxiliary") if separate else base
    centre, replicates = separate_bootstrap(wide, data.y, base, auxiliary, np.random.default_rng(seed))
    spread = np.sqrt(np.mean((replicates - centre) ** 2, axis=0))
    return float(2 * stats.t.ppf(0.975, REPLICATIONS) * spread.mean())
