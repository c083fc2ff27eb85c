"""What ``unseed report`` does: one HTML page that says how sure a model is about each row of a table, and why."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Any

from unseed._results import FloatArray, check_level
from unseed._threads import threads_for
from unseed.errors import InvalidInputError
from unseed_app.commands.console import Console
from unseed_app.commands.table_file import TableFile
from unseed_app.commands.table_model import TableModel
from unseed_app.report import Report, build, checked_rows, in_short, write_page
from unseed_app.tables import Table, check_output, named_columns

EXTENSIONS = (".html", ".htm")


def report(folder: Path, file: TableFile, level: float, label: str | None, out: Path | None, console: Console) -> None:
    """Write a page about every row of a table."""
    out = out or file.named_after("-report.html")
    check_level(level)
    check_output(out, inputs=(file.path,), extensions=EXTENSIONS)
    model = TableModel.load(folder)
    table = file.read(console)
    labels = _labels(table, label)
    y, cautions = _observed(model, table, file.path, console)
    X = file.encode(table, model.schema, console)
    console.note(*cautions)
    names = {"target_names": model.schema.targets, "row_labels": labels, "categories": model.schema.categories}
    command = ["unseed", "report", str(folder), str(file.path), "--level", f"{level:g}"]
    source = shlex.join(command + (["--label", label] if label is not None else [])) + f"\n{model.origin}"
    with console.working(), threads_for(model.estimator.n_rows_):
        rows = checked_rows(model.estimator, X, y, level, feature_names=None, **names)
        content = build(model.estimator, rows, level, source, [f"{text}." for text in cautions], console.progress)
        write_page(out, content)
    for line in in_short(content):
        console.print(line)
    seconds, size = console.seconds, out.stat().st_size / 1e6
    console.print(f"Report: {out} ({len(table):,} rows, {size:.1f} MB). Everything took {seconds:.1f} s. Open it in a browser.")
    console.finish({"out": str(out), "rows": len(table), **_as_data(content), "seconds": round(seconds, 3)})


def _labels(table: Table, column: str | None) -> list[str]:
    """What rows are called: the text of a column, or numbers that count from 1."""
    if column is None:
        return [str(i + 1) for i in range(len(table))]
    names = named_columns("label", column, table)
    if len(names) > 1:
        raise InvalidInputError(f"label={column!r} names {len(names)} columns; rows are called after one")
    return [str(cell) for cell in table.frame[names[0]].tolist()]


def _observed(model: TableModel, table: Table, path: Path, console: Console) -> tuple[FloatArray | None, list[str]]:
    """Observed values where the table has them all, and what a reader of the page should know first."""
    if absent := ", ".join(map(repr, model.schema.unobserved(table))):
        console.note(f"no values of {absent} in the table, so the page has no accuracy and no calibration")
        return None, []
    console.note(*model.schema.notes_on_labels(table))
    cautions = []
    if (path.name, len(table)) == (model.origin.source, model.origin.rows):
        cautions.append(
            "These look like the rows that the model was trained on (same file name, same number of rows): how well it "
            "predicts them says little about new ones"
        )
    return model.schema.observed(table), cautions


def _as_data(content: Report) -> dict[str, Any]:
    accuracy = {
        output.name: None if output.accuracy is None else asdict(output.accuracy) | {"inside": output.accuracy.inside}
        for output in content.outputs
    }
    return {
        "level": content.level,
        "accuracy": accuracy,
        "checks": [finding.sentence for finding in content.findings if not finding.holds],
        "far_rows": None if content.far_rows is None else [i + 1 for i in content.far_rows],
    }
