"""What ``unseed reproduce`` does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from unseed import MLP, PNCRegressor
from unseed.errors import InvalidInputError
from unseed_paper.experiment import Experiment
from unseed_paper.printed import TABLES
from unseed_paper.problems import DATASETS, load
from unseed_paper.protocols import PROTOCOLS
from unseed_paper.reproduction import reproduce

_REAL = ("table-5", "table-6")


def run(
    table: str,
    protocol: str,
    engine: str,
    repetitions: int | None,
    methods: str,
    sizes: str,
    dimensions: str,
    out: Path,
    resume: bool,
    quick: bool,
    device: str,
    n_jobs: int | None,
    *,
    echo: Callable[[str], None],
) -> None:
    """Check everything, then run one experiment after the other and say where the reports are."""
    if n_jobs == 0:
        raise InvalidInputError("n-jobs=0 runs nothing; use 1, 2, … or -1 for every core")
    if table not in (*TABLES, "all"):
        raise InvalidInputError(f"table={table!r} is not known; use {', '.join(TABLES)} or all")
    tables = TABLES if table == "all" else (table,)
    protocols = tuple(PROTOCOLS) if protocol == "all" else (protocol,)
    kept = (_words(methods), _whole("sizes", sizes), _whole("dimensions", dimensions), device, quick)
    experiments = [Experiment(name, rules, engine, repetitions, *kept) for rules in protocols for name in tables]
    left_out = _without_data(experiments, explain=table == "all")
    if left_out:
        echo(f"Tables 5 and 6 are left out: {left_out}")
        experiments = [experiment for experiment in experiments if experiment.table not in _REAL]
    _check_device(device)
    _check_folder(out)
    for experiment in experiments:
        start = time.perf_counter()
        try:
            reproduce(experiment, out, resume=resume, n_jobs=n_jobs)
        except KeyboardInterrupt:
            threading.excepthook = lambda _: None  # workers that were cut off have nothing to say
            raise InvalidInputError(f"stopped; everything up to here is in {str(out)!r}: add --resume to go on") from None
        echo(
            f"{experiment.table}, {experiment.protocol}, {experiment.engine}: {time.perf_counter() - start:.0f} s, "
            f"{out / f'report.{experiment.name}.html'}"
        )


def _without_data(experiments: list[Experiment], *, explain: bool) -> str:
    """Why the real data cannot be had; refused at once where a table needs them and was asked for by name."""
    if not any(experiment.table in _REAL for experiment in experiments):
        return ""
    try:
        for dataset in DATASETS:
            load(dataset)
    except InvalidInputError as error:
        if not explain:
            raise
        return str(error)
    return ""


def _check_device(device: str) -> None:
    """A fit to four rows tells."""
    rows = [[0.0], [1.0], [2.0], [3.0]]
    PNCRegressor(network=MLP(), regularization=1.0, interval="batching", device=device).fit(rows, [0.0, 1.0, 2.0, 3.0])


def _check_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(f"out={str(out)!r} is not a folder that can be written: {error.strerror or error}") from error


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip().replace("-", "_") for word in text.split(",") if word.strip())


def _whole(name: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(word) for word in text.split(",") if word.strip())
    except ValueError:
        raise InvalidInputError(f"{name}={text!r} must be whole numbers with commas between them, such as 128,256") from None
