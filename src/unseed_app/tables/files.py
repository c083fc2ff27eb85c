"""Tables from files and to files, by extension; a file that is something else than its name says is refused."""

from __future__ import annotations

import datetime
import os
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from unseed._checks import in_one_sentence
from unseed._files import replaced
from unseed._progress import Progress
from unseed.errors import InvalidInputError
from unseed_app.tables.delimited import read_delimited
from unseed_app.tables.table import Table, check_fits, listed


class Format(NamedTuple):
    """A kind of files: what it is called, its extensions, and how such a file begins."""

    name: str
    extensions: tuple[str, ...]
    signature: bytes


TEXT = Format("a text file", (".csv", ".tsv", ".txt", ".gz"), b"")
PARQUET = Format("a Parquet file", (".parquet", ".pq"), b"PAR1")
EXCEL = Format("an Excel workbook", (".xlsx", ".xlsm"), b"PK\x03\x04")
_FORMATS = {extension: form for form in (TEXT, PARQUET, EXCEL) for extension in form.extensions}

_BYTES_PER_BYTE = 4  # of memory while a text or an unpacked sheet is read, for each byte of it
_PANDAS_INDEX = "__index_level_0__"
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
    """Read text, Parquet or Excel; a delimiter that is None is found, and a sheet that is None is the first."""
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
        return _read_parquet(path) if form is PARQUET else _read_workbook(path, sheet)
    except OSError as error:
        raise InvalidInputError(f"{path} could not be read: {error.strerror or error}") from error
    except MemoryError as error:
        raise InvalidInputError(f"{path} does not fit the memory of this machine") from error


def _checked_format(path: Path) -> Format:
    """What a file is: one that is there, is not empty, fits the memory, has a known extension and begins as that says."""
    if path.is_dir():
        raise InvalidInputError(f"{path} is a folder; name a file in it, or, for `unseed fit`, a folder of Parquet files")
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


def _read_parquet(path: Path) -> Table:
    """Read a Parquet file, its types kept."""
    with opened_parquet(path) as file:
        check_fits(str(path), sum(file.metadata.row_group(i).total_byte_size for i in range(file.num_row_groups)))
        return table_of_parquet(file.read(), str(path))


@contextmanager
def opened_parquet(path: Path) -> Iterator[Any]:
    """A Parquet file; what is wrong with it, then and while it is read, is said in one sentence."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            yield file
    except (OSError, pa.ArrowException, OverflowError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{path} is a damaged Parquet file: {in_one_sentence(error)}") from error


def table_of_parquet(rows: Any, source: str) -> Table:
    """Rows of a Parquet file (a pyarrow table) with types that can be encoded."""
    import pyarrow as pa

    types = [_flat_type(field, source) for field in rows.schema]
    if not types:
        raise InvalidInputError(f"{source} has no columns")
    if not len(rows):
        raise InvalidInputError(f"{source} has columns and no rows")
    rows.validate(full=True)
    rows = rows.cast(pa.schema(list(zip(rows.column_names, types, strict=True))))
    notes = []
    if _PANDAS_INDEX in rows.column_names:
        notes.append("the index that pandas stored was left out")
        rows = rows.drop_columns([_PANDAS_INDEX])
    return Table.of(rows.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True), rows.column_names, source, notes)


def _flat_type(field: Any, source: str) -> Any:
    """The type of a column's values, however they are stored; one that is none of those that can be encoded is refused."""
    import pyarrow.types as are

    kind = field.type.value_type if are.is_dictionary(field.type) else field.type
    is_text = are.is_string(kind) or are.is_large_string(kind) or are.is_string_view(kind)
    is_number = are.is_integer(kind) or are.is_floating(kind) or are.is_decimal(kind)
    if not (is_text or is_number or are.is_boolean(kind) or are.is_timestamp(kind) or are.is_date(kind) or are.is_null(kind)):
        raise InvalidInputError(
            f"{source}, column {field.name!r}: the type {str(kind)[:60]} is not a number, text, truth value or time; "
            "leave the column out of the file"
        )
    return kind


