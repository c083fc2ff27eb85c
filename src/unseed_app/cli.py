"""The command line, built with Typer: what is imported here is imported by ``unseed --help`` too."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from unseed import __version__
from unseed.errors import InvalidInputError
from unseed_app.commands.console import Console

app = typer.Typer(
    help="Confidence intervals for neural-network regression, with the luck of the seed taken out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _command(function: Callable[..., None]) -> Callable[..., None]:
    """Add a command whose help is its docstring: a paragraph is one line there, which the terminal breaks."""
    paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
    return app.command(help="\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs))(function)


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


class Impute(StrEnum):
    """How missing values are filled."""

    MEDIAN = "median"


_Level = Annotated[float, typer.Option(help="Confidence level of the intervals.")]
_Interval = Annotated[str, typer.Option(help="Interval method, such as cheap_bootstrap.")]
_Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1 or auto.")]
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
_Table = Annotated[Path, typer.Argument(help="CSV, Parquet or Excel file with the columns of the training table.")]


@_command
def demo(
    level: _Level = 0.95,
    interval: _Interval = "auto",
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of the split and the resamples.")] = 0,
    out: Annotated[Path, typer.Option(help="File of the figure.")] = Path("unseed-demo.png"),
    report: Annotated[Path | None, typer.Option(help="File of the page; report.html beside the figure by default.")] = None,
) -> None:
    """Intervals on a real data set: a table on screen, a figure and a page to look around in."""
    from unseed_app.demo import demonstrate

    demonstrate(level, interval, seed, out, report, typer.echo)


@_command
def fit(
    table: Annotated[Path, typer.Argument(help="CSV, Parquet or Excel file with a header, or a folder of Parquet files.")],
    target: Annotated[str, typer.Option(help="Column to predict; several with commas between them: a,b.")],
    out: Annotated[Path | None, typer.Option(help="Folder of the model; by default named after the table.")] = None,
    interval: _Interval = "auto",
    solver: Annotated[str, typer.Option(help="How rows are handled: auto, exact, landmarks or all_rows.")] = "auto",
    landmarks: Annotated[int | None, typer.Option(help="Of each network, for --solver landmarks or all_rows.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder from which a fit of a folder of files goes on after it was interrupted.")
    ] = None,
    impute: _Impute = None,
    drop: Annotated[str | None, typer.Option(help="Columns to leave out, with commas between them.")] = None,
    delimiter: _Delimiter = None,
    sheet: _Sheet = None,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of the resamples.")] = 0,
    device: _Device = "auto",
    jobs: Annotated[int | None, typer.Option(help="Networks solved at the same time.")] = None,
    cluster: _Cluster = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would take, and write nothing.")] = False,
    quiet: _Quiet = False,
    as_json: _Json = False,
) -> None:
    """Train on a table and write a model folder.

    All rows are trained on; how well left-out rows are predicted is printed. What becomes of the columns is remembered in the
    model:

    - numbers stay as they are;

    - true/false, yes/no become 1 and 0;

    - dates (YYYY-MM-DD, DD.MM.YYYY, or with slashes where day and month can be told apart; a time may follow) become days
    since the first training date;

    - other text becomes a category, one column of 0 and 1 for each value: at most 50 values, and a third of the rows.

    A missing value (an empty cell, NA, N/A, NaN, null, ?) is refused with its row and column, unless --impute median is
    given. A missing target always is.

    More than 20,000 rows are summed up in the space of some of them, the landmarks: time is linear in
    their number. --solver all_rows finds the network on all of them, --solver exact holds a matrix of all of them.
    """
    console = Console(quiet, as_json, typer.echo)
    from unseed_app.commands.fit import fit as run
    from unseed_app.commands.inputs import TableFile

    file = TableFile(table, impute is not None, delimiter, sheet)
    options: dict[str, Any] = {"interval": interval, "random_state": seed, "device": device, "n_jobs": jobs}
    rows: dict[str, Any] = {"solver": solver, "landmarks": landmarks, "checkpoint": checkpoint}
    run(file, target, drop, out, console, cluster=cluster, dry_run=dry_run, **rows, **options)


@_command
def predict(
    model: _Model,
    table: _Table,
    level: _Level = 0.95,
    out: Annotated[
        Path | None, typer.Option(help="File to write, .csv, .tsv or .parquet; by default named after the table.")
    ] = None,
    impute: _Impute = None,
    delimiter: _Delimiter = None,
    sheet: _Sheet = None,
    quiet: _Quiet = False,
    as_json: _Json = False,
) -> None:
    """Predictions and intervals for every row of a table.

    The output has the rows and columns of the table in their order, and six columns more for each target y: y_mean,
    y_mean_se (its standard error), y_mean_ci_lower and y_mean_ci_upper (confidence interval, for the function),
    y_obs_ci_lower and y_obs_ci_upper (prediction interval, for one new observation).

    Columns are found by name, in any order. A category that training rows did not have is refused.
    """
    console = Console(quiet, as_json, typer.echo)
    from unseed_app.commands.inputs import TableFile
    from unseed_app.commands.questions import predict as run

    run(model, TableFile(table, impute is not None, delimiter, sheet), level, out, console)


@_command
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
    console = Console(quiet, as_json, typer.echo)
    from unseed_app.commands.inputs import TableFile
    from unseed_app.commands.questions import diagnose as run

    run(model, None if table is None else TableFile(table, impute is not None, delimiter, sheet), console)


@_command
def report(
    model: _Model,
    table: _Table,
    level: _Level = 0.95,
    out: Annotated[Path | None, typer.Option(help="File to write, .html; by default named after the table.")] = None,
    label: Annotated[str | None, typer.Option(help="Column that says what rows are called; by default their numbers.")] = None,
    impute: _Impute = None,
    delimiter: _Delimiter = None,
    sheet: _Sheet = None,
    quiet: _Quiet = False,
    as_json: _Json = False,
) -> None:
    """A page to open in a browser: how sure the model is about each row of a table, and why.

    Where the table has the target, the page says how accurate the predictions are and whether the intervals hold what they
    promise: give it rows that the model was not trained on.
    """
    console = Console(quiet, as_json, typer.echo)
    from unseed_app.commands.inputs import TableFile
    from unseed_app.commands.questions import report as run

    run(model, TableFile(table, impute is not None, delimiter, sheet), level, label, out, console)


@_command
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
    device: _Device = "auto",
    n_jobs: Annotated[int | None, typer.Option(help="Repetitions at the same time; by default one for each core.")] = None,
    cluster: _Cluster = None,
) -> None:
    """The paper's tables, ours beside theirs."""
    from unseed_paper.command import asked_for, run  # the one place where the application knows the reproduction

    options = {"repetitions": repetitions, "device": device, "quick": quick}
    experiments = asked_for(table, protocol, engine, methods, sizes, dimensions, **options)
    run(experiments, out, resume=resume, n_jobs=n_jobs, echo=typer.echo, cluster=cluster)


@_command
def benchmark(
    rows: Annotated[int, typer.Option(min=16, help="Training rows.")] = 1024,
    repetitions: Annotated[int, typer.Option(min=1, help="Timings of each job; the median counts.")] = 5,
    out: Annotated[Path | None, typer.Option(help="File for the figures, as JSON; Ctrl-C keeps what there is.")] = None,
) -> None:
    """What intervals cost: ratios against the floor and against other methods, in one run on this machine.

    MAPIE and laplace-torch take part where they are installed; they are the extra "benchmark". What is left out is named.
    """
    folder = Path(__file__).parents[2] / "benchmarks"  # of the repository, and no part of the installation
    if not (folder / "cost_of_intervals").is_dir():
        raise InvalidInputError(
            "benchmark needs the folder benchmarks/ of the repository; run it in a clone, after `make benchmark`"
        )
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    if not importlib.import_module("cost_of_intervals.command").run(rows, repetitions, out, typer.echo):
        raise KeyboardInterrupt
