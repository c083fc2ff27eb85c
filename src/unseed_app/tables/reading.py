"""From a file to a `Table`, by its extension; a file that is something else than its name says is refused."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from unseed._progress import Progress
from unseed.errors import InvalidInputError
from unseed_app.tables.delimited import read_delimited
from unseed_app.tables.table import Table, check_fits
from unseed_app.tables.typed_files import read_parquet, read_workbook


class Format(NamedTuple):
    """A kind of files: what it is called, its extensions, and how such a file begins."""

    name: str
    extensions: tuple[str, ...]
    signature: bytes


TEXT = Format("a text file", (".csv", ".tsv", ".txt", ".gz"), b"")
PARQUET = Format("a Parquet file", (".parquet", ".pq"), b"PAR1")
EXCEL = Format("an Excel workbook", (".xlsx", ".xlsm"), b"PK\x03\x04")
_FORMATS = {extension: form for form in (TEXT, PARQUET, EXCEL) for extension in form.extensions}

_BYTES_PER_BYTE = 4  # of memory while a text file is read, for each byte of it
_OTHERS = {
    EXCEL.signature: ("an Excel workbook or another zip archive", EXCEL),
    PARQUET.signature: (PARQUET.name, PARQUET),
    b"\xd0\xcf\x11\xe0": ("an old Excel workbook (.xls), or one with a password", None),
    b"%PDF": ("a PDF document", None),
    b"\x89PNG": ("a picture", None),
    b"SQLite": ("a database", None),
    b"<!DOC": ("a web page", None),
    b"<html": ("a web page", None),
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
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "ages.csv")
    ...     _ = path.write_text("name;age\nAda;36\n")
    ...     table = read_table(path)
    >>> table.names, table.notes
    (['name', 'age'], ("the delimiter is ';'",))
    """
    path = Path(path)
    try:
        form = _checked_format(path)
        for option, given, owner in (("delimiter", delimiter, TEXT), ("sheet", sheet, EXCEL)):
            if given is not None and form is not owner:
                raise InvalidInputError(
                    f"{path}: a {option} belongs to {owner.name}, and this is not one; leave --{option} out"
                )
        if form is TEXT:
            return read_delimited(path, delimiter, progress or Progress())
        return read_parquet(path) if form is PARQUET else read_workbook(path, sheet=sheet)
    except OSError as error:
        raise InvalidInputError(f"{path} could not be read: {error.strerror or error}") from error
    except MemoryError as error:
        raise InvalidInputError(f"{path} does not fit the memory of this machine") from error


def _checked_format(path: Path) -> Format:
    """What a file is: one that is there, is not empty, fits the memory, has a known extension and begins as that says."""
    if path.is_dir():
        raise InvalidInputError(f"{path} is a folder; name a file in it")
    if path.exists() and not path.is_file():
        raise InvalidInputError(f"{path} is a pipe or a device; write what it gives to a file, and name that")
    with path.open("rb") as file:
        head = file.read(8)
    if not head:
        raise InvalidInputError(f"{path} is empty")
    extension = path.suffix.lower()
    if extension == ".xls":
        raise InvalidInputError(f"{path}: the old Excel format .xls is not read; save the workbook as .xlsx")
    if extension not in _FORMATS:
        raise InvalidInputError(f"{path}: the extension {path.suffix!r} is not known; use one of {', '.join(_FORMATS)}")
    form = _FORMATS[extension]
    for signature, (what, owner) in _OTHERS.items():
        if head.lower().startswith(signature.lower()) and form is not owner:
            remedy = f"rename it to {owner.extensions[0]}" if owner else "save it as .csv or .xlsx without a password"
            raise InvalidInputError(f"{path} is {what}, not what its extension {extension} says; {remedy}")
    if not head.startswith(form.signature):
        raise InvalidInputError(f"{path} is not {form.name}, whatever its name says; if it is text, rename it to .csv")
    check_fits(str(path), path.stat().st_size, _BYTES_PER_BYTE)
    return form
