"""What was fitted: facts, how to fit it again, and what its intervals are about, in plain words."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from unseed import __version__
from unseed._estimators import MCDropoutRegressor, PNCRegressor
from unseed.intervals import describe
from unseed.networks import MLP

Fact = tuple[str, str]

_PACKAGES = ("numpy", "scipy", "scikit-learn", "torch")
_DATA = "another training set of the same size would move the prediction by this much"
_WITHOUT_BIAS = (
    "How far the network would be from the function even with infinitely many rows at this regularisation: that bias is not "
    "in this confidence interval. interval='truth' looks for it."
)


@dataclass(frozen=True)
class Wording:
    """What the intervals of an estimator are about."""

    target: str  # what the confidence interval is for
    seed_meaning: str  # what the procedural variance is, or why it is not known
    seed_is_taken_out: bool = False  # whether the prediction is free of it
    spread: str = "data"  # name of the standard error
    spread_meaning: str = _DATA
    caveat: str = _WITHOUT_BIAS  # what the confidence interval leaves out; empty where nothing needs to be said


def wording_of(estimator: Any) -> Wording:
    """Words that fit the estimator."""
    if isinstance(estimator, PNCRegressor):
        rest = "PNC takes it out, up to what a finite width leaves"
        if estimator.engine_.is_infinite:
            rest = "the PNC prediction does not depend on it"
        seed = f"another seed would have moved a single network's prediction by this much; {rest}"
        if not estimator.interval_.uses_posterior:
            return Wording("where this network would be with unlimited training rows", seed, True)
        meaning = f"{_DATA}, and what the rows cannot know"
        return Wording("where the function itself is", seed, True, spread_meaning=meaning, caveat="")
    if isinstance(estimator, MCDropoutRegressor):
        return Wording(
            "where most answers of the network with dropout on are; its width follows the dropout rate",
            "one network with dropout says nothing of other seeds",
            spread="dropout",
            spread_meaning="answers with other neurons dropped scatter by this much",
            caveat="What other training data would change: dropout does not measure it.",
        )
    seed = "other seeds would move the mean of the members by this much; the prediction contains it"
    if getattr(estimator, "members", 1) == 1:
        seed = "one network says nothing of other seeds: what they would change is mixed into the interval"
    if estimator.interval_ is not None:
        return Wording("where this predictor would be with unlimited training rows", seed)
    return Wording(
        "where most members of the ensemble are: it is about the seed, not about the data",
        seed,
        spread="members",
        spread_meaning="the members disagree by this much",
        caveat="What other training data would change: the members all saw the same rows.",
    )


def facts_of(estimator: Any, n_features: int) -> tuple[Fact, ...]:
    """What was fitted, as names and words."""
    facts = {"Model": type(estimator).__name__}
    facts["Trained on"] = f"{estimator.n_rows_:,} rows, {n_features:,} feature{'s'[: n_features != 1]}"
    facts["Network"] = _network(estimator)
    if (engine := getattr(estimator, "engine_", None)) is not None:
        facts["Engine"] = engine.describe()
    if (handling := getattr(estimator, "handling_", None)) is not None:
        facts["Rows"] = handling
    facts["Regularisation λ"] = f"{estimator.regularization_:.3g}"
    if (method := getattr(estimator, "interval_", None)) is not None:
        facts["Interval method"] = f"{describe(method)}: {method!r}"
    return tuple(facts.items())


def _network(estimator: Any) -> str:
    network, selection = estimator.network_, getattr(estimator, "selection_", None)
    if selection is not None:
        return f"{selection.best.architecture}; chosen from the data by {selection.criterion.replace('_', '-')}"
    if isinstance(network, MLP):
        return f"{network.activation}, {network.depth} hidden layer{'s'[: network.depth != 1]}"
    return f"a torch module, made by {getattr(network, '__name__', type(network).__name__)}"


@dataclass(frozen=True)
class Reproduction:
    """How to get the same again."""

    constructor: str  # the estimator as Python writes it
    chosen: str  # network and λ that were chosen from the data, as arguments; empty where they were given
    seed: str
    versions: tuple[tuple[str, str], ...]
    source: str  # the command or file it came from; empty where that was not said


def reproduction_of(estimator: Any, source: str | None) -> Reproduction:
    """Constructor, seed and versions of an estimator."""
    state = estimator.random_state
    seed = f"random_state={state!r}" if state is not None else "none was given: resamples and starts differ next time"
    versions = [("unseed", __version__), ("Python", platform.python_version()), *((name, version(name)) for name in _PACKAGES)]
    chosen = ""
    if estimator.network == "auto" or estimator.regularization == "auto":
        chosen = f"network={estimator.network_!r}, regularization={estimator.regularization_!r}"
    return Reproduction(estimator.__repr__(N_CHAR_MAX=100_000), chosen, seed, tuple(versions), source or "")
