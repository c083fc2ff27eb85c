"""Everything a report says, as plain data: all its numbers are computed here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unseed._findings import Finding
from unseed._progress import Progress
from unseed._results import FloatArray, Prediction
from unseed.errors import InvalidInputError, NotAvailableError
from unseed.plots._sources import select_output
from unseed_app.report.accuracy import Accuracy, CoverageCurve, inside
from unseed_app.report.features import Answers, Band, Features, Indices, Reason
from unseed_app.report.fitted import Fact, Reproduction, facts_of, reproduction_of
from unseed_app.report.held_out import HeldOut
from unseed_app.report.predicting import asks_for_seeds, n_pieces, predict_in_pieces
from unseed_app.report.words import Wording, wording_of

_SEEDS, _ROWS_WITH_SEEDS = 20, 12


@dataclass(frozen=True)
class Output:
    """One output at every row; arrays have shape (n_rows,), and what is not known is None.

    Attributes
    ----------
    name : str
    mean, standard_error : array
    confidence, prediction : array
        Half widths of the two intervals.
    seed, noise : array or None
        Standard deviations over seeds, and of an observation.
    parts : mapping from str to array
        Variances that the squared standard error is the sum of.
    observed : array or None
    accuracy : Accuracy or None
    coverage : CoverageCurve or None
    bands : tuple of Band
    reasons : mapping from row to tuple of (position among the shown features, share of the standard error saved)
    draws : array of shape (n_rows_with_seeds, n_seeds) or None
        Predictions of single networks of other seeds less ours.
    """

    name: str
    mean: FloatArray
    standard_error: FloatArray
    confidence: FloatArray
    prediction: FloatArray | None
    seed: FloatArray | None
    noise: FloatArray | None
    parts: Mapping[str, FloatArray]
    observed: FloatArray | None
    accuracy: Accuracy | None
    coverage: CoverageCurve | None
    bands: tuple[Band, ...]
    reasons: Mapping[int, tuple[Reason, ...]]
    draws: FloatArray | None


@dataclass(frozen=True)
class Report:
    """What a page shows.

    Attributes
    ----------
    cautions : tuple of str
        Sentences to read first.
    level : float
    rows : HeldOut
    facts : tuple of (name, words)
    wording : Wording
    outputs : tuple of Output
    shown : array of int
        Features of which rows show their values, most relevant first.
    order_of_features : str
        How relevance was found.
    rows_with_seeds : array of int
        Rows of ``draws``.
    findings : tuple of Finding
        What does not hold comes first.
    outlook : str
    far_rows : tuple of int or None
        Rows outside what the training rows cover; None where that is not known.
    unknown : tuple of str
        What this report cannot say.
    reproduction : Reproduction
    """

    cautions: tuple[str, ...]
    level: float
    rows: HeldOut
    facts: tuple[Fact, ...]
    wording: Wording
    outputs: tuple[Output, ...]
    shown: Indices
    order_of_features: str
    rows_with_seeds: Indices
    findings: tuple[Finding, ...]
    outlook: str
    far_rows: tuple[int, ...] | None
    unknown: tuple[str, ...]
    reproduction: Reproduction


def build(
    estimator: Any,
    rows: HeldOut,
    level: float,
    source: str | None = None,
    cautions: Sequence[str] = (),
    progress: Progress | None = None,
) -> Report:
    """Ask a fitted estimator everything that the page shows."""
    with (progress or Progress()).steps("asking the model", n_pieces(len(rows.X)) + 3) as step:
        seeds = asks_for_seeds(estimator, len(rows.X))
        prediction = predict_in_pieces(estimator, rows.taken, len(rows.X), step, seeds=seeds)
        _check_finite(rows, prediction)
        wording = wording_of(estimator)
        answers = Features(estimator, rows.X, rows.features, level).ask(_columns(prediction.standard_error))
        step()
        rows_with_seeds, draws = _draw_seeds(estimator, rows, prediction)
        step()
        outputs = _outputs(rows, prediction, level, draws, answers)
        findings, outlook, far = _diagnosis(estimator, rows)
        step()
    return Report(
        cautions=tuple(cautions),
        level=level,
        rows=rows,
        facts=facts_of(estimator, len(rows.features) or int(np.prod(rows.X.shape[1:]))),
        wording=wording,
        outputs=outputs,
        shown=answers.shown,
        order_of_features=answers.order,
        rows_with_seeds=rows_with_seeds,
        findings=findings,
        outlook=outlook,
        far_rows=far,
        unknown=_unknown(estimator, rows, wording, outputs, far, len(answers.explained)),
        reproduction=reproduction_of(estimator, source),
    )


def _check_finite(rows: HeldOut, prediction: Prediction) -> None:
    """Refuse rows about which there is nothing to draw."""
    is_finite = np.isfinite(_columns(prediction.mean)) & np.isfinite(_columns(prediction.standard_error))
    beyond = np.flatnonzero(~is_finite.all(axis=1))
    if len(beyond):
        raise InvalidInputError(
            f"row {rows.row_labels[beyond[0]]} is so far from the training rows that its interval is infinite"
            f"{f' (and so are {len(beyond) - 1:,} more)' if len(beyond) > 1 else ''}; leave it out of the report"
        )


def _outputs(
    rows: HeldOut, prediction: Prediction, level: float, draws: FloatArray | None, answers: Answers
) -> tuple[Output, ...]:
    outputs = []
    for k, name in enumerate(rows.target_names):
        one = select_output(prediction, k)
        new, observed = one.pred_int(level), None if rows.y is None else rows.y[:, k]
        width = _known(np.diff(new)[:, 0] / 2)
        output = Output(
            name=name,
            mean=one.mean,
            standard_error=one.standard_error,
            confidence=np.diff(one.conf_int(level))[:, 0] / 2,
            prediction=width,
            seed=_root(one.components.procedural),
            noise=_root(one.components.noise),
            parts=one.components.parts,
            observed=observed,
            accuracy=None if observed is None else Accuracy.of(one.mean, observed, inside(observed, new)),
            coverage=None if observed is None or width is None else CoverageCurve.of(one, observed),
            bands=answers.bands_of(k),
            reasons=answers.reasons_of(k),
            draws=None if draws is None else draws[..., k],
        )
        outputs.append(output)
    return tuple(outputs)


def _columns(values: FloatArray) -> FloatArray:
    return values.reshape(len(values), -1)


def _known(values: FloatArray) -> FloatArray | None:
    return values if np.isfinite(values).all() else None


def _root(variance: FloatArray) -> FloatArray | None:
    return _known(np.sqrt(np.maximum(variance, 0)))


def _draw_seeds(estimator: Any, rows: HeldOut, prediction: Prediction) -> tuple[Indices, FloatArray | None]:
    """Single networks of other seeds at a few rows, evenly spread over the predictions. Shape (n_rows, n_seeds, k)."""
    order = np.argsort(_columns(prediction.mean)[:, 0], kind="stable")
    chosen = order[np.unique(np.linspace(0, len(order) - 1, _ROWS_WITH_SEEDS).round().astype(np.intp))]
    if not hasattr(estimator, "sample_networks"):
        return chosen, None
    try:
        draws = estimator.sample_networks(rows.taken(chosen), _SEEDS, random_state=0)
    except NotAvailableError:
        return chosen, None
    centre = _columns(prediction.mean)[chosen]
    return chosen, np.moveaxis(draws.reshape(_SEEDS, *centre.shape) - centre, 0, 1)


def _diagnosis(estimator: Any, rows: HeldOut) -> tuple[tuple[Finding, ...], str, tuple[int, ...] | None]:
    """Findings, what does not hold first; the outlook; rows that are far, where that can be told."""
    if not hasattr(estimator, "diagnose"):
        return (), "", None
    try:
        diagnosis, far_is_known = estimator.diagnose(rows.given), True
    except InvalidInputError:  # no posterior, so nothing is known of distances
        diagnosis, far_is_known = estimator.diagnose(), False
    findings = sorted(diagnosis.findings, key=lambda finding: finding.holds)
    return tuple(findings), diagnosis.outlook, diagnosis.far_points if far_is_known else None


def _why_no_seeds(estimator: Any, rows: HeldOut, wording: Wording) -> str:
    if asks_for_seeds(estimator, len(rows.X)) or not hasattr(estimator, "sample_networks"):
        return wording.seed_meaning
    return "for so many rows that takes longer than everything else; a report about fewer of them has it"


def _unknown(
    estimator: Any, rows: HeldOut, wording: Wording, outputs: tuple[Output, ...], far: tuple[int, ...] | None, explained: int
) -> tuple[str, ...]:
    """What this report cannot say, in sentences; the weightiest first."""
    name = type(estimator).__name__
    said = [
        (rows.y is None, "How accurate the predictions are, and whether the intervals hold: no observed values were given."),
        (bool(wording.caveat), wording.caveat),
        (outputs[0].seed is None, f"What another seed would change: {_why_no_seeds(estimator, rows, wording)}."),
        (outputs[0].noise is None, "How much a single observation scatters: the noise could not be estimated."),
        (not hasattr(estimator, "diagnose"), f"Whether the ground of the theory is there: {name} has no diagnosis."),
        (far is None, "Which rows lie outside what the training rows cover: that needs a converged network on all rows."),
        (not rows.features, "What single features do: the rows are not lines of features."),
        (
            bool(rows.features) and explained < len(rows.X),
            f"Which features make a row uncertain, but for the {explained:,} least certain rows: asking costs a prediction "
            "for each feature.",
        ),
        (
            any(output.accuracy is not None and output.accuracy.r_squared is None for output in outputs),
            "R²: the observed values do not vary.",
        ),
        (True, "Whether these rows were kept out of training: accuracy and calibration are honest only if they were."),
        (True, "Whether future rows are like the training rows: drift, groups and repeated measurements break the intervals."),
    ]
    return tuple(sentence for applies, sentence in said if applies)
