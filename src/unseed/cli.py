"""The command line, built with Typer."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from unseed import __version__

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

    from unseed import demo as demonstration
    from unseed.errors import InvalidInputError
    from unseed.report import check_can_be_written
    from unseed.results import check_level

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
) -> None:
    """The paper's tables, ours beside theirs."""
    from unseed_paper.command import asked_for, run  # the one place where the library knows its client

    options = {"repetitions": repetitions, "device": device, "quick": quick}
    experiments = asked_for(table, protocol, engine, methods, sizes, dimensions, **options)
    run(experiments, out, resume=resume, n_jobs=n_jobs, echo=typer.echo)


@app.command()
def benchmark(
    rows: Annotated[int, typer.Option(min=16, help="Training rows.")] = 1024,
    repetitions: Annotated[int, typer.Option(min=1, help="Timings of each job; the median counts.")] = 5,
    out: Annotated[Path | None, typer.Option(help="File for the figures, as JSON.")] = None,
) -> None:
    """What intervals cost: ratios against the floor and against other methods, in one run on this machine."""
    import json

    from tqdm import tqdm

    from unseed import benchmark as timing
    from unseed.errors import InvalidInputError

    if out is not None and not out.parent.is_dir():
        raise InvalidInputError(f"out={str(out)!r}: the folder {str(out.parent)!r} does not exist; make it first")
    with tqdm(desc="[unseed] timing") as bar:

        def report(name: str) -> None:
            bar.set_postfix_str(name)
            bar.update()

        result = timing.measure(rows, repetitions, report) | {"growth": timing.growth(repetitions, report)}
    typer.echo(timing.describe(result))
    if out is not None:
        out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        typer.echo(f"Figures: {out}")
