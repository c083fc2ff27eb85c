"""From a file to a `Table`, by its extension; a file that is something else than its name says is refused."""

from __future__ import annotations

from pathlib import Path

from unseed._progress import Progress
from unseed.errors import InvalidInputError
from unseed_app.tables.delimited import read_delimited
from unseed_app.tables.limits import check_fits
from unseed_app.tables.parquet import read_parquet
from unseed_app.tables.table import Table
from unseed_app.tables.workbook import read_workbook

_TEXT, _PARQUET, _EXCEL = (".csv", ".tsv", ".txt", ".gz"), (".parquet", ".pq"), (".xlsx", ".xlsm")
_BYTES_PER_BYTE = 4  # of memory while a text file is read, for each byte of it
_SIGNATURES = {
    b"PK\x03\x04": ("an Excel workbook or another zip archive", _EXCEL),
    b"PAR1": ("a Parquet file", _PARQUET),
    b"\xd0\xcf\x11\xe0": ("an old Excel workbook (.xls), or one with a password", ()),
    b"%PDF": ("a PDF document", ()),
    b"\x89PNG": ("a picture", ()),
    b"SQLite": ("a database", ()),
    b"<!DOC": ("a web page", ()),
    b"<html": ("a web page", ()),
}


def read_table(
    path: str | Path, *, delimiter: str | None = None, sheet: str | None = None, progress: Progress | None = None
) -> Table:
    r"""Read CSV, Parquet or Excel.

    Parameters
    ----------
    path : str or Path
        ``.csv``, ``.tsv``, ``.txt`` (also ``.gz`` of these), ``.parquet``, ``.pq``, ``.xlsx`` or ``.xlsm``.
    delimiter : str or None
        Of a text file; None finds it among comma, semicolon, tab and ``|``.
    sheet : str or None
        Of a workbook; None is the first.
    progress : Progress or None

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "ages.csv")
    >>> _ = path.write_text("name;age\nAda;36\n")
    >>> table = read_table(path)
    >>> table.names, table.notes
    (['name', 'age'], ("the delimiter is ';'",))
    >>> folder.cleanup()
    """
    path = Path(path)
    _check_pandas()
    head = _checked_head(path)
    suffix = path.suffix.lower()
    if delimiter is not None and suffix not in _TEXT:
        raise InvalidInputError(f"{path}: a delimiter belongs to a text file, and this is not one; leave --delimiter out")
    if sheet is not None and suffix not in _EXCEL:
        raise InvalidInputError(f"{path}: a sheet belongs to an Excel workbook, and this is not one; leave --sheet out")
    _check_signature(path, head)
    try:
        if suffix in _PARQUET:
            return read_parquet(path)
        if suffix in _EXCEL:
            return read_workbook(path, sheet)
        return read_delimited(path, delimiter, progress or Progress())
    except OSError as error:
        raise InvalidInputError(f"{path} could not be read: {error.strerror or error}") from error
    except MemoryError as error:
        raise InvalidInputError(f"{path} does not fit the memory of this machine") from error


def _check_pandas() -> None:
    try:
        import pandas  # noqa: F401
    except ImportError as missing:
        raise InvalidInputError("reading tables needs pandas; install it with: pip install 'unseed[frames]'") from missing


def _checked_head(path: Path) -> bytes:
    """The first bytes of a file that is there, can be read, is not empty, fits the memory and has a known extension."""
    try:
        if path.is_dir():
            raise InvalidInputError(f"{path} is a folder; name a file in it")
        if path.exists() and not path.is_file():
            raise InvalidInputError(f"{path} is a pipe or a device; write what it gives to a file, and name that")
        with path.open("rb") as file:
            head = file.read(8)
        size = path.stat().st_size
    except OSError as error:
        raise InvalidInputError(f"{path} could not be read: {error.strerror or error}") from error
    if not head:
        raise InvalidInputError(f"{path} is empty")
    known = (*_TEXT, *_PARQUET, *_EXCEL)
    if path.suffix.lower() == ".xls":
        raise InvalidInputError(f"{path}: the old Excel format .xls is not read; save the workbook as .xlsx")
    if path.suffix.lower() not in known:
        raise InvalidInputError(f"{path}: the extension {path.suffix!r} is not known; use one of {', '.join(known)}")
    check_fits(str(path), size, _BYTES_PER_BYTE)
    return head


def _check_signature(path: Path, head: bytes) -> None:
    suffix = path.suffix.lower()
    for signature, (what, extensions) in _SIGNATURES.items():
        if head.lower().startswith(signature.lower()) and suffix not in extensions:
            remedy = f"rename it to {extensions[0]}" if extensions else "save it as .csv or .xlsx without a password"
            raise InvalidInputError(f"{path} is {what}, not what its extension {suffix} says; {remedy}")
    if suffix in _EXCEL and not head.startswith(b"PK\x03\x04"):
        raise InvalidInputError(f"{path} is not an Excel workbook, whatever its name says; if it is text, rename it to .csv")
    if suffix in _PARQUET and not head.startswith(b"PAR1"):
        raise InvalidInputError(f"{path} is not a Parquet file, whatever its name says; if it is text, rename it to .csv")
