"""The command line, built with Typer."""

from __future__ import annotations

import importlib.util
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from unseed import __version__
from unseed_app.commands import help_texts

app = typer.Typer(
    help="Confidence intervals for neural-network regression, with the luck of the seed taken out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"unseed {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    level: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.95,
    interval: Annotated[str, typer.Option(help="Interval method, such as cheap_bootstrap.")] = "auto",
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of the split and the resamples.")] = 0,
    out: Annotated[Path, typer.Option(help="File of the figure.")] = Path("unseed-demo.png"),
    report: Annotated[Path | None, typer.Option(help="File of the page; report.html beside the figure by default.")] = None,
) -> None:
    """Intervals on a real data set: a table on screen, a figure and a page to look around in."""
    import matplotlib as mpl

    from unseed._results import check_level
    from unseed.errors import InvalidInputError
    from unseed_app import demo as demonstration
    from unseed_app.report import check_can_be_written

    start = time.perf_counter()
    mpl.use("Agg")
    check_level(level)
    if not out.parent.is_dir():
        raise InvalidInputError(f"out={str(out)!r}: the folder {str(out.parent)!r} does not exist; make it first")
    if out.suffix.lower() not in {".png", ".pdf", ".svg", ".jpg"} or out.is_dir():
        raise InvalidInputError(f"out={str(out)!r} must be a file that ends in .png, .pdf, .svg or .jpg")
    page = out.with_name("report.html") if report is None else report
    check_can_be_written(page)
    result = demonstration.run(interval, seed)
    typer.echo(demonstration.describe(result, level))
    try:
        demonstration.save_figure(result, level, out)
    except OSError as error:
        raise InvalidInputError(f"out={str(out)!r} could not be written: {error.strerror or error}") from error
    demonstration.save_report(result, level, page, f"unseed demo --level {level:g} --interval {interval} --seed {seed}")
    typer.echo(f"Figure: {out}. Report: {page}. Everything took {time.perf_counter() - start:.1f} s.")


class Impute(StrEnum):
    """How missing values are filled."""

    MEDIAN = "median"


_Quiet = Annotated[bool, typer.Option("--quiet", help="Say nothing but errors.")]
_Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output instead of words.")]
_Delimiter = Annotated[str | None, typer.Option(help="Of a text file, such as ';' or tab; found by itself by default.")]
_Sheet = Annotated[str | None, typer.Option(help="Of an Excel workbook; the first by default.")]
_Impute = Annotated[
    Impute | None,
    typer.Option(help="Fill missing values: numbers and dates by the training median, others by the most frequent value."),
]
_Cluster = Annotated[
    str | None, typer.Option(help="Address of a Dask scheduler whose workers do the work, such as tcp://10.0.0.5:8786.")
]
_Model = Annotated[Path, typer.Argument(help="Folder that `unseed fit` wrote.")]


@app.command(help=help_texts.FIT)
def fit(
    table: Annotated[Path, typer.Argument(help="CSV, Parquet or Excel file with a header.")],
    target: Annotated[str, typer.Option(help="Column to predict; several with commas between them: a,b.")],
    out: Annotated[Path | None, typer.Option(help="Folder of the model; by default named after the table.")] = None,
    interval: Annotated[str, typer.Option(help="Interval method, such as cheap_bootstrap.")] = "auto",
    impute: _Impute = None,
    drop: Annotated[str | None, typer.Option(help="Columns to leave out, with commas between them.")] = None,
    delimiter: _Delimiter = None,
    sheet: _Sheet = None,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of the resamples.")] = 0,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1 or auto.")] = "auto",
    jobs: Annotated[int | None, typer.Option(help="Networks solved at the same time.")] = None,
    cluster: _Cluster = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would take, and write nothing.")] = False,
    quiet: _Quiet = False,
    as_json: _Json = False,
) -> None:
    """Train on a table."""
    _check_pandas()
    from unseed_app.commands.fit import FitOptions
    from unseed_app.commands.fit import fit as run
    from unseed_app.commands.voice import Voice

    options = FitOptions(target, interval, impute is not None, drop, delimiter, sheet, seed, device, jobs, cluster)
    run(table, out, options, Voice(quiet, as_json, typer.echo), dry_run=dry_run)


@app.command(help=help_texts.PREDICT)
def predict(
    model: _Model,
    table: Annotated[Path, typer.Argument(help="CSV, Parquet or Excel file with the columns of the training table.")],
    level: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.95,
    out: Annotated[
        Path | None, typer.Option(help="File to write, .csv, .tsv or .parquet; by default named after the table.")
    ] = None,
    impute: _Impute = None,
    delimiter: _Delimiter = None,
    sheet: _Sheet = None,
    quiet: _Quiet = False,
    as_json: _Json = False,
) -> None:
    """Predictions and intervals for every row of a table."""
    _check_pandas()
    from unseed_app.commands.predict import PredictOptions
    from unseed_app.commands.predict import predict as run
    from unseed_app.commands.voice import Voice

    options = PredictOptions(level, impute is not None, delimiter, sheet)
    run(model, table, out, options, Voice(quiet, as_json, typer.echo))


