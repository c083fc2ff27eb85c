"""Everything a report says, as plain data: all its numbers are computed here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from unseed._findings import Diagnosis, Finding
from unseed._progress import Progress
from unseed._results import FloatArray, Prediction, check_level
from unseed.errors import InvalidInputError, NotAvailableError
from unseed_app.report.features import Features
from unseed_app.report.fitted import Fact, Reproduction, Wording, facts_of, reproduction_of, wording_of
from unseed_app.report.held_out import HeldOut, Indices
from unseed_app.report.outputs import Output, asks_for_seeds, n_pieces, predict_in_pieces

_SEEDS, _ROWS_WITH_SEEDS = 20, 12


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


def checked_rows(estimator: Any, X: Any, y: Any, level: float, **names: Any) -> HeldOut:
    """Rows of a report with their names, after everything that can be refused without computing has been."""
    check_level(level)
    check_is_fitted(estimator, "is_fitted_")
    if is_classifier(estimator):
        raise InvalidInputError(
            f"a report is for regressors so far; what a {type(estimator).__name__} says of rows is in "
            "get_prediction(X).summary_frame()"
        )
    return HeldOut.of(estimator, X, y, **names)


def build(
    estimator: Any,
    rows: HeldOut,
    level: float,
    source: str | None = None,
    cautions: Sequence[str] = (),
    progress: Progress | None = None,
) -> Report:
    """Ask a fitted estimator everything that the page shows."""
    n_rows = len(rows.X)
    with (progress or Progress()).steps("asking the model", n_pieces(n_rows) + 3) as step:
        prediction = predict_in_pieces(estimator, rows.taken, n_rows, step, seeds=asks_for_seeds(estimator, n_rows))
        _check_finite(rows, prediction)
        rows_with_seeds, draws = _draw_seeds(estimator, rows, prediction)
        step()
        features = Features(estimator, rows, level, _columns(prediction.standard_error))
        shown, order = features.by_relevance
        outputs = tuple(Output.of(k, prediction, draws, features) for k in range(len(rows.target_names)))
        step()
        diagnosis, far = _diagnosis(estimator, rows)
        step()
    wording = wording_of(estimator)
    return Report(
        cautions=tuple(cautions),
        level=level,
        rows=rows,
        facts=facts_of(estimator, len(rows.features) or int(np.prod(rows.X.shape[1:]))),
        wording=wording,
        outputs=outputs,
        shown=shown,
        order_of_features=order,
        rows_with_seeds=rows_with_seeds,
        findings=tuple(sorted(diagnosis.findings, key=lambda finding: finding.holds)),
        outlook=diagnosis.outlook,
        far_rows=far,
        unknown=_unknown(estimator, rows, wording, outputs, far, len(features.explained)),
        reproduction=reproduction_of(estimator, source),
    )


def _check_finite(rows: HeldOut, prediction: Prediction) -> None:
    """Refuse rows about which there is nothing to draw."""
    is_finite = np.isfinite(_columns(prediction.mean)) & np.isfinite(_columns(prediction.standard_error))
    beyond = np.flatnonzero(~is_finite.all(axis=1))
    if len(beyond):
        raise InvalidInputError(
            f"the interval of row {rows.row_labels[beyond[0]]} has no end"
            f"{f' (and {len(beyond) - 1:,} more have none)' if len(beyond) > 1 else ''}: it is too far from the training rows, "
            "or these are too few or all alike in y; leave it out of the report, or train on more rows"
        )


def _columns(values: FloatArray) -> FloatArray:
    return values.reshape(len(values), -1)


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


def _diagnosis(estimator: Any, rows: HeldOut) -> tuple[Diagnosis, tuple[int, ...] | None]:
    """The diagnosis, and rows that are far where that can be told."""
    if not hasattr(estimator, "diagnose"):
        return Diagnosis(()), None
    try:
        diagnosis = estimator.diagnose(rows.given)
    except InvalidInputError:  # no posterior, so nothing is known of distances
        return estimator.diagnose(), None
    return diagnosis, diagnosis.far_points


def _unknown(
    estimator: Any, rows: HeldOut, wording: Wording, outputs: tuple[Output, ...], far: tuple[int, ...] | None, explained: int
) -> tuple[str, ...]:
    """What this report cannot say, in sentences; the weightiest first."""
    name, seeds = type(estimator).__name__, wording.seed_meaning
    if hasattr(estimator, "sample_networks") and not asks_for_seeds(estimator, len(rows.X)):
        seeds = "for so many rows that takes longer than everything else; a report about fewer of them has it"
    said = {
        "How accurate the predictions are, and whether the intervals hold: no observed values were given.": rows.y is None,
        wording.caveat: bool(wording.caveat),
        f"What another seed would change: {seeds}.": outputs[0].seed is None,
        "How much a single observation scatters: the noise could not be estimated.": outputs[0].noise is None,
        f"Whether the ground of the theory is there: {name} has no diagnosis.": not hasattr(estimator, "diagnose"),
        "Which rows lie outside what the training rows cover: that needs a converged network on all rows.": far is None,
        "What single features do: the rows are not lines of features.": not rows.features,
        f"Which features make a row uncertain, but for the {explained:,} least certain rows: asking costs a prediction for "
        "each feature.": bool(rows.features) and explained < len(rows.X),
        "R²: the observed values do not vary.": any(one.accuracy and one.accuracy.r_squared is None for one in outputs),
        f"{rows.is_seen.sum():,} of the {len(rows.X):,} rows were in the training, and count for nothing in accuracy and "
        "calibration.": bool(rows.is_seen.any()) and rows.y is not None,
        "Whether these rows were kept out of training: accuracy and calibration are honest only if they were.": (
            not rows.is_seen.all()
        ),
        "Whether future rows are like the training rows: drift, groups and repeated measurements break the intervals.": True,
    }
    return tuple(sentence for sentence, applies in said.items() if applies)
