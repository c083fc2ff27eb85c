"""Excel workbooks: one sheet, the first row of it the header."""

from __future__ import annotations

import datetime
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from unseed.errors import InvalidInputError
from unseed_app.tables.limits import check_fits, check_installed
from unseed_app.tables.table import Options, Table, listed

_BYTES_PER_BYTE = 4  # of memory for each byte of the unpacked sheets


def read_workbook(path: Path, options: Options) -> Table:
    """Read one sheet; formulas count as the values that Excel last saved for them."""
    check_installed("openpyxl", "Excel workbooks", "excel")
    import openpyxl

    source = str(path)
    try:
        _check_claims(path, source)
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        try:
            page, notes = _chosen_sheet(book, options.sheet, source)
            rows = [list(row) for row in page.iter_rows(values_only=True)]
        finally:
            book.close()
    except (InvalidInputError, MemoryError, OSError):
        raise
    except Exception as error:  # a damaged workbook fails in the zip, the XML or in openpyxl itself, in many ways
        raise InvalidInputError(f"{source} is not an Excel workbook that can be read: {type(error).__name__}") from error
    return _as_table(rows, f"{source}, sheet {page.title!r}", notes)


def _check_claims(path: Path, source: str) -> None:
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
        claimed = sum(member.file_size for member in archive.infolist())
    if "xl/workbook.xml" not in names:
        raise InvalidInputError(f"{source} is a zip archive without a workbook in it")
    check_fits(source, claimed, _BYTES_PER_BYTE)


def _chosen_sheet(book: Any, sheet: str | None, source: str) -> tuple[Any, list[str]]:
    names = [page.title for page in book.worksheets]
    if not names:
        raise InvalidInputError(f"{source} has no sheet with cells")
    if sheet is not None and sheet not in names:
        raise InvalidInputError(f"{source} has no sheet {sheet!r}; there are {listed(names)}")
    notes = [f"sheet {names[0]!r} was read, the first of {len(names)}"] if sheet is None and len(names) > 1 else []
    return book[sheet if sheet is not None else names[0]], notes


def _as_table(rows: list[list[Any]], source: str, notes: list[str]) -> Table:
    import pandas as pd

    numbered = [(i, row) for i, row in enumerate(rows, start=1) if any(not _is_empty(cell) for cell in row)]
    if not numbered:
        raise InvalidInputError(f"{source} is empty")
    _, header = numbered[0]
    width = max(i for i, name in enumerate(header) if not _is_empty(name)) + 1  # Excel keeps empty cells to the right
    body = [(line, [*row, *[None] * width]) for line, row in numbered[1:]]
    for line, row in body:
        if any(not _is_empty(cell) for cell in row[width:]):
            raise InvalidInputError(f"{source}, row {line}: there are cells to the right of the header's {width}")
    if not body:
        raise InvalidInputError(f"{source} has a header and no rows under it")
    frame = pd.DataFrame({i: _typed([row[i] for _, row in body]) for i in range(width)})
    names = ["" if name is None else str(name) for name in header[:width]]
    return Table.of(frame, names, source, notes, lines=np.array([line for line, _ in body]), line_word="sheet row")


def _typed(cells: list[Any]) -> Any:
    """Numbers, truth values or times where all cells are such, text otherwise; empty cells are missing."""
    import pandas as pd

    cells = [None if _is_empty(cell) else cell for cell in cells]
    there = [cell for cell in cells if cell is not None]
    if there and all(isinstance(cell, bool) for cell in there):
        return pd.array(cells, dtype="boolean")
    if there and all(isinstance(cell, (int, float)) and not isinstance(cell, bool) for cell in there):
        return np.array([np.nan if cell is None else float(cell) for cell in cells])
    if there and all(isinstance(cell, datetime.date) for cell in there):
        return pd.to_datetime(pd.Series(cells, dtype=object)).to_numpy()
    return pd.array(["" if cell is None else _as_text(cell) for cell in cells], dtype=str)


def _as_text(cell: Any) -> str:
    if isinstance(cell, datetime.datetime) and cell.time() == datetime.time():
        return cell.date().isoformat()
    return cell.isoformat() if isinstance(cell, (datetime.date, datetime.time)) else str(cell)


def _is_empty(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())
