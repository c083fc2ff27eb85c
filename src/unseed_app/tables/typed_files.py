"""Files whose cells have types: Parquet, and one sheet of an Excel workbook."""

from __future__ import annotations

import datetime
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from unseed.errors import InvalidInputError
from unseed_app.tables.table import Table, check_fits, listed

_PANDAS_INDEX = "__index_level_0__"
_BYTES_PER_BYTE = 4  # of memory for each byte of the unpacked sheets


def read_parquet(path: Path) -> Table:
    """Read a Parquet file, its types kept."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = str(path)
    try:
        with pq.ParquetFile(path) as file:
            check_fits(source, sum(file.metadata.row_group(i).total_byte_size for i in range(file.num_row_groups)))
            types = [_flat_type(field, source) for field in file.schema_arrow]
            table = file.read()
        table.validate(full=True)
        table = table.cast(pa.schema(list(zip(table.column_names, types, strict=True))))
    except (OSError, pa.ArrowException, OverflowError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InvalidInputError(f"{source} is a damaged Parquet file: {reason}") from error
    if not types:
        raise InvalidInputError(f"{source} has no columns")
    if not len(table):
        raise InvalidInputError(f"{source} has columns and no rows")
    notes = []
    if _PANDAS_INDEX in table.column_names:
        notes.append("the index that pandas stored was left out")
        table = table.drop_columns([_PANDAS_INDEX])
    return Table.of(table.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True), table.column_names, source, notes)


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


def read_workbook(path: Path, *, sheet: str | None) -> Table:
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
