"""What ``unseed benchmark`` does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tqdm import tqdm

from cost_of_intervals.timing import Benchmark
from cost_of_intervals.words import describe
from unseed import replaced
from unseed.errors import InvalidInputError


def run(n_rows: int, repetitions: int, out: Path | None, echo: Callable[[str], None]) -> bool:
    """Measure, print and write; what was measured is kept when something ends it early. Whether it came to its end."""
    if out is not None:
        _check_can_be_written(out)
    with tqdm(desc="[unseed] timing") as bar:

        def report(name: str) -> None:
            bar.set_postfix_str(name)
            bar.update()

        benchmark = Benchmark(n_rows, repetitions, report)
        try:
            benchmark.run()
        except KeyboardInterrupt:
            pass
        except BaseException:
            _write(benchmark.figures(), out)
            raise
    figures = benchmark.figures()
    echo(describe(figures))
    if _write(figures, out):
        echo(f"Figures: {out}")
    return benchmark.is_complete


def _check_can_be_written(out: Path) -> None:
    """Refuse a file that could not be written in the end, before anything is measured."""
    if not out.parent.is_dir():
        raise InvalidInputError(f"out={str(out)!r}: the folder {str(out.parent)!r} does not exist; make it first")
    if out.is_dir():
        raise InvalidInputError(f"out={str(out)!r} is a folder; give the name of a file, such as benchmark.json")
    was_there = out.exists()
    try:
        with out.open("a"):
            pass
    except OSError as error:
        raise _refusal(out, error) from error
    if not was_there:
        out.unlink()


def _write(figures: dict[str, Any], out: Path | None) -> bool:
    """Whether there was a file to write, and something to write into it."""
    if out is None or not (figures["seconds"] or figures["growth"]):
        return False
    try:
        with replaced(out) as part:
            part.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise _refusal(out, error) from error
    return True


def _refusal(out: Path, error: OSError) -> InvalidInputError:
    return InvalidInputError(f"out={str(out)!r} could not be written: {error.strerror or error}")
