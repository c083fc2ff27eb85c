"""What ``unseed predict`` does: the input's columns, and behind them predictions with both kinds of intervals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from unseed._results import FloatArray, Prediction, check_level
from unseed._threads import threads_for
from unseed.errors import InvalidInputError
from unseed_app.commands.console import Console
from unseed_app.commands.table_file import TableFile
from unseed_app.commands.table_model import TableModel
from unseed_app.report import n_pieces, predict_in_pieces
from unseed_app.tables import Schema, Table, check_output, write_table

TYPED = (".parquet", ".pq")
EXTENSIONS = (".csv", ".tsv", *TYPED)
QUANTITIES = ("mean", "mean_se", "mean_ci_lower", "mean_ci_upper", "obs_ci_lower", "obs_ci_upper")
"""Columns for each target, named after it: ``y_mean``, … ``ci`` is for the function, ``obs`` for a new observation."""

_SHOWN = 5


def predict(folder: Path, file: TableFile, level: float, out: Path | None, console: Console) -> None:
    """Predict every row of a table and write it back with columns added."""
    out = out or file.named_after("-intervals.csv")
    check_level(level)
    check_output(out, inputs=(file.path,), extensions=EXTENSIONS)
    model = TableModel.load(folder)
    table = file.read(console)
    added = _free_names(model.schema, table)
    X = file.encode(table, model.schema, console)
    with console.working(), threads_for(model.estimator.n_rows_):
        with console.progress.steps("predicting", n_pieces(len(X))) as step:
            prediction = predict_in_pieces(model.estimator, X.iloc.__getitem__, len(X), step, seeds=False)
        values = _quantities(prediction, level)
    frame = pd.DataFrame(values, columns=pd.Index(added, dtype=object), index=table.frame.index)
    kept = model.schema.with_numbers(table) if out.suffix.lower() in TYPED else table.frame
    write_table(pd.concat([kept, frame], axis=1), out)
    console.print(_first_rows(model.schema, frame, level))
    seconds = console.seconds
    console.print(f"Intervals: {out} ({len(table):,} rows, {len(added)} columns added). Everything took {seconds:.1f} s.")
    console.finish({"out": str(out), "rows": len(table), "level": level, "added": added, "seconds": round(seconds, 3)})


def _free_names(schema: Schema, table: Table) -> list[str]:
    names = [f"{target}_{quantity}" for target in schema.targets for quantity in QUANTITIES]
    taken = [name for name in names if name in table.names]
    if taken:
        raise InvalidInputError(f"{table.source} has a column {taken[0]!r} already, which would be added; rename it")
    return names


def _quantities(prediction: Prediction, level: float) -> FloatArray:
    """Shape (n_rows, n_targets · n_quantities)."""
    bounds = np.concatenate([prediction.conf_int(level), prediction.pred_int(level)], axis=-1)
    centre = np.stack([prediction.mean, prediction.standard_error], axis=-1)
    return np.concatenate([centre, bounds], axis=-1).reshape(len(centre), -1)


def _first_rows(schema: Schema, frame: pd.DataFrame, level: float) -> str:
    """The first rows as a small table: prediction, confidence interval, prediction interval."""
    percent = f"{100 * level:g} %"
    lines = []
    for k, target in enumerate(schema.targets):
        block = frame.iloc[:_SHOWN, k * len(QUANTITIES) : (k + 1) * len(QUANTITIES)].to_numpy()
        lines.append(f"{target!r}: {percent} intervals for the function, and for one new observation")
        lines.append(f"  {'row':>5}  {'predicted':>11}  {'function':>25}  {'observation':>25}")
        for i, (mean, _, low, high, new_low, new_high) in enumerate(block, start=1):
            interval, new_interval = f"[{low:.5g}, {high:.5g}]", f"[{new_low:.5g}, {new_high:.5g}]"
            lines.append(f"  {i:5d}  {mean:11.5g}  {interval:>25}  {new_interval:>25}")
    if len(frame) > _SHOWN:
        lines.append(f"  … and {len(frame) - _SHOWN:,} more")
    return "\n".join(lines)
