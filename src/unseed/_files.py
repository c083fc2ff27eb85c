"""Outputs appear whole or not at all: written beside their place, then moved there."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from unseed.errors import InvalidInputError


@contextlib.contextmanager
def replaced(path: str | os.PathLike[str], argument: str | None = None) -> Iterator[Path]:
    """Where to write a file, or a folder of files, that takes the place of ``path`` when it is complete.

    What stood there before stays where anything fails in between, and nothing is left beside it then. A device or a pipe is
    no file that another can stand for: it is written to itself.

    Parameters
    ----------
    path : path of a file or a folder
    argument : str or None
        What the path is called in the sentence that is raised where it cannot be written; None leaves the OSError as it is.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replaced(f"{folder}/new.csv") as part:
    ...         _ = part.write_text("a,b")
    ...     Path(folder, "new.csv").read_text()
    'a,b'
    """
    target = Path(path)
    is_device = os.path.exists(target) and not (os.path.isfile(target) or os.path.isdir(target))
    # The extension stays: there are writers that go by it.
    part = target if is_device else target.with_name(f".{target.stem[:50]}.{secrets.token_hex(4)}{target.suffix}")
    try:
        yield part
        if not is_device:
            _put_in_place(part, target)
    except OSError as error:
        if argument is None:
            raise
        raise InvalidInputError(f"{argument}={str(path)!r} could not be written: {error.strerror or error}") from error
    finally:
        if not is_device:
            shutil.rmtree(part, ignore_errors=True)  # where it is a folder
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)


def _put_in_place(part: Path, target: Path) -> None:
    for file in part.iterdir() if part.is_dir() else (part,):
        with file.open("rb") as written:
            os.fsync(written.fileno())
    if not (part.is_dir() and target.exists()):
        part.replace(target)
        return
    aside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.old")  # a folder with something in it is not replaced
    target.rename(aside)
    try:
        part.rename(target)
    except OSError:
        with contextlib.suppress(OSError):
            aside.rename(target)
        raise
    shutil.rmtree(aside, ignore_errors=True)
