"""What was fitted, and how to fit it again."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from unseed import __version__
from unseed.intervals import describe
from unseed.networks import MLP

_PACKAGES = ("numpy", "scipy", "scikit-learn", "torch")


@dataclass(frozen=True)
class Reproduction:
    """How to get the same again.

    Attributes
    ----------
    constructor : str
        The estimator as Python writes it.
    chosen : str
        Network and λ that were chosen from the data, as arguments; empty where they were given.
    seed : str
    versions : tuple of (name, version)
    source : str
        The command or file it came from; empty where that was not said.
    """

    constructor: str
    chosen: str
    seed: str
    versions: tuple[tuple[str, str], ...]
    source: str


def reproduction_of(estimator: Any, source: str | None) -> Reproduction:
    """Constructor, seed and versions of an estimator."""
    state = estimator.random_state
    seed = f"random_state={state!r}" if state is not None else "none was given: resamples and starts differ next time"
    versions = [("unseed", __version__), ("Python", platform.python_version()), *((name, version(name)) for name in _PACKAGES)]
    chosen = ""
    if estimator.network == "auto" or estimator.regularization == "auto":
        chosen = f"network={estimator.network_!r}, regularization={estimator.regularization_!r}"
    return Reproduction(estimator.__repr__(N_CHAR_MAX=100_000), chosen, seed, tuple(versions), source or "")


Fact = tuple[str, str]


def facts_of(estimator: Any, n_features: int) -> tuple[Fact, ...]:
    """What was fitted, as names and words."""
    facts = [("Model", type(estimator).__name__)]
    rows = getattr(estimator, "n_rows_", None)
    if rows is not None:
        blocks = f" in {estimator.n_blocks_:,} blocks" if hasattr(estimator, "n_blocks_") else ""
        facts.append(("Trained on", f"{rows:,} rows{blocks}, {n_features:,} feature{'s'[: n_features != 1]}"))
    facts.append(("Network", _network(estimator)))
    engine = getattr(estimator, "engine_", None)
    if engine is not None:
        facts.append(("Engine", engine.describe()))
    facts.append(("Regularisation λ", f"{estimator.regularization_:.3g}"))
    method = getattr(estimator, "interval_", None)
    if method is not None:
        facts.append(("Interval method", f"{describe(method)}: {method!r}"))
    return tuple(facts)


def _network(estimator: Any) -> str:
    network, selection = estimator.network_, getattr(estimator, "selection_", None)
    if selection is not None:
        return f"{selection.best.architecture}; chosen from the data by {selection.criterion.replace('_', '-')}"
    if isinstance(network, MLP):
        return f"{network.activation}, {network.depth} hidden layer{'s'[: network.depth != 1]}"
    return f"a torch module, made by {getattr(network, '__name__', type(network).__name__)}"
