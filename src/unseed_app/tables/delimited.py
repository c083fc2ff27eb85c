"""Text tables: which encoding, which delimiter, and rows that all have as many fields as the header."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd

from unseed._progress import Progress
from unseed.errors import InvalidInputError
from unseed_app.tables.table import Table, counted

_DELIMITERS = {",": "comma", ";": "';'", "\t": "a tab", "|": "'|'"}
_MARKS = (  # the longer mark first: that of UTF-32 begins like that of UTF-16
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
    (b"\xef\xbb\xbf", "utf-8-sig"),
)
_LARGEST_UNPACKED = 1 << 32
_ROWS_AT_A_TIME = 20_000
_LINES_LOOKED_AT = 50
_LONGEST_FIELD = 1 << 20


def read_delimited(path: Path, delimiter: str | None, progress: Progress) -> Table:
    """Read a text table, every cell as the text that stands there."""
    source, notes = str(path), list[str]()
    text = _decoded(_unpacked(path.read_bytes(), source, notes), source, notes)
    n_windows = text.count("\r\n")
    if (n_windows > 0) + (text.count("\n") > n_windows) + (text.count("\r") > n_windows) > 1:
        notes.append("line ends of several kinds were all taken as line ends")
    delimiter = _found_delimiter(text, notes) if delimiter is None else _checked_delimiter(delimiter, source)
    records = _records(text, delimiter, source)
    _, header = next(records)
    frames, lines = list[pd.DataFrame](), list[int]()
    with progress.steps(f"reading {path.name}", text.count("\n") // _ROWS_AT_A_TIME + 1) as report:
        while chunk := list(islice(records, _ROWS_AT_A_TIME)):
            lines += [line for line, _ in chunk]
            frames.append(pd.DataFrame([fields for _, fields in chunk], dtype=str))
            report()
    if not frames:
        raise InvalidInputError(f"{source} has a header and no rows under it")
    frame = pd.concat(frames, ignore_index=True)
    padding = [i for i, name in enumerate(header) if not name.strip() and _is_padding(frame[i])]
    notes += [f"column {i + 1} has no name and is empty or counts the rows: left out" for i in padding]
    names = [name for i, name in enumerate(header) if i not in padding]
    return Table.of(frame.drop(columns=padding), names, source, notes, lines=np.array(lines))


def _unpacked(data: bytes, source: str, notes: list[str]) -> bytes:
    if not data.startswith(b"\x1f\x8b"):
        if source.lower().endswith(".gz"):
            raise InvalidInputError(f"{source} is not gzip-compressed, whatever its name says; take .gz off its name")
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            unpacked = file.read(_LARGEST_UNPACKED + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidInputError(f"{source} is gzip-compressed and damaged: {error}") from error
    if len(unpacked) > _LARGEST_UNPACKED:
        raise InvalidInputError(f"{source} unpacks to more than 4 GB; give it as Parquet, or in parts")
    notes.append("the file is gzip-compressed and was unpacked")
    if not unpacked:
        raise InvalidInputError(f"{source} is empty once it is unpacked")
    return unpacked


def _decoded(data: bytes, source: str, notes: list[str]) -> str:
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")
    if encoding in ("utf-8", "utf-8-sig") and b"\x00" in data:
        line = data[: data.index(b"\x00")].count(b"\n") + 1
        raise InvalidInputError(f"{source}, line {line}: a NUL byte; the file is damaged, or not a text at all")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InvalidInputError(
            f"{source}, line {line}: byte 0x{data[error.start]:02x} is not {encoding[:6].upper().rstrip('-')}; "
            "save the file as 'CSV UTF-8'"
        ) from error
    if encoding == "utf-8-sig":
        notes.append("a byte-order mark at the beginning was skipped")
    elif encoding != "utf-8":
        notes.append(f"the file is {encoding.upper()}")
    if not text.strip():
        raise InvalidInputError(f"{source} is empty")
    return text


def _checked_delimiter(delimiter: str, source: str) -> str:
    delimiter = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise InvalidInputError(f"{source}: delimiter={delimiter!r} must be one character, such as ';', or 'tab'")
    return delimiter


def _found_delimiter(text: str, notes: list[str]) -> str:
    """The one that cuts the first lines into the most fields, the same number in most of them."""
    start = "".join(islice(io.StringIO(text, newline=""), _LINES_LOOKED_AT))

    def score(delimiter: str) -> tuple[float, int]:
        try:
            widths = [len(row) for row in csv.reader(io.StringIO(start, newline=""), delimiter=delimiter) if row]
        except csv.Error:
            return 0.0, 0
        if not widths or widths[0] < 2:
            return 0.0, 0
        return round(widths.count(widths[0]) / len(widths), 1), widths[0]

    best = max(_DELIMITERS, key=score)  # a tie goes to the comma, the first
    if best != ",":
        notes.append(f"the delimiter is {_DELIMITERS[best]}")
    return best


def _records(text: str, delimiter: str, source: str) -> Iterator[tuple[int, list[str]]]:
    """The header and the rows with something in them, each behind the line that it begins at."""
    csv.field_size_limit(_LONGEST_FIELD)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    header, row, line = list[str](), 0, 1
    try:
        for fields in reader:
            fault = ""
            if fields and not header and not any(name.strip() for name in fields):
                raise InvalidInputError(f"{source}, line {line}: there are no column names, only delimiters or nothing")
            if header and fields == header:
                fault = "the header once more; take the line out"
            elif header and fields and len(fields) != len(header):
                fault = f"{counted(len(fields), 'field')}, and the header has {len(header):,}"
            if fault:
                raise InvalidInputError(f"{source}, row {row} (line {line}): {fault}")
            if fields:
                yield line, fields
                header, row = header or fields, row + 1
            line = reader.line_num + 1
    except csv.Error as error:
        fault = str(error)
        if "unexpected end" in fault or "field limit" in fault:
            fault = "a quote is opened here and never closed"
        elif "expected after" in fault:
            fault = "a quote stands inside a quoted field; double it or take it out"
        raise InvalidInputError(f"{source}, line {line}: {fault}") from error


def _is_padding(column: pd.Series) -> bool:
    """Whether a column is empty or counts the rows, as spreadsheets and pandas write them."""
    texts = column.str.strip()
    if len(texts) > 1 and texts.str.fullmatch("[0-9]{1,9}").all():
        return bool((np.diff(texts.astype(np.int64)) == 1).all())
    return bool((texts == "").all())
