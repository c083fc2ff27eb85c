"""Run an experiment, keep its records, write its reports."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joblib import delayed

from unseed.errors import InvalidInputError
from unseed.tasks import outcomes
from unseed_paper.experiment import Experiment
from unseed_paper.pages import write_reports, write_whole
from unseed_paper.preparation import Preparation, prepare
from unseed_paper.problems import Setting
from unseed_paper.records import Record, RecordFile
from unseed_paper.summary import summarise
from unseed_paper.trials import Trial


@dataclass(frozen=True)
class Job:
    """A repetition of a setting and the methods that are still to be run on it."""

    setting: Setting
    repetition: int
    methods: tuple[str, ...]


def reproduce(
    experiment: Experiment, out: Path, *, resume: bool = False, n_jobs: int | None = None, verbose: bool = True
) -> dict[str, Any]:
    """Run what is missing, then write the summary and the reports.

    Parameters
    ----------
    experiment : Experiment
    out : Path
        Folder of records and reports.
    resume : bool
        Go on where an earlier run stopped; without it, records that are there are an error.
    n_jobs : int or None
        Repetitions at the same time; None takes one for each core, or one where networks are trained or a GPU is used.
    verbose : bool
        Show how far it is.

    Returns
    -------
    dict
        The summary, as in ``summary.<experiment>.json``.
    """
    file = record_file(experiment, out)
    check_unused(file, resume=resume)
    if experiment.table != "table-7":
        with file.claimed():
            jobs = list(missing_jobs(experiment, file.read()))
            if jobs:
                run(experiment, jobs, file, _workers(experiment, n_jobs), verbose=verbose)
    records = list(file.read().values())
    summary = summarise(experiment, records)
    out.mkdir(parents=True, exist_ok=True)
    write_summary(summary, out / f"summary.{experiment.name}.json")
    write_reports(experiment, summary, records, out)
    return summary


def record_file(experiment: Experiment, out: Path) -> RecordFile:
    """Where an experiment's records are."""
    return RecordFile(out / f"records.{experiment.name}.jsonl")


def check_unused(file: RecordFile, *, resume: bool) -> None:
    """Records of an earlier run are gone on with when that is asked for, and never touched otherwise."""
    if file.path.exists() and not resume:
        raise InvalidInputError(
            f"{str(file.path)!r} has records of an earlier run; add --resume to go on with it, or choose another --out"
        )


def write_summary(summary: dict[str, Any], path: Path) -> None:
    """JSON with one row of the table on each line."""
    head = json.dumps({name: value for name, value in summary.items() if name != "rows"}, ensure_ascii=False)
    rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in summary["rows"])
    write_whole(path, f'{head[:-1]}, "rows": [\n{rows}\n]}}\n')


def missing_jobs(experiment: Experiment, done: dict[Any, Record]) -> Iterator[Job]:
    """What is still to be run, one repetition of everything before the next."""
    assert experiment.repetitions is not None
    for repetition in range(experiment.repetitions):
        for setting in experiment.settings:
            methods = tuple(m for m in experiment.methods if (setting.name, repetition, m) not in done)
            if methods:
                yield Job(setting, repetition, methods)


def run(experiment: Experiment, jobs: list[Job], file: RecordFile, n_jobs: int, *, verbose: bool) -> None:
    """Prepare the settings, run the jobs, write every record as it comes."""
    settings = list({job.setting.name: job.setting for job in jobs}.values())
    title = f"{experiment.table} ({experiment.protocol}, {experiment.engine})"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "A worker stopped")  # joblib replaces workers that have grown; nothing is lost
        tasks = (delayed(_prepare)(experiment, setting) for setting in settings)
        results = outcomes(tasks, n_jobs, ahead=4, ordered=False)
        prepared = dict(_followed(results, len(settings), f"{title}: preparing", verbose=verbose))
        _check_same_training(experiment, prepared, file)
        tasks = (delayed(_run_job)(experiment, job, prepared[job.setting.name]) for job in jobs)
        results = outcomes(tasks, n_jobs, ahead=4, ordered=False)
        for records in _followed(results, len(jobs), title, verbose=verbose):
            file.append(records)


def _check_same_training(experiment: Experiment, prepared: dict[str, Preparation], file: RecordFile) -> None:
    """Records that were trained otherwise, as by another version, must not be mixed with new ones."""
    for (setting, _, method), record in file.read().items():
        if setting in prepared and method in experiment.methods:
            now = prepared[setting].training_of(method)
            if record["training"] != now:
                raise InvalidInputError(
                    f"{file.path}: {method} of {setting!r} was trained by {record['training']} and would now be by {now}; "
                    "choose another --out"
                )


def _prepare(experiment: Experiment, setting: Setting) -> tuple[str, Preparation]:
    with _one_thread(experiment):
        return setting.name, prepare(experiment, setting)


def _run_job(experiment: Experiment, job: Job, preparation: Preparation) -> list[Record]:
    with _one_thread(experiment):
        trial = Trial(experiment, job.setting, preparation, job.repetition)
        return list(trial.records(job.methods))


@contextmanager
def _one_thread(experiment: Experiment) -> Iterator[None]:
    """Repetitions are what runs side by side, and one thread gives the same digits on any number of cores."""
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    with threadpool_limits(limits=1 if experiment.engine != "network" else None):
        torch.set_num_threads(1 if experiment.engine != "network" else before)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def _workers(experiment: Experiment, n_jobs: int | None) -> int:
    """One for each core, but one alone where trained networks use all cores or one GPU would have to serve many."""
    import torch

    if n_jobs is not None:
        return n_jobs
    on_gpu = experiment.device.startswith("cuda") or (experiment.device == "auto" and torch.cuda.is_available())
    return 1 if experiment.engine == "network" or on_gpu else (os.cpu_count() or 1)


def _followed(results: Any, total: int, title: str, *, verbose: bool) -> Iterator[Any]:
    """Pass results on and show how many there are."""
    if not verbose:
        yield from results
        return
    from tqdm import tqdm

    yield from tqdm(results, total=total, desc=title, smoothing=0.02)
