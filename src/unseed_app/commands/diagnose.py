"""What ``unseed diagnose`` does: whether the intervals of a model can be believed, and which new rows are far."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from unseed._estimators import PNCRegressor
from unseed._findings import Diagnosis
from unseed._threads import threads_for
from unseed.errors import InvalidInputError
from unseed_app.commands.model import TableModel
from unseed_app.commands.voice import Voice
from unseed_app.tables import Table, read_table

_NAMED = 10


def diagnose(
    folder: Path,
    path: Path | None,
    voice: Voice,
    *,
    impute: bool = False,
    delimiter: str | None = None,
    sheet: str | None = None,
) -> None:
    """Print what holds, what does not, and what to change."""
    model = TableModel.load(folder)
    if not isinstance(model.estimator, PNCRegressor):
        raise InvalidInputError(
            f"model {str(folder)!r} was trained in blocks, for many rows, and such a model has no diagnosis; "
            "fit a part of the rows to have one"
        )
    table = X = None
    if path is not None:
        table = read_table(path, delimiter=delimiter, sheet=sheet, progress=voice.progress)
        encoded = model.schema.encode(table, impute=impute)
        voice.note(*table.notes, *encoded.notes)
        X = encoded.X
    with voice.working(), threads_for(model.estimator.n_rows_):
        diagnosis = model.estimator.diagnose(X)
    origin = model.origin
    voice.say(f"{folder}: {origin.rows:,} rows of {origin.source}, {model.schema.describe()}; {model.estimator.interval_}.")
    voice.say(str(diagnosis))
    if table is not None:
        voice.say(_far_rows(table, diagnosis.far_points))
    voice.finish(_as_data(diagnosis, folder))


def _far_rows(table: Table, far: tuple[int, ...]) -> str:
    if not far:
        return f"None of the {len(table):,} rows of {table.source} is far from the training rows."
    rows = ", ".join(str(i + 1) for i in far[:_NAMED]) + (f" and {len(far) - _NAMED:,} more" if len(far) > _NAMED else "")
    return f"Far from the training rows: row {rows} of {table.source}."


def _as_data(diagnosis: Diagnosis, folder: Path) -> dict[str, Any]:
    findings = []
    for finding in diagnosis.findings:
        value = finding.value if math.isfinite(finding.value) else None  # JSON has no infinity
        findings.append(asdict(finding) | {"value": value, "holds": finding.holds})
    return {
        "model": str(folder),
        "findings": findings,
        "outlook": diagnosis.outlook,
        "far_rows": [i + 1 for i in diagnosis.far_points],
    }
