"""What ``unseed diagnose`` does: whether the intervals of a model can be believed, and which new rows are far."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from unseed._findings import Diagnosis, Finding
from unseed._threads import threads_for
from unseed.errors import InvalidInputError
from unseed_app.commands.console import Console
from unseed_app.commands.table_file import TableFile
from unseed_app.commands.table_model import TableModel
from unseed_app.tables import Table

_NAMED = 10


def diagnose(folder: Path, file: TableFile | None, console: Console) -> None:
    """Print what holds, what does not, and what to change."""
    model = TableModel.load(folder)
    if not hasattr(model.estimator, "diagnose"):
        raise InvalidInputError(
            f"model {str(folder)!r} was trained in blocks, for many rows, and such a model has no diagnosis; "
            "fit a part of the rows to have one"
        )
    table = X = None
    if file is not None:
        table = file.read(console)
        X = file.encode(table, model.schema, console)
    with console.working(), threads_for(model.estimator.n_rows_):
        diagnosis = model.estimator.diagnose(X)
    origin = model.origin
    console.print(f"{folder}: {origin.rows:,} rows of {origin.source}, {model.schema.describe()}; {model.estimator.interval_}.")
    console.print(str(diagnosis))
    if table is not None:
        console.print(_far_rows(table, diagnosis.far_points))
    console.finish(_as_data(diagnosis, folder))


def _far_rows(table: Table, far: tuple[int, ...]) -> str:
    if not far:
        return f"None of the {len(table):,} rows of {table.source} is far from the training rows."
    rows = ", ".join(str(i + 1) for i in far[:_NAMED]) + (f" and {len(far) - _NAMED:,} more" if len(far) > _NAMED else "")
    return f"Far from the training rows: row {rows} of {table.source}."


def _as_data(diagnosis: Diagnosis, folder: Path) -> dict[str, Any]:
    return {
        "model": str(folder),
        "findings": [_finding(finding) for finding in diagnosis.findings],
        "outlook": diagnosis.outlook,
        "far_rows": [i + 1 for i in diagnosis.far_points],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    value = finding.value if math.isfinite(finding.value) else None  # JSON has no infinity
    return {"name": finding.name, "value": value, "limit": finding.limit, "advice": finding.advice, "holds": finding.holds}
