"""Parquet files: flat columns with types that stand for numbers, text, truth values or times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unseed.errors import InvalidInputError
from unseed_app.tables.limits import check_fits, check_installed
from unseed_app.tables.table import Options, Table

_PANDAS_INDEX = "__index_level_0__"


def read_parquet(path: Path, options: Options) -> Table:
    """Read a Parquet file, its types kept."""
    check_installed("pyarrow", "Parquet files", "parquet")
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = str(path)
    try:
        with pq.ParquetFile(path) as file:
            _check_claims(file, source)
            _check_types(file.schema_arrow, source)
            table = file.read()
        table.validate(full=True)
    except (OSError, pa.ArrowException, OverflowError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InvalidInputError(f"{source} is a damaged Parquet file: {reason}") from error
    if not len(table):
        raise InvalidInputError(f"{source} has columns and no rows")
    notes = []
    if _PANDAS_INDEX in table.column_names:
        notes.append("the index that pandas stored was left out")
        table = table.drop_columns([_PANDAS_INDEX])
    frame = pd.DataFrame({i: pd.Series(_column(table, i)) for i in range(table.num_columns)})
    return Table.of(frame, table.column_names, source, notes)


def _column(table: Any, i: int) -> Any:
    """One column as a pandas array of the same type."""
    import pandas as pd
    import pyarrow as pa

    column = table.column(i)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return pd.arrays.ArrowExtensionArray(column)


def _check_claims(file: Any, source: str) -> None:
    """What the file says of its size is not believed, but it is not allocated either."""
    claimed = sum(file.metadata.row_group(i).total_byte_size for i in range(file.metadata.num_row_groups))
    check_fits(source, claimed)
    if file.metadata.num_columns == 0:
        raise InvalidInputError(f"{source} has no columns")


def _check_types(schema: Any, source: str) -> None:
    import pyarrow.types as kinds

    def is_known(kind: Any) -> bool:
        if kinds.is_dictionary(kind):
            kind = kind.value_type
        is_text = kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind)
        is_number = kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind)
        return bool(is_text or is_number or kinds.is_boolean(kind) or kinds.is_timestamp(kind) or kinds.is_date(kind))

    for field in schema:
        if not is_known(field.type) and not kinds.is_null(field.type):
            raise InvalidInputError(
                f"{source}, column {field.name!r}: the type {str(field.type)[:60]} is not a number, text, truth value or time; "
                "leave the column out of the file"
            )
