"""Tables to files, and whether a file can be written there at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pandas as pd

from unseed._files import replaced
from unseed.errors import InvalidInputError

PARQUET = (".parquet", ".pq")


def check_output(path: Path, *, inputs: tuple[Path, ...] = (), extensions: tuple[str, ...] = ()) -> None:
    """Refuse, before any work, a place that cannot be written or that is one of the inputs."""
    if extensions and path.suffix.lower() not in extensions:
        raise InvalidInputError(f"out={str(path)!r} must end in {' or '.join(extensions)}")
    if any(path.exists() and given.exists() and path.samefile(given) for given in inputs):
        raise InvalidInputError(f"out={str(path)!r} is the input itself, which would be lost; name another file")
    if extensions and path.is_dir():
        raise InvalidInputError(f"out={str(path)!r} is a folder; name a file")
    if path.is_symlink() and not path.exists():
        raise InvalidInputError(f"out={str(path)!r} is a link to {os.readlink(path)!r}, which does not exist; name another")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise InvalidInputError(f"out={str(path)!r}: the folder {str(path.parent)!r} does not exist; make it first")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InvalidInputError(f"out={str(path)!r} cannot be written: {error.strerror or error}") from error
    if path.suffix.lower() in PARQUET:
        import pyarrow  # noqa: F401 - writes it, and is asked for before any work


def write_table(frame: pd.DataFrame, path: Path) -> None:
    r"""Write CSV, TSV or Parquet by extension; what stood there before is replaced at the very end.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(pd.DataFrame({"a": ["x;y"], "b": [0.5]}), Path(folder, "new.csv"))
    ...     Path(folder, "new.csv").read_text()
    'a,b\nx;y,0.5\n'
    """
    with replaced(path, "out") as part:
        if path.suffix.lower() in PARQUET:
            frame.to_parquet(part, index=False, engine="pyarrow")
        else:
            frame.to_csv(part, index=False, sep="\t" if path.suffix.lower() == ".tsv" else ",", lineterminator="\n")