@app.command()
def diagnose(
    model: _Model,
    table: Annotated[Path | None, typer.Argument(help="New rows; those far from the training rows are named.")] = None,
    impute: _Impute = None,
    delimiter: _Delimiter = None,
    sheet: _Sheet = None,
    quiet: _Quiet = False,
    as_json: _Json = False,
) -> None:
    """Can the intervals of a model be believed? What holds, what does not, and what to change."""
    _check_pandas()
    from unseed_app.commands.diagnose import diagnose as run
    from unseed_app.commands.voice import Voice

    voice = Voice(quiet, as_json, typer.echo)
    run(model, table, voice, impute=impute is not None, delimiter=delimiter, sheet=sheet)


@app.command(help=help_texts.REPORT)
def report(
    model: _Model,
    table: Annotated[Path, typer.Argument(help="CSV, Parquet or Excel file with the columns of the training table.")],
    level: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.95,
    out: Annotated[Path | None, typer.Option(help="File to write, .html; by default named after the table.")] = None,
    label: Annotated[str | None, typer.Option(help="Column that says what rows are called; by default their numbers.")] = None,
    impute: _Impute = None,
    delimiter: _Delimiter = None,
    sheet: _Sheet = None,
    quiet: _Quiet = False,
    as_json: _Json = False,
) -> None:
    """A page about every row of a table."""
    _check_pandas()
    from unseed_app.commands.report import ReportOptions
    from unseed_app.commands.report import report as run
    from unseed_app.commands.voice import Voice

    options = ReportOptions(level, label, impute is not None, delimiter, sheet)
    run(model, table, out, options, Voice(quiet, as_json, typer.echo))


def _check_pandas() -> None:
    from unseed.errors import InvalidInputError

    if importlib.util.find_spec("pandas") is None:
        raise InvalidInputError("tables need pandas; install it with: pip install 'unseed[frames]'")


@app.command()
def reproduce(
    table: Annotated[str, typer.Argument(help="table-1 … table-7, or all.")],
    protocol: Annotated[str, typer.Option(help="paper, authors-code, default, or all of them.")] = "paper",
    engine: Annotated[str, typer.Option(help="kernel, linearized or network.")] = "kernel",
    repetitions: Annotated[
        int | None, typer.Option(help="Data sets for each setting; by default as many as in the paper (100, 40 or 10).")
    ] = None,
    methods: Annotated[str | None, typer.Option(help="Names with commas between them; all by default.")] = None,
    sizes: Annotated[str | None, typer.Option(help="Of 128,256,512,1024 (tables 1 to 4); all by default.")] = None,
    dimensions: Annotated[str | None, typer.Option(help="Of 2,4,8,16 (tables 1 to 4); all by default.")] = None,
    out: Annotated[Path, typer.Option(help="Folder of records and reports.")] = Path("reproduction"),
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the records in --out.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Few repetitions of the small sizes.")] = False,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1 or auto.")] = "auto",
    n_jobs: Annotated[int | None, typer.Option(help="Repetitions at the same time; by default one for each core.")] = None,
    cluster: _Cluster = None,
) -> None:
    """The paper's tables, ours beside theirs."""
    from unseed_paper.command import asked_for, run  # the one place where the library knows its client

    options = {"repetitions": repetitions, "device": device, "quick": quick}
    experiments = asked_for(table, protocol, engine, methods, sizes, dimensions, **options)
    run(experiments, out, resume=resume, n_jobs=n_jobs, echo=typer.echo, cluster=cluster)


_INTERRUPTED = 130  # what shells expect of a command that was stopped with Ctrl-C


@app.command()
def benchmark(
    rows: Annotated[int, typer.Option(min=16, help="Training rows.")] = 1024,
    repetitions: Annotated[int, typer.Option(min=1, help="Timings of each job; the median counts.")] = 5,
    out: Annotated[Path | None, typer.Option(help="File for the figures, as JSON; Ctrl-C keeps what there is.")] = None,
) -> None:
    """What intervals cost: ratios against the floor and against other methods, in one run on this machine.

    MAPIE and laplace-torch take part where they are installed; they are the extra "benchmark". What is left out is named.
    """
    from unseed_app.commands.benchmark import run

    if not run(rows, repetitions, out, typer.echo):
        raise typer.Exit(_INTERRUPTED)
