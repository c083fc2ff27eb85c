"""Pages whose figures no one types: what stands between `<!-- begin name -->` and `<!-- end -->` is written by a function."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from unseed import replaced

Blocks = Mapping[str, Callable[[], str]]


def markdown_table(head: Sequence[str], lines: Sequence[Sequence[str]], left: int = 0) -> str:
    """A table in Markdown, the first few columns of which are words."""
    rule = [":---"] * left + ["---:"] * (len(head) - left)
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, rule, *lines])


def refreshed(text: str, blocks: Blocks) -> str:
    """The page with every block made anew."""

    def block(match: re.Match[str]) -> str:
        return f"<!-- begin {match['name']} -->\n\n{blocks[match['name']]()}\n\n<!-- end -->"

    return re.sub(r"<!-- begin (?P<name>[^>]+) -->.*?<!-- end -->", block, text, flags=re.DOTALL)


def write(page: Path, blocks: Blocks) -> None:
    """Refresh a page, or with --check end by saying whether that would change it."""
    text = page.read_text()
    new = refreshed(text, blocks)
    if "--check" in sys.argv:
        sys.exit(0 if new == text else f"{page.name} is not what the figures say; run python {sys.argv[0]}")
    with replaced(page) as part:
        part.write_text(new)
