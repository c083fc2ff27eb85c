"""What ``unseed reproduce`` does."""

from __future__ import annotations

import importlib.util
import itertools
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from unseed import MLP, PNCRegressor
from unseed.errors import InvalidInputError
from unseed.tasks import on_cluster
from unseed_paper.experiment import Experiment
from unseed_paper.printed import REAL_TABLES, TABLES
from unseed_paper.problems import DATASETS, load
from unseed_paper.protocols import PROTOCOLS
from unseed_paper.reproduction import check_unused, record_file, reproduce


def asked_for(
    table: str, protocol: str, engine: str, methods: str | None, sizes: str | None, dimensions: str | None, **options: Any
) -> list[Experiment]:
    """The experiments that a command line means; options are those of `Experiment`."""
    if table not in (*TABLES, "all"):
        raise InvalidInputError(f"table={table!r} is not known; use {', '.join(TABLES)} or all")
    options |= {"sizes": _whole("sizes", sizes), "dimensions": _whole("dimensions", dimensions)}
    return _experiments(table, protocol, engine, _words("methods", methods), options)


def run(
    experiments: list[Experiment],
    out: Path,
    *,
    resume: bool,
    n_jobs: int | None,
    echo: Callable[[str], None],
    cluster: str | None = None,
) -> None:
    """Check everything, then run one experiment after the other and say where the reports are."""
    if n_jobs == 0:
        raise InvalidInputError("n-jobs=0 runs nothing; use 1, 2, … or -1 for every core")
    left_out = _without_data(experiments)
    if left_out:
        echo(f"Tables 5 and 6 are left out: {left_out}")
        experiments = [experiment for experiment in experiments if experiment.table not in REAL_TABLES]
    _check_packages()
    _check_device(experiments[0].device)
    for experiment in experiments:
        check_unused(record_file(experiment, out), resume=resume)
    _check_folder(out)
    if cluster is not None and n_jobs is None:
        n_jobs = -1  # every worker, also where one process alone would train network after network
    with on_cluster(cluster):
        for experiment in experiments:
            _reproduce(experiment, out, resume=resume, n_jobs=n_jobs, echo=echo)


def _reproduce(experiment: Experiment, out: Path, *, resume: bool, n_jobs: int | None, echo: Callable[[str], None]) -> None:
    start = time.perf_counter()
    try:
        reproduce(experiment, out, resume=resume, n_jobs=n_jobs)
    except KeyboardInterrupt:
        threading.excepthook = lambda _: None  # workers that were cut off have nothing to say
        raise InvalidInputError(f"stopped; everything up to here is in {str(out)!r}: add --resume to go on") from None
    echo(f"{experiment.name}: {time.perf_counter() - start:.0f} s, {out / f'report.{experiment.name}.html'}")


def _experiments(table: str, protocol: str, engine: str, methods: tuple[str, ...], options: dict[str, Any]) -> list[Experiment]:
    """One for each table and protocol; where there are several, options go to those that they are for."""
    if table != "all" and protocol != "all":
        return [Experiment(table, protocol, engine, methods=methods, **options)]
    found = []
    protocols = tuple(PROTOCOLS) if protocol == "all" else (protocol,)
    for rules, name in itertools.product(protocols, TABLES if table == "all" else (table,)):
        own = tuple(method for method in methods if Experiment.knows(name, rules, method))
        if (methods and not own) or (name == "table-7" and rules != protocols[0]):
            continue
        kept = dict(options)
        if table == "all" and name in (*REAL_TABLES, "table-7"):
            kept |= {"sizes": None, "dimensions": None}
        if table == "all" and name == "table-7":
            kept |= {"repetitions": None}
        found.append(Experiment(name, rules, engine, methods=own, **kept))
    if not found:
        raise InvalidInputError(f"methods={','.join(methods)!r}: none of them is known for these tables and protocols")
    return found


def _without_data(experiments: list[Experiment]) -> str:
    """Why the real data cannot be had; refused at once where there is nothing to be done without them."""
    if not any(experiment.table in REAL_TABLES for experiment in experiments):
        return ""
    try:
        for dataset in DATASETS:
            load(dataset)
    except InvalidInputError as error:
        if all(experiment.table in REAL_TABLES for experiment in experiments):
            raise
        return str(error)
    return ""


def _check_packages() -> None:
    """Hours of work must not end at a picture that cannot be drawn."""
    for name in ("matplotlib", "tqdm"):
        if importlib.util.find_spec(name) is None:
            raise InvalidInputError(f"reproducing tables needs {name}; install it with: pip install 'unseed[cli,plots]'")


def _check_device(device: str) -> None:
    """A fit to four rows tells."""
    rows = [[0.0], [1.0], [2.0], [3.0]]
    PNCRegressor(network=MLP(), regularization=1.0, interval="batching", device=device).fit(rows, [0.0, 1.0, 2.0, 3.0])


def _check_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise InvalidInputError(f"out={str(out)!r} is not a folder that can be written: {error.strerror or error}") from error


def _words(name: str, text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    words = tuple(word.strip().replace("-", "_") for word in text.split(",") if word.strip())
    if not words:
        raise InvalidInputError(f"{name}={text!r} is empty; give names with commas between them, or leave the option out")
    return words


def _whole(name: str, text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return tuple(int(word) for word in _words(name, text))
    except ValueError:
        raise InvalidInputError(f"{name}={text!r} must be whole numbers with commas between them, such as 128,256") from None
