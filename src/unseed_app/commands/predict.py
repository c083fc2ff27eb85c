"""What ``unseed predict`` does: the input's columns, and behind them predictions with both kinds of intervals."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from unseed._results import FloatArray, check_level
from unseed._threads import threads_for
from unseed.errors import InvalidInputError
from unseed_app.commands.model import Regressor, TableModel
from unseed_app.commands.voice import Voice
from unseed_app.tables import Schema, Table, check_output, read_table, write_table

TYPED = (".parquet", ".pq")
EXTENSIONS = (".csv", ".tsv", *TYPED)
QUANTITIES = ("mean", "mean_se", "mean_ci_lower", "mean_ci_upper", "obs_ci_lower", "obs_ci_upper")
"""Columns for each target, named after it: ``y_mean``, … ``ci`` is for the function, ``obs`` for a new observation."""

_ROWS_AT_A_TIME = 1000
_SHOWN = 5


@dataclass(frozen=True)
class PredictOptions:
    """What the command line said."""

    level: float = 0.95
    impute: bool = False
    delimiter: str | None = None
    sheet: str | None = None


def predict(folder: Path, path: Path, out: Path | None, options: PredictOptions, voice: Voice) -> None:
    """Predict every row of a table and write it back with columns added."""
    start = time.perf_counter()
    out = out or Path(f"{path.name.split('.')[0]}-intervals.csv")
    check_level(options.level)
    check_output(out, inputs=(path,), extensions=EXTENSIONS)
    model = TableModel.load(folder)
    table = read_table(path, delimiter=options.delimiter, sheet=options.sheet, progress=voice.progress)
    voice.note(*table.notes)
    added = _free_names(model.schema, table)
    encoded = model.schema.encode(table, impute=options.impute)
    voice.note(*encoded.notes)
    values = _predicted(model.estimator, encoded.X, options.level, voice)
    frame = pd.DataFrame(values, columns=pd.Index(added, dtype=object), index=table.frame.index)
    kept = model.schema.with_numbers(table) if out.suffix.lower() in TYPED else table.frame
    write_table(pd.concat([kept, frame], axis=1), out)
    voice.say(_first_rows(model.schema, frame, options.level))
    seconds = time.perf_counter() - start
    voice.say(f"Intervals: {out} ({len(table):,} rows, {len(added)} columns added). Everything took {seconds:.1f} s.")
    voice.finish({"out": str(out), "rows": len(table), "level": options.level, "added": added, "seconds": round(seconds, 3)})


def _free_names(schema: Schema, table: Table) -> list[str]:
    names = [f"{target}_{quantity}" for target in schema.targets for quantity in QUANTITIES]
    taken = [name for name in names if name in table.names]
    if taken:
        raise InvalidInputError(f"{table.source} has a column {taken[0]!r} already, which would be added; rename it")
    return names


def _predicted(estimator: Regressor, X: pd.DataFrame, level: float, voice: Voice) -> FloatArray:
    """Shape (n_rows, n_targets · n_quantities)."""
    starts = range(0, len(X), _ROWS_AT_A_TIME)
    with voice.working(), threads_for(estimator.n_rows_), voice.progress.steps("predicting", len(starts)) as report:
        parts = []
        for begin in starts:
            parts.append(_quantities(estimator, X.iloc[begin : begin + _ROWS_AT_A_TIME], level))
            report()
    return np.concatenate(parts)


def _quantities(estimator: Regressor, X: pd.DataFrame, level: float) -> FloatArray:
    prediction = estimator.get_prediction(X, seeds=False)
    confidence, observation = prediction.conf_int(level), prediction.pred_int(level)
    parts = [prediction.mean, prediction.standard_error, *_bounds(confidence), *_bounds(observation)]
    return np.stack(parts, axis=-1).reshape(len(X), -1)


def _bounds(intervals: FloatArray) -> tuple[FloatArray, FloatArray]:
    return intervals[..., 0], intervals[..., 1]


def _first_rows(schema: Schema, frame: pd.DataFrame, level: float) -> str:
    """The first rows as a small table: prediction, confidence interval, prediction interval."""
    percent = f"{100 * level:g} %"
    lines = []
    for k, target in enumerate(schema.targets):
        block = frame.iloc[:_SHOWN, k * len(QUANTITIES) : (k + 1) * len(QUANTITIES)].to_numpy()
        lines.append(f"{target!r}: {percent} intervals for the function, and for one new observation")
        lines.append(f"  {'row':>5}  {'predicted':>11}  {'function':>25}  {'observation':>25}")
        for i, (mean, _, low, high, new_low, new_high) in enumerate(block, start=1):
            pair, new_pair = f"[{low:.5g}, {high:.5g}]", f"[{new_low:.5g}, {new_high:.5g}]"
            lines.append(f"  {i:5d}  {mean:11.5g}  {pair:>25}  {new_pair:>25}")
    if len(frame) > _SHOWN:
        lines.append(f"  … and {len(frame) - _SHOWN:,} more")
    return "\n".join(lines)
