"""What a command prints: lines for people, one JSON object for machines, or nothing."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from typing import Any

from unseed._progress import Progress

_SHOW_AFTER = 1.0  # seconds; a bar is there before anybody wonders


@dataclass
class Console:
    """Prints what is done and gathers notes."""

    quiet: bool = False
    as_json: bool = False
    echo: Callable[[str], None] = print
    notes: list[str] = field(default_factory=list)
    start: float = field(default_factory=time.perf_counter)

    @property
    def is_for_people(self) -> bool:
        """Whether a person reads along."""
        return not (self.quiet or self.as_json)

    @property
    def progress(self) -> Progress:
        """Bars for people, once something takes its time."""
        return Progress(active=self.is_for_people, delay=_SHOW_AFTER)

    @property
    def seconds(self) -> float:
        """Time since the command began."""
        return time.perf_counter() - self.start

    def print(self, text: str) -> None:
        """A line for people."""
        if self.is_for_people:
            self.echo(text)

    def note(self, *texts: str) -> None:
        """What was done otherwise than a person may expect."""
        for text in texts:
            if text not in self.notes:
                self.notes.append(text)
                self.print(f"Note: {text}" if text.endswith("?") else f"Note: {text}.")

    def finish(self, result: dict[str, Any]) -> None:
        """The whole outcome, for machines."""
        if self.as_json:
            self.echo(json.dumps(result | {"notes": self.notes}, indent=1, ensure_ascii=False, allow_nan=False))

    @contextmanager
    def working(self) -> Iterator[None]:
        """Progress goes to standard error, and warnings become notes."""
        with warnings.catch_warnings(record=True) as caught, redirect_stdout(sys.stderr):
            warnings.simplefilter("always")
            yield
        self.note(*(_in_words(warning.message) for warning in caught))


def _in_words(message: Warning | str) -> str:
    text = " ".join(str(message).split()).rstrip(".")
    if isinstance(message, RuntimeWarning):
        return f"the arithmetic came to its limits ({text}); are there enormous or tiny numbers in the table?"
    return text
