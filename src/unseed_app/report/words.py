"""Plain words for what a reader meets: interval methods, sources of uncertainty, findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unseed._estimators import BlockwisePNCRegressor, DeepEnsembleRegressor, MCDropoutRegressor, PNCRegressor
from unseed._findings import Finding

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


FINDINGS = {
    "structure left in the errors, share of them": (
        "The errors look like noise: no pattern is left in them.",
        "There is a pattern left in the errors.",
    ),
    "left-out errors over what is expected, squared": (
        "Rows left out one at a time are missed by no more than the model expects.",
        "Rows left out one at a time are missed by more than the model expects.",
    ),
    "noise, share of the variance of y": (
        "The features explain more than noise.",
        "Almost everything in y looks like noise to this model.",
    ),
    "evidence per row that another network has more": (
        "No network that was tried fits the data clearly better.",
        "Another network would fit these data clearly better.",
    ),
    "points far from the training rows, share": (
        "Few or none of the rows here lie outside what the training rows cover.",
        "Many of the rows here lie outside what the training rows cover.",
    ),
    "condition number of the kernel matrix": (
        "The arithmetic is accurate.",
        "Rounding errors may show: the equations behind the fit are nearly singular.",
    ),
    "bias of the resamples, in half widths": (
        "Fits to parts of the data scatter around the full fit instead of leaning to one side.",
        "Fits to parts of the data all lean to one side of the full fit: there is bias that more data would move.",
    ),
    "gradient left, relative to the start's": (
        "Training went on until little was left to gain.",
        "Training stopped before it was finished.",
    ),
    "networks that did not converge": ("Every network converged.", "Some networks did not converge."),
    "change of the tangent kernel in training": (
        "The networks are wide enough: training hardly changed how they respond.",
        "The networks are too narrow for the theory: training changed how they respond.",
    ),
    "distance of the parameters from their start": (
        "The weights stayed near their start, as the theory needs.",
        "The weights moved far from their start, further than the theory allows for.",
    ),
    "trained against linearised prediction, in half widths": (
        "Trained networks agree with their linear approximation.",
        "Trained networks differ visibly from their linear approximation.",
    ),
}
"""What each finding of `diagnose` says when it holds, and when it does not."""


@dataclass(frozen=True)
class PlainFinding:
    """A finding as a sentence, with its figures and, where it does not hold, what to do."""

    sentence: str
    holds: bool
    figures: str
    advice: str


def in_words(finding: Finding) -> PlainFinding:
    """The sentence for a finding; its own name where there is none.

    Examples
    --------
    >>> in_words(Finding("networks that did not converge", 0, 1, "widen the network")).sentence
    'Every network converged.'
    """
    fallback = f"{finding.name}: {'fine' if finding.holds else 'not as it should be'}."
    sentences = FINDINGS.get(finding.name, (fallback, fallback))
    figures = f"{finding.name}: {finding.value:.2g}, should be below {finding.limit:.2g}"
    return PlainFinding(
        sentences[0 if finding.holds else 1], finding.holds, figures, "" if finding.holds else f"{finding.advice}."
    )
