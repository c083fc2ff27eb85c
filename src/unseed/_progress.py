"""Progress of long work: a bar where tqdm is installed, a line per stage otherwise, nothing unless asked for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Progress:
    """Talks only when ``active``; a bar appears once its work has taken ``delay`` seconds.

    Examples
    --------
    >>> with Progress(active=False).steps("training", 3) as step:
    ...     step(loss=0.5)
    """

    active: bool = False
    delay: float = 0.0

    def say(self, message: str, since: float) -> None:
        """Print one line with the seconds that passed."""
        if self.active:
            print(f"[unseed] {message}, {time.perf_counter() - since:.2f} s")

    @contextmanager
    def steps(self, title: str, total: int | None) -> Iterator[Any]:
        """Yield a function to call once per step, with figures to show (such as the loss)."""
        if not self.active:
            yield lambda **figures: None
            return
        try:
            from tqdm import tqdm
        except ImportError:
            start = time.perf_counter()
            yield lambda **figures: None
            self.say(f"{title} done", start)
            return
        with tqdm(total=total, desc=f"[unseed] {title}", delay=self.delay) as bar:

            def step(**figures: float) -> None:
                bar.set_postfix({name: f"{value:.3g}" for name, value in figures.items()}, refresh=False)
                bar.update()

            yield step
