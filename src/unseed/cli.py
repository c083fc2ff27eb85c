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
) -> None:
    """Intervals on a real data set: a table on screen and a figure."""
    import matplotlib as mpl

    from unseed import demo as demonstration
    from unseed.errors import InvalidInputError
    from unseed.results import check_level

    start = time.perf_counter()
    mpl.use("Agg")
    check_level(level)
    if not out.parent.is_dir():
        raise InvalidInputError(f"out={str(out)!r}: the folder {str(out.parent)!r} does not exist; make it first")
    if out.suffix.lower() not in {".png", ".pdf", ".svg", ".jpg"} or out.is_dir():
        raise InvalidInputError(f"out={str(out)!r} must be a file that ends in .png, .pdf, .svg or .jpg")
    result = demonstration.run(interval, seed)
    typer.echo(demonstration.describe(result, level))
    try:
        demonstration.save_figure(result, level, out)
    except OSError as error:
        raise InvalidInputError(f"out={str(out)!r} could not be written: {error.strerror or error}") from error
    typer.echo(f"Figure: {out}. Everything took {time.perf_counter() - start:.1f} s.")
