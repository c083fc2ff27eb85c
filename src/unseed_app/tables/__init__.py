"""Tables from files: read, encoded by rules that are remembered, written back with columns added.

Nothing in a file is believed: names and cells are data, a fault is named with its place, and what was read in another way
than it stands there is said in a note.
"""

from unseed_app.tables.files import PARQUET, check_output, read_table, write_table
from unseed_app.tables.folder import EncodedFolder, ParquetFolder
from unseed_app.tables.schema import Encoded, Schema, named_columns
from unseed_app.tables.table import Table

__all__ = [
    "PARQUET",
    "Encoded",
    "EncodedFolder",
    "ParquetFolder",
    "Schema",
    "Table",
    "check_output",
    "named_columns",
    "read_table",
    "write_table",
]
