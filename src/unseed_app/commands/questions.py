"""What ``unseed predict``, ``report`` and ``diagnose`` ask of a model folder, mostly about the rows of a table."""

from __future__ import annotations

import math
import shlex
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from unseed._findings import Diagnosis
from unseed._results import FloatArray, check_level
from unseed._threads import threads_for
from unseed.errors import InvalidInputError
from unseed_app.commands.console import Console
from unseed_app.commands.inputs import TableFile, TableModel
from unseed_app.report import build, checked_rows, in_short, n_pieces, predict_in_pieces, write_page
from unseed_app.tables import PARQUET, Schema, Table, check_output, named_columns, write_table

QUANTITIES = ("mean", "mean_se", "mean_ci_lower", "mean_ci_upper", "obs_ci_lower", "obs_ci_upper")
"""Columns for each target, named after it: ``y_mean``, … ``ci`` is for the function, ``obs`` for a new observation."""

_ROWS_SHOWN, _ROWS_NAMED = 5, 10


def predict(folder: Path, file: TableFile, level: float, out: Path | None, console: Console) -> None:
    """Predict every row of a table and write it back with columns added."""
    out = out or file.named_after("-intervals.csv")
    check_level(level)
    check_output(out, inputs=(file.path,), extensions=(".csv", ".tsv", *PARQUET.extensions))
    model = TableModel.load(folder)
    table = file.read(console)
    added = [f"{target}_{quantity}" for target in model.schema.targets for quantity in QUANTITIES]
    if taken := [name for name in added if name in table.names]:
        raise InvalidInputError(f"{table.source} has a column {taken[0]!r} already, which would be added; rename it")
    X = file.encode(table, model.schema, console)
    with console.working(), threads_for(model.estimator.n_rows_):
        with console.progress.steps("predicting", n_pieces(len(X))) as step:
            prediction = predict_in_pieces(model.estimator, X.iloc.__getitem__, len(X), step, seeds=False)
        frame = prediction.summary_frame(level).set_axis(pd.Index(added, dtype=object), axis=1)
    kept = model.schema.with_numbers(table) if out.suffix.lower() in PARQUET.extensions else table.frame
    write_table(pd.concat([kept, frame], axis=1), out)
    console.print(_first_rows(model.schema, frame, level))
    seconds = console.seconds
    console.print(f"Intervals: {out} ({len(table):,} rows, {len(added)} columns added). Everything took {seconds:.1f} s.")
    console.finish({"out": str(out), "rows": len(table), "level": level, "added": added, "seconds": round(seconds, 3)})


def _first_rows(schema: Schema, frame: pd.DataFrame, level: float) -> str:
    """The first rows as a small table: prediction, confidence interval, prediction interval."""
    lines = []
    for k, target in enumerate(schema.targets):
        block = frame.iloc[:_ROWS_SHOWN, k * len(QUANTITIES) : (k + 1) * len(QUANTITIES)].to_numpy()
        lines.append(f"{target!r}: {100 * level:g} % intervals for the function, and for one new observation")
        lines.append(f"  {'row':>5}  {'predicted':>11}  {'function':>25}  {'observation':>25}")
        for i, (mean, _, low, high, new_low, new_high) in enumerate(block, start=1):
            interval, new_interval = f"[{low:.5g}, {high:.5g}]", f"[{new_low:.5g}, {new_high:.5g}]"
            lines.append(f"  {i:5d}  {mean:11.5g}  {interval:>25}  {new_interval:>25}")
    if len(frame) > _ROWS_SHOWN:
        lines.append(f"  … and {len(frame) - _ROWS_SHOWN:,} more")
    return "\n".join(lines)


def diagnose(folder: Path, file: TableFile | None, console: Console) -> None:
    """Print whether the intervals of a model can be believed: what holds, what does not, and what to change."""
    model = TableModel.load(folder)
    table = X = None
    if file is not None:
        table = file.read(console)
        X = file.encode(table, model.schema, console)
    with console.working(), threads_for(model.estimator.n_rows_):
        diagnosis: Diagnosis = model.estimator.diagnose(X)
    console.print(f"{folder}: {model.rows:,} rows of {model.source}, {model.schema.describe()}; {model.estimator.interval_}.")
    console.print(str(diagnosis))
    far = [i + 1 for i in diagnosis.far_points]
    if table is not None and not far:
        console.print(f"None of the {len(table):,} rows of {table.source} is far from the training rows.")
    elif table is not None:
        more = f" and {len(far) - _ROWS_NAMED:,} more" if len(far) > _ROWS_NAMED else ""
        rows = ", ".join(map(str, far[:_ROWS_NAMED])) + more
        console.print(f"Far from the training rows: row {rows} of {table.source}.")
    findings = [
        {"name": one.name, "value": one.value if math.isfinite(one.value) else None}  # JSON has no infinity
        | {"limit": one.limit, "advice": one.advice, "holds": one.holds}
        for one in diagnosis.findings
    ]
    about = {"model": str(folder), "handling": diagnosis.handling}
    console.finish(about | {"findings": findings, "outlook": diagnosis.outlook, "far_rows": far})


def report(folder: Path, file: TableFile, level: float, label: str | None, out: Path | None, console: Console) -> None:
    """Write a page about every row of a table."""
    out = out or file.named_after("-report.html")
    check_level(level)
    check_output(out, inputs=(file.path,), extensions=(".html", ".htm"))
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
    accuracy = {
        output.name: None if output.accuracy is None else asdict(output.accuracy) | {"inside": output.accuracy.inside}
        for output in content.outputs
    }
    checks = [finding.sentence for finding in content.findings if not finding.holds]
    far = None if content.far_rows is None else [i + 1 for i in content.far_rows]
    about = {"out": str(out), "rows": len(table), "level": level, "accuracy": accuracy, "checks": checks, "far_rows": far}
    console.finish(about | {"seconds": round(seconds, 3)})


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
    if (path.name, len(table)) == (model.source, model.rows):
        cautions.append(
            "These look like the rows that the model was trained on (same file name, same number of rows): how well it "
            "predicts them says little about new ones"
        )
    return model.schema.observed(table), cautions
