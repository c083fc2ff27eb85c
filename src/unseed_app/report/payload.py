"""The numbers a page draws, as JSON has them: columns, six significant digits, null for what is not known."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from unseed_app.report.content import Output, Report
from unseed_app.report.features import Band
from unseed_app.report.words import PARTS


def payload_of(report: Report) -> dict[str, Any]:
    """Everything the page's script needs."""
    shown, wording = [report.rows.features[j] for j in report.shown], report.wording
    return {
        "level": report.level,
        "labels": report.rows.row_labels,
        "features": [feature.name for feature in shown],
        "levels": [feature.levels for feature in shown],
        "x": [_rounded(feature.values(report.rows.X)) for feature in shown],
        "far": None if report.far_rows is None else report.far_rows,
        "rowsWithSeeds": report.rows_with_seeds.tolist(),
        "spread": wording.spread,
        "spreadMeaning": wording.spread_meaning,
        "seedMeaning": wording.seed_meaning,
        "seedIsTakenOut": wording.seed_is_taken_out,
        "parts": PARTS,
        "outputs": [_output(report, output) for output in report.outputs],
    }


def _output(report: Report, output: Output) -> dict[str, Any]:
    position = {int(feature): place for place, feature in enumerate(report.shown)}
    coverage = output.coverage
    return {
        "name": output.name,
        "mean": _rounded(output.mean),
        "error": _rounded(output.standard_error),
        "confidence": _rounded(output.confidence),
        "prediction": _rounded(output.prediction),
        "seed": _rounded(output.seed),
        "noise": _rounded(output.noise),
        "parts": {name: _rounded(values) for name, values in output.parts.items() if values.any()},
        "observed": _rounded(output.observed),
        "coverage": None if coverage is None else {key: _rounded(value) for key, value in vars(coverage).items()},
        "bands": [_band(band, position[band.feature]) for band in output.bands],
        "reasons": {row: [[j, float(f"{share:.3g}")] for j, share in why] for row, why in output.reasons.items()},
        "draws": None if output.draws is None else [_rounded(draws) for draws in output.draws],
    }


def _band(band: Band, position: int) -> dict[str, Any]:
    columns = {key: _rounded(getattr(band, key)) for key in ("values", "mean", "low", "high")}
    return {"feature": position, "isDiscrete": band.is_discrete, "histogram": band.histogram.tolist(), **columns}


def _rounded(values: npt.NDArray[Any] | None) -> list[float | int] | None:
    """Six significant digits, whole numbers without a point."""
    if values is None:
        return None
    short = (float(f"{value:.6g}") for value in np.asarray(values, dtype=float).tolist())
    return [int(value) if value.is_integer() and abs(value) < 1e15 else value for value in short]
