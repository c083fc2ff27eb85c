"""What ``unseed fit`` does: read, encode, train, save, and say how well rows are predicted that were left out."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Any

from unseed._estimators import BlockwisePNCRegressor, PNCRegressor
from unseed._machine import available_bytes, resolve_device
from unseed._persistence import check_target
from unseed._results import FloatArray
from unseed.costs import Job, Rates, forecast, shortage
from unseed.errors import InvalidInputError
from unseed.intervals import resolve_interval
from unseed.tasks import on_cluster
from unseed_app.commands.console import Console
from unseed_app.commands.inputs import Origin, Regressor, TableFile, TableModel
from unseed_app.tables import Schema, check_output, named_columns

_FORECAST_POINTS = 1000

MOST_ROWS = 20_000
"""Above, rows are trained on in blocks, unless an interval method is named that needs them all together."""


def fit(
    file: TableFile,
    target: str,
    drop: str | None,
    out: Path | None,
    console: Console,
    *,
    cluster: str | None = None,
    dry_run: bool = False,
    **options: Any,
) -> None:
    """Train on all rows of a table and write a model folder; of a dry run, say what that would take and write nothing.

    ``options`` are arguments of the estimator: interval, random_state, device and n_jobs.
    """
    out = out or file.named_after("-model")
    _check(out, **options)
    table = file.read(console)
    targets = named_columns("target", target, table)
    schema = Schema.fit(table, targets, named_columns("drop", drop, table) if drop is not None else [], impute=file.impute)
    y = schema.labels(table)
    encoded = schema.encode(table)
    console.print(f"{len(table):,} rows, {schema.describe()}; target {', '.join(map(repr, targets))}.")
    console.note(*encoded.notes, *schema.notes_on_labels(table), *schema.remarks(encoded.X))
    estimator = _estimator(len(table), console, **options)
    if dry_run:
        _forecast(estimator, encoded.X.shape, y, console)
        return
    with on_cluster(cluster), console.working():
        estimator.fit(encoded.X, y)
    TableModel(estimator, schema, Origin(file.path.name, len(table))).save(out)
    _report(estimator, schema, out, len(table), console)


def _check(out: Path, interval: str, device: str, n_jobs: int | None, random_state: int) -> None:
    """Whatever can be refused before the table is read."""
    resolve_interval(interval, n_rows=4)
    resolve_device(device)
    if n_jobs == 0:
        raise InvalidInputError("jobs=0 runs nothing; use 1, 2, … or -1 for every core")
    check_output(out)
    check_target(out)


def _estimator(n_rows: int, console: Console, *, interval: str, **options: Any) -> Regressor:
    if n_rows <= MOST_ROWS or interval not in ("auto", "batching"):
        return PNCRegressor(interval=interval, verbose=console.is_for_people, **options)
    console.note(
        f"more than {MOST_ROWS:,} rows are trained on in blocks, and the intervals are those of batching; "
        "--interval truth trains on all together, where memory and patience suffice",
    )
    return BlockwisePNCRegressor(verbose=console.is_for_people, **options)


def _forecast(estimator: Regressor, shape: tuple[int, int], y: FloatArray, console: Console) -> None:
    """Time and memory from rates of this machine, which take a second to measure."""
    job = Job.of(estimator, shape[0], shape[1], points=_FORECAST_POINTS, outputs=y.shape[1] if y.ndim > 1 else 1)
    expected = forecast(job, Rates.for_job(job))
    console.print(f"Fitting, and intervals at {_FORECAST_POINTS:,} rows, would take {expected}. Nothing was written.")
    available, lack = available_bytes(job.device), shortage(job, expected.bytes)
    if lack is not None:
        in_blocks = "; --interval batching trains in blocks" if job.block is None and job.rows > MOST_ROWS else ""
        console.note(f"this does not fit here: {lack}{in_blocks}")
    figures = asdict(expected) | {"available_bytes": available, "fits": lack is None}
    console.finish({"estimator": type(estimator).__name__, "rows": shape[0], "features": shape[1], **figures})


def _report(estimator: Regressor, schema: Schema, out: Path, n_rows: int, console: Console) -> None:
    accuracy = _accuracy(estimator, schema)
    for name, figures in accuracy.items():
        console.print(
            f"Left-out rows ({figures['rows']:,}): {name!r} is predicted with an error of {figures['rmse']:.4g} "
            f"(root mean square), R² = {figures['r_squared']:.3f}."
        )
    seconds = console.seconds
    console.print(f"Model: {out}. Everything took {seconds:.1f} s. Next: unseed predict {shlex.quote(str(out))} new.csv")
    console.finish(
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


def _accuracy(estimator: Regressor, schema: Schema) -> dict[str, dict[str, float]]:
    """For each target, where the estimator can say how well it predicts rows that are left out."""
    left_out = estimator.leave_one_out() if isinstance(estimator, PNCRegressor) else None
    if left_out is None:
        return {}
    figures = zip(schema.targets, left_out.rmse, left_out.r_squared, strict=True)
    return {name: {"rows": left_out.n_rows, "rmse": float(rmse), "r_squared": float(r2)} for name, rmse, r2 in figures}
