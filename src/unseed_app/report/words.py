"""Plain words for what a reader meets: interval methods, sources of uncertainty, findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unseed._estimators import BlockwisePNCRegressor, DeepEnsembleRegressor, MCDropoutRegressor, PNCRegressor

PREDICTION_INTERVAL = "where one new, noisy observation will be"

PARTS = {
    "posterior": (
        "few similar training rows",
        "what the training rows cannot tell about a function this smooth: large where they have few neighbours",
    ),
    "sampling": ("parts of the data disagree", "fits to parts of the training rows disagree"),
    "misfit": ("structure the network missed", "structure the network has left in its errors"),
    "rival": ("a rival network disagrees", "a different network, which the data like nearly as well, disagrees"),
}
"""Parts of the data's variance: in a few words for one row, and in a clause for all."""


@dataclass(frozen=True)
class Wording:
    """What the intervals of an estimator are about.

    Attributes
    ----------
    target : str
        What the confidence interval is for.
    spread, spread_meaning : str
        Name and meaning of the standard error.
    seed_meaning : str
        What the procedural variance is, or why it is not known.
    seed_is_taken_out : bool
        Whether the prediction is free of it.
    caveat : str
        What the confidence interval leaves out; empty where nothing needs to be said.
    """

    target: str
    spread: str
    spread_meaning: str
    seed_meaning: str
    seed_is_taken_out: bool
    caveat: str = ""


_DATA = "another training set of the same size would move the prediction by this much"
_WITHOUT_BIAS = (
    "How far the network would be from the function even with infinitely many rows at this regularisation: that bias is not "
    "in this confidence interval. interval='truth' looks for it."
)


def wording_of(estimator: Any) -> Wording:
    """Words that fit the estimator."""
    if isinstance(estimator, PNCRegressor):
        return _of_pnc(estimator)
    if isinstance(estimator, BlockwisePNCRegressor):
        reason = f"{type(estimator).__name__} does not keep what would tell how far another seed moves a single network"
        return Wording(
            "where the average of the blocks' networks would be with unlimited blocks",
            "data",
            _DATA,
            reason,
            True,
            ("The bias of networks that see one block each: the interval does not see it, and larger blocks have less of it."),
        )
    if isinstance(estimator, MCDropoutRegressor):
        return Wording(
            "where most answers of the network with dropout on are; its width follows the dropout rate",
            "dropout",
            "answers with other neurons dropped scatter by this much",
            "one network with dropout says nothing of other seeds",
            False,
            "What other training data would change: dropout does not measure it.",
        )
    return _of_ensemble(estimator)


def _of_pnc(estimator: PNCRegressor) -> Wording:
    is_for_truth = estimator.interval_.uses_posterior
    target = "where the function itself is" if is_for_truth else "where this network would be with unlimited training rows"
    seed = "another seed would have moved a single network's prediction by this much"
    if estimator.engine_.is_infinite:
        seed += "; the PNC prediction does not depend on it"
    else:
        seed += "; PNC takes it out, up to what a finite width leaves"
    spread = f"{_DATA}, and what the rows cannot know" if is_for_truth else _DATA
    return Wording(target, "data", spread, seed, True, "" if is_for_truth else _WITHOUT_BIAS)


def _of_ensemble(estimator: DeepEnsembleRegressor) -> Wording:
    is_single = getattr(estimator, "members", 1) == 1
    seed = (
        "one network says nothing of other seeds: what they would change is mixed into the interval"
        if is_single
        else "other seeds would move the mean of the members by this much; the prediction contains it"
    )
    if estimator.interval_ is None:
        return Wording(
            "where most members of the ensemble are: it is about the seed, not about the data",
            "members",
            "the members disagree by this much",
            seed,
            False,
            "What other training data would change: the members all saw the same rows.",
        )
    return Wording("where this predictor would be with unlimited training rows", "data", _DATA, seed, False, _WITHOUT_BIAS)
