"""Tables to files, and whether a file can be written there at all."""

from __future__ import annotations

import csv
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from unseed._files import replaced
from unseed.errors import InvalidInputError
from unseed_app.tables.limits import check_installed

if TYPE_CHECKING:
    import pandas as pd

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_PARQUET = (".parquet", ".pq")


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


def write_table(frame: pd.DataFrame, path: Path) -> None:
    r"""Write CSV or Parquet by extension; what stood there before is replaced at the very end.

    Examples
    --------
    >>> import pandas as pd
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(pd.DataFrame({"a": ["x;y"], "b": [0.5]}), Path(folder, "new.csv"))
    ...     Path(folder, "new.csv").read_text()
    'a,b\nx;y,0.5\n'
    """
    with replaced(path, "out") as temporary:
        if path.suffix.lower() in _PARQUET:
            _write_parquet(frame, temporary)
        else:
            _write_text(frame, temporary, _DELIMITERS[path.suffix.lower()])


def _write_text(frame: pd.DataFrame, path: Path, delimiter: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(frame.columns)
        columns = [frame.iloc[:, i].tolist() for i in range(frame.shape[1])]
        writer.writerows(zip(*([_cell(value) for value in column] for column in columns), strict=True))


def _cell(value: object) -> object:
    """Nothing for what is missing (the only values that differ from themselves, and None)."""
    import pandas as pd

    return "" if value is None or value is pd.NA or value != value else value


def _write_parquet(frame: pd.DataFrame, path: Path) -> None:
    check_installed("pyarrow", "Parquet files", "parquet")
    frame.to_parquet(path, index=False, engine="pyarrow")
