"""What ``unseed report`` does: one HTML page that says how sure a model is about each row of a table, and why."""

from __future__ import annotations

import shlex
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from unseed._results import FloatArray, check_level
from unseed._threads import threads_for
from unseed.errors import InvalidInputError
from unseed_app.commands.model import TableModel
from unseed_app.commands.voice import Voice
from unseed_app.report import Report, build, checked_rows, in_short, write_page
from unseed_app.tables import Table, check_output, named_columns, read_table

EXTENSIONS = (".html", ".htm")


@dataclass(frozen=True)
class ReportOptions:
    """What the command line said."""

    level: float = 0.95
    label: str | None = None
    impute: bool = False
    delimiter: str | None = None
    sheet: str | None = None


def report(folder: Path, path: Path, out: Path | None, options: ReportOptions, voice: Voice) -> None:
    """Write a page about every row of a table."""
    start = time.perf_counter()
    out = out or Path(f"{path.name.split('.')[0]}-report.html")
    check_level(options.level)
    check_output(out, inputs=(path,), extensions=EXTENSIONS)
    model = TableModel.load(folder)
    table = read_table(path, delimiter=options.delimiter, sheet=options.sheet, progress=voice.progress)
    voice.note(*table.notes)
    labels = _labels(table, options.label)
    y, cautions = _observed(model, table, path, voice)
    encoded = model.schema.encode(table, impute=options.impute)
    voice.note(*encoded.notes, *cautions)
    names = {"target_names": model.schema.targets, "row_labels": labels, "categories": model.schema.categories}
    with voice.working(), threads_for(model.estimator.n_rows_):
        rows = checked_rows(model.estimator, encoded.X, y, options.level, feature_names=None, **names)
        source = _source(folder, path, options, model)
        content = build(model.estimator, rows, options.level, source, [f"{text}." for text in cautions], voice.progress)
        write_page(out, content)
    for line in in_short(content):
        voice.say(line)
    seconds = time.perf_counter() - start
    size = out.stat().st_size / 1e6
    voice.say(f"Report: {out} ({len(table):,} rows, {size:.1f} MB). Everything took {seconds:.1f} s. Open it in a browser.")
    voice.finish({"out": str(out), "rows": len(table), **_as_data(content), "seconds": round(seconds, 3)})


def _labels(table: Table, column: str | None) -> list[str]:
    """What rows are called: the text of a column, or numbers that count from 1."""
    if column is None:
        return [str(i + 1) for i in range(len(table))]
    names = named_columns("label", column, table)
    if len(names) > 1:
        raise InvalidInputError(f"label={column!r} names {len(names)} columns; rows are called after one")
    return [str(cell) for cell in table.frame[names[0]].tolist()]


def _observed(model: TableModel, table: Table, path: Path, voice: Voice) -> tuple[FloatArray | None, list[str]]:
    """Observed values where the table has them all, and what a reader of the page should know first."""
    absent = model.schema.unobserved(table)
    if absent:
        voice.note(f"no values of {', '.join(map(repr, absent))} in the table, so the page has no accuracy and no calibration")
        return None, []
    voice.note(*model.schema.notes_on_labels(table))
    cautions = []
    if (path.name, len(table)) == (model.origin.source, model.origin.rows):
        cautions.append(
            "These look like the rows that the model was trained on (same file name, same number of rows): how well it "
            "predicts them says little about new ones"
        )
    return model.schema.observed(table), cautions


def _source(folder: Path, path: Path, options: ReportOptions, model: TableModel) -> str:
    command = ["unseed", "report", str(folder), str(path), "--level", f"{options.level:g}"]
    command += ["--label", options.label] if options.label is not None else []
    fitted = f"model fitted to {model.origin.source} ({model.origin.rows:,} rows) on {model.origin.fitted_at}"
    return f"{shlex.join(command)}\n{fitted}, unseed {model.origin.version}"


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
