"""A folder of Parquet files as one table that is never held as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from unseed.errors import InvalidInputError
from unseed_app.tables.files import PARQUET, opened_parquet, table_of_parquet
from unseed_app.tables.schema import Schema
from unseed_app.tables.table import Table

FIRST_ROWS = 10_000
"""From which the rules of the columns are found."""


@dataclass(frozen=True)
class ParquetFolder:
    """All Parquet files of a folder, by name, and in them the row groups, one table after another."""

    path: Path

    @cached_property
    def files(self) -> list[Path]:
        """The files, in order."""
        found = sorted(file for file in self.path.iterdir() if file.suffix.lower() in PARQUET.extensions)
        if not found:
            raise InvalidInputError(f"{self.path} is a folder without Parquet files; name a file, or another folder")
        return found

    @cached_property
    def n_rows(self) -> int:
        """Rows of all files, and a look at whether they have the same columns."""
        total, names = 0, list[str]()
        for file in self.files:
            with opened_parquet(file) as parquet:
                own = list(parquet.schema_arrow.names)
                if names and own != names:
                    raise InvalidInputError(f"{file} has the columns {own}, and {self.files[0].name} has {names}")
                names, total = own, total + parquet.metadata.num_rows
        return total

    def __iter__(self) -> Iterator[Table]:
        for file in self.files:
            with opened_parquet(file) as parquet:
                for group in range(parquet.num_row_groups):
                    if parquet.metadata.row_group(group).num_rows:
                        yield table_of_parquet(parquet.read_row_group(group), f"{file}, row group {group + 1}")

    def first(self) -> Table:
        """A table of the first rows."""
        import pyarrow as pa

        parts: list[Any] = []
        for file in self.files:
            with opened_parquet(file) as parquet:
                for group in range(parquet.num_row_groups):
                    parts.append(parquet.read_row_group(group))
                    if sum(map(len, parts)) >= FIRST_ROWS:
                        return table_of_parquet(pa.concat_tables(parts).slice(0, FIRST_ROWS), str(self.path))
        return table_of_parquet(pa.concat_tables(parts), str(self.path))


@dataclass(frozen=True)
class EncodedFolder:
    """The same as features and labels, by rules that are known: pieces for `fit_stream`, as often as needed."""

    folder: ParquetFolder
    schema: Schema
    impute: bool

    def __iter__(self) -> Iterator[tuple[pd.DataFrame, Any]]:
        for table in self.folder:
            yield self.schema.encode(table, impute=self.impute).X, self.schema.labels(table)
