"""The table that a command is given, and how it is to be read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from unseed_app.commands.console import Console

if TYPE_CHECKING:
    import pandas as pd

    from unseed_app.tables import Schema, Table


@dataclass(frozen=True)
class TableFile:
    """A file with a table.

    Attributes
    ----------
    path : Path
    impute : bool
        Whether missing cells are filled.
    delimiter, sheet : str or None
        Of a text file, and of a workbook; found where they are None.
    """

    path: Path
    impute: bool = False
    delimiter: str | None = None
    sheet: str | None = None

    def named_after(self, ending: str) -> Path:
        """A path in the working folder that is named after the table."""
        return Path(self.path.name.split(".")[0] + ending)

    def read(self, console: Console) -> Table:
        """The table as it stands there."""
        from unseed_app.tables import read_table

        table = read_table(self.path, delimiter=self.delimiter, sheet=self.sheet, progress=console.progress)
        console.note(*table.notes)
        return table

    def encode(self, table: Table, schema: Schema, console: Console) -> pd.DataFrame:
        """The features that a model needs of it."""
        encoded = schema.encode(table, impute=self.impute)
        console.note(*encoded.notes)
        return encoded.X
