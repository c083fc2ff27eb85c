"""What ``unseed fit`` does: read, encode, train, save, and say how well rows are predicted that were left out."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from unseed._checks import check_whole_number
from unseed._estimators import PNCRegressor
from unseed._estimators.streams import check_stream
from unseed._machine import available_bytes, resolve_device
from unseed._persistence import check_target
from unseed.costs import Job, Rates, forecast, shortage
from unseed.engines import AllRows, Landmarks, Solver, check_solver
from unseed.errors import InvalidInputError
from unseed.intervals import resolve_interval
from unseed.tasks import on_cluster
from unseed_app.commands.console import Console
from unseed_app.commands.inputs import TableFile, TableModel
from unseed_app.tables import EncodedFolder, ParquetFolder, Schema, check_output, named_columns

_FORECAST_POINTS = 1000
_WITH_LANDMARKS: dict[str, Callable[[int], Solver]] = {
    "landmarks": Landmarks,
    "all_rows": lambda count: AllRows(landmarks=count),
}


def fit(
    file: TableFile,
    target: str,
    drop: str | None,
    out: Path | None,
    console: Console,
    *,
    dry_run: bool,
    cluster: str | None,
    solver: str = "auto",
    landmarks: int | None = None,
    checkpoint: Path | None = None,
    **options: Any,
) -> None:
    """Train on all rows of a table, or of a folder of Parquet files, and write a model folder.

    Of a dry run, say what that would take and write nothing.

    ``options`` are further arguments of the estimator: interval, random_state, device and n_jobs.
    """
    out = out or file.named_after("-model")
    resolve_interval(options["interval"], n_rows=4)  # what can be refused is, before the table is read
    resolve_device(options["device"])
    if options["n_jobs"] == 0:
        raise InvalidInputError("jobs=0 runs nothing; use 1, 2, … or -1 for every core")
    check_output(out)
    check_target(out)
    estimator = PNCRegressor(verbose=console.is_for_people, solver=_solver(solver, landmarks), **options)
    is_there = _checkpoint_is_there(estimator, file.path, out, checkpoint)
    folder = ParquetFolder(file.path) if os.path.isdir(file.path) else None  # a path that may not be looked at is none
    n_rows, table = (0, file.read(console)) if folder is None else (folder.n_rows, folder.first())
    n_rows = n_rows or len(table)
    targets = named_columns("target", target, table)
    schema = Schema.fit(table, targets, named_columns("drop", drop, table) if drop is not None else [], impute=file.impute)
    y = schema.labels(table)
    encoded = schema.encode(table)
    console.print(f"{n_rows:,} rows, {schema.describe()}; target {', '.join(map(repr, targets))}.")
    console.note(*encoded.notes, *schema.notes_on_labels(table), *schema.remarks(encoded.X))
    if is_there:
        console.note(f"there is a checkpoint in {checkpoint}: rows that it knows are not added up again")
    if dry_run:
        _forecast(estimator, (n_rows, encoded.X.shape[1]), len(targets), console)
        return
    with on_cluster(cluster), console.working():
        if folder is None:
            estimator.fit(encoded.X, y)
        else:
            estimator.fit_stream(EncodedFolder(folder, schema, file.impute), checkpoint)
    model = TableModel(estimator, schema, file.path.name, n_rows)
    model.save(out)
    _report(model, out, console)


def _solver(name: str, landmarks: int | None) -> str | Solver:
    """As asked for."""
    check_solver(name)
    if landmarks is None:
        return name
    check_whole_number("landmarks", landmarks, at_least=2, reason="one function is no space")
    if name not in _WITH_LANDMARKS:
        raise InvalidInputError(
            f"landmarks={landmarks} has no meaning for solver={name!r}: add --solver {' or --solver '.join(_WITH_LANDMARKS)}"
        )
    return _WITH_LANDMARKS[name](landmarks)


def _checkpoint_is_there(estimator: PNCRegressor, table: Path, out: Path, checkpoint: Path | None) -> bool:
    """Whether there is one to go on from, after what can be refused without looking at the table."""
    if os.path.isdir(table):
        kept = check_stream(estimator, "a folder is read", checkpoint, "one file")
    elif checkpoint is not None:
        raise InvalidInputError(
            f"checkpoint={str(checkpoint)!r} is for a folder of Parquet files; {table} is none: leave it out"
        )
    else:
        return False
    if kept is None or checkpoint is None:
        return False
    check_output(checkpoint, name="checkpoint")
    if any(os.path.realpath(checkpoint) == os.path.realpath(other) for other in (out, table)):
        raise InvalidInputError(f"checkpoint={str(checkpoint)!r} is the folder of the model or of the table; name another one")
    return kept.is_there


def _forecast(estimator: PNCRegressor, shape: tuple[int, int], n_targets: int, console: Console) -> None:
    """Time and memory from rates of this machine, which take a second to measure."""
    job = Job.of(estimator, *shape, points=_FORECAST_POINTS, outputs=n_targets)
    expected = forecast(job, Rates.for_job(job))
    console.print(f"Fitting, and intervals at {_FORECAST_POINTS:,} rows, would take {expected}. Nothing was written.")
    available, lack = available_bytes(job.device), shortage(job, expected.bytes)
    if lack is not None:
        console.note(f"this does not fit here: {lack}")
    figures = asdict(expected) | {"available_bytes": available, "fits": lack is None}
    console.finish({"estimator": type(estimator).__name__, "rows": shape[0], "features": shape[1], **figures})


def _report(model: TableModel, out: Path, console: Console) -> None:
    """Say where the model is, and how well rows are predicted that were left out, where that is known."""
    left_out = model.estimator.leave_one_out()
    accuracy = {}
    if left_out is not None:
        for name, rmse, r_squared in zip(model.schema.targets, left_out.rmse, left_out.r_squared, strict=True):
            accuracy[name] = {"rows": left_out.n_rows, "rmse": float(rmse), "r_squared": float(r_squared)}
            console.print(
                f"Left-out rows ({left_out.n_rows:,}): {name!r} is predicted with an error of {rmse:.4g} "
                f"(root mean square), R² = {r_squared:.3f}."
            )
    seconds, about = console.seconds, {"model": str(out), "estimator": type(model.estimator).__name__, "rows": model.rows}
    about |= {**model.schema.to_data(), "regularization": model.estimator.regularization_, "leave_one_out": accuracy}
    about["handling"] = handling = model.estimator.handling_
    console.print(f"Fitted: {handling}.")
    console.print(f"Model: {out}. Everything took {seconds:.1f} s. Next: unseed predict {shlex.quote(str(out))} new.csv")
    console.finish(about | {"seconds": round(seconds, 3)})
