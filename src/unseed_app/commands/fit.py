"""What ``unseed fit`` does: read, encode, train, save, and say how well rows are predicted that were left out."""

from __future__ import annotations

import shlex
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from unseed._estimators import BlockwisePNCRegressor, PNCRegressor
from unseed._machine import available_bytes, resolve_device
from unseed._persistence import check_target
from unseed._results import FloatArray, LeaveOneOut
from unseed.costs import Job, Rates, forecast, shortage
from unseed.errors import InvalidInputError
from unseed.intervals import resolve_interval
from unseed.tasks import on_cluster
from unseed_app.commands.model import Origin, Regressor, TableModel
from unseed_app.commands.voice import Voice
from unseed_app.tables import Schema, Table, check_output, named_columns, read_table

_FORECAST_POINTS = 1000

MOST_ROWS = 20_000
"""Above, rows are trained on in blocks, unless an interval method is named that needs them all together."""


@dataclass(frozen=True)
class FitOptions:
    """What the command line said."""

    target: str
    interval: str = "auto"
    impute: bool = False
    drop: str | None = None
    delimiter: str | None = None
    sheet: str | None = None
    seed: int = 0
    device: str = "auto"
    jobs: int | None = None
    cluster: str | None = None


def fit(path: Path, out: Path | None, options: FitOptions, voice: Voice, *, dry_run: bool = False) -> None:
    """Train on all rows of a table and write a model folder; of a dry run, say what that would take and write nothing."""
    start = time.perf_counter()
    out = out or Path(f"{path.name.split('.')[0]}-model")
    _check(out, options)
    table = read_table(path, delimiter=options.delimiter, sheet=options.sheet, progress=voice.progress)
    voice.note(*table.notes)
    schema, X, y = _encoded(table, options, voice)
    estimator = _estimator(len(X), options, voice)
    if dry_run:
        _forecast(estimator, X.shape, y, voice)
        return
    with on_cluster(options.cluster), voice.working():
        estimator.fit(X, y)
    TableModel(estimator, schema, Origin.of(table, path)).save(out)
    left_out = estimator.leave_one_out() if isinstance(estimator, PNCRegressor) else None
    _report(estimator, schema, left_out, out, voice, len(table), time.perf_counter() - start)


def _check(out: Path, options: FitOptions) -> None:
    """Whatever can be refused before the table is read."""
    resolve_interval(options.interval, n_rows=4)
    resolve_device(options.device)
    if options.jobs == 0:
        raise InvalidInputError("jobs=0 runs nothing; use 1, 2, … or -1 for every core")
    check_output(out)
    check_target(out)


def _encoded(table: Table, options: FitOptions, voice: Voice) -> tuple[Schema, pd.DataFrame, FloatArray]:
    targets = named_columns("target", options.target, table)
    drop = named_columns("drop", options.drop, table) if options.drop is not None else []
    schema = Schema.fit(table, targets, drop, impute=options.impute)
    y = schema.labels(table)
    encoded = schema.encode(table)
    voice.say(f"{len(table):,} rows, {schema.describe()}; target {', '.join(map(repr, targets))}.")
    voice.note(*encoded.notes, *schema.notes_on_labels(table), *schema.remarks(encoded.X))
    return schema, encoded.X, y


def _estimator(n_rows: int, options: FitOptions, voice: Voice) -> Regressor:
    shared: dict[str, Any] = {
        "random_state": options.seed,
        "n_jobs": options.jobs,
        "device": options.device,
        "verbose": voice.talks,
    }
    estimator: Regressor = PNCRegressor(interval=options.interval, **shared)
    if n_rows > MOST_ROWS and options.interval in ("auto", "batching"):
        voice.note(
            f"more than {MOST_ROWS:,} rows are trained on in blocks, and the intervals are those of batching; "
            "--interval truth trains on all together, where memory and patience suffice",
        )
        estimator = BlockwisePNCRegressor(**shared)
    return estimator


def _forecast(estimator: Regressor, shape: tuple[int, int], y: FloatArray, voice: Voice) -> None:
    """Time and memory from rates of this machine, which take a second to measure."""
    job = Job.of(estimator, shape[0], shape[1], points=_FORECAST_POINTS, outputs=y.shape[1] if y.ndim > 1 else 1)
    expected = forecast(job, Rates.for_job(job))
    voice.say(f"Fitting, and intervals at {_FORECAST_POINTS:,} rows, would take {expected}. Nothing was written.")
    available, lack = available_bytes(job.device), shortage(job, expected.bytes)
    if lack is not None:
        in_blocks = "; --interval batching trains in blocks" if job.block is None and job.rows > MOST_ROWS else ""
        voice.note(f"this does not fit here: {lack}{in_blocks}")
    figures = asdict(expected) | {"available_bytes": available, "fits": lack is None}
    voice.finish({"estimator": type(estimator).__name__, "rows": shape[0], "features": shape[1], **figures})


def _report(
    estimator: Regressor, schema: Schema, left_out: LeaveOneOut | None, out: Path, voice: Voice, n_rows: int, seconds: float
) -> None:
    accuracy = _accuracy(schema, left_out)
    for name, figures in accuracy.items():
        voice.say(
            f"Left-out rows ({figures['rows']:,}): {name!r} is predicted with an error of {figures['rmse']:.4g} "
            f"(root mean square), R² = {figures['r_squared']:.3f}."
        )
    voice.say(f"Model: {out}. Everything took {seconds:.1f} s. Next: unseed predict {shlex.quote(str(out))} new.csv")
    voice.finish(
        {
            "model": str(out),
            "estimator": type(estimator).__name__,
            "rows": n_rows,
            **schema.to_data(),
            "regularization": estimator.regularization_,
            "leave_one_out": accuracy,
            "seconds": round(seconds, 3),
        }
    )


def _accuracy(schema: Schema, left_out: LeaveOneOut | None) -> dict[str, dict[str, float]]:
    if left_out is None:
        return {}
    figures = zip(schema.targets, left_out.rmse, left_out.r_squared, strict=True)
    return {name: {"rows": left_out.n_rows, "rmse": float(rmse), "r_squared": float(r2)} for name, rmse, r2 in figures}