def _read_workbook(path: Path, sheet: str | None) -> Table:
    """Read one sheet, by default the first; formulas count as the values that Excel last saved for them."""
    import openpyxl

    source = str(path)
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
        if "xl/workbook.xml" not in {member.filename for member in members}:
            raise InvalidInputError(f"{source} is a zip archive without a workbook in it")
        check_fits(source, sum(member.file_size for member in members), _BYTES_PER_BYTE)
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        try:
            names = [page.title for page in book.worksheets]
            if not names:
                raise InvalidInputError(f"{source} has no sheet with cells")
            if sheet is not None and sheet not in names:
                raise InvalidInputError(f"{source} has no sheet {sheet!r}; there are {listed(names)}")
            rows = list(book[sheet or names[0]].iter_rows(values_only=True))
        finally:
            book.close()
    except (InvalidInputError, MemoryError, OSError):
        raise
    except Exception as error:  # a damaged workbook fails in the zip, the XML or in openpyxl itself, in many ways
        raise InvalidInputError(f"{source} is not an Excel workbook that can be read: {type(error).__name__}") from error
    notes = [f"sheet {names[0]!r} was read, the first of {len(names)}"] if sheet is None and len(names) > 1 else []
    return _of_sheet(rows, f"{source}, sheet {(sheet or names[0])!r}", notes)


def _of_sheet(rows: list[tuple[Any, ...]], source: str, notes: list[str]) -> Table:
    """The first row that is not empty is the header; empty ones after it count for places only."""
    plain = [[None if isinstance(cell, str) and not cell.strip() else cell for cell in row] for row in rows]
    cells = pd.DataFrame(plain, index=range(1, len(rows) + 1), dtype=object).dropna(how="all")
    if cells.empty:
        raise InvalidInputError(f"{source} is empty")
    header, body = cells.iloc[0], cells.iloc[1:]
    width = int(np.flatnonzero(header.notna())[-1]) + 1  # Excel keeps empty cells to the right
    beside = body.index[body.iloc[:, width:].notna().any(axis=1)]
    if len(beside):
        raise InvalidInputError(f"{source}, row {beside[0]}: there are cells to the right of the header's {width}")
    if body.empty:
        raise InvalidInputError(f"{source} has a header and no rows under it")
    frame = pd.DataFrame({i: _typed(body[i]) for i in range(width)})
    names = ["" if name is None else str(name) for name in header[:width]]
    return Table.of(frame, names, source, notes, lines=body.index.to_numpy(), line_word="sheet row")


def _typed(column: pd.Series) -> Any:
    """Numbers, truth values or times where all cells are such, text otherwise."""
    typed = column.reset_index(drop=True).convert_dtypes()
    if pd.api.types.is_numeric_dtype(typed) and not pd.api.types.is_bool_dtype(typed):
        return typed.astype(np.float64)
    return typed.map(_as_text, na_action="ignore") if typed.dtype == object else typed


def _as_text(cell: Any) -> str:
    if isinstance(cell, datetime.datetime) and cell.time() == datetime.time():
        return cell.date().isoformat()
    return cell.isoformat() if isinstance(cell, (datetime.date, datetime.time)) else str(cell)


def check_output(path: Path, *, inputs: tuple[Path, ...] = (), extensions: tuple[str, ...] = (), name: str = "out") -> None:
    """Refuse, before any work, a place that cannot be written or that is one of the inputs."""
    if extensions and path.suffix.lower() not in extensions:
        raise InvalidInputError(f"{name}={str(path)!r} must end in {' or '.join(extensions)}")
    if any(path.exists() and given.exists() and path.samefile(given) for given in inputs):
        raise InvalidInputError(f"{name}={str(path)!r} is the input itself, which would be lost; name another file")
    if extensions and path.is_dir():
        raise InvalidInputError(f"{name}={str(path)!r} is a folder; name a file")
    if path.is_symlink() and not path.exists():
        raise InvalidInputError(f"{name}={str(path)!r} is a link to {os.readlink(path)!r}, which does not exist; name another")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise InvalidInputError(f"{name}={str(path)!r}: the folder {str(path.parent)!r} does not exist; make it first")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InvalidInputError(f"{name}={str(path)!r} cannot be written: {error.strerror or error}") from error
    if path.suffix.lower() in PARQUET.extensions:
        import pyarrow  # noqa: F401 - writes it, and is asked for before any work


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write CSV, TSV or Parquet by extension; what stood there before is replaced at the very end."""
    with replaced(path, "out") as part:
        if path.suffix.lower() in PARQUET.extensions:
            frame.to_parquet(part, index=False, engine="pyarrow")
        else:
            frame.to_csv(part, index=False, sep="\t" if path.suffix.lower() == ".tsv" else ",", lineterminator="\n")
