"""What a command is given: the file of a table, and the folder of a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from unseed import __version__, read_document
from unseed._estimators import PNCRegressor
from unseed.errors import InvalidInputError
from unseed_app.commands.console import Console
from unseed_app.tables import Schema, Table, read_table

_FILE, _FORMAT = "table.json", 1


@dataclass(frozen=True)
class TableFile:
    """A file with a table, whether its missing cells are filled, and how it is to be read, found where that is None."""

    path: Path
    impute: bool = False
    delimiter: str | None = None
    sheet: str | None = None

    def named_after(self, ending: str) -> Path:
        """A path in the working folder that is named after the table."""
        return Path(self.path.name.split(".")[0] + ending)

    def read(self, console: Console) -> Table:
        """The table as it stands there."""
        table = read_table(self.path, delimiter=self.delimiter, sheet=self.sheet, progress=console.progress)
        console.note(*table.notes)
        return table

    def encode(self, table: Table, schema: Schema, console: Console) -> pd.DataFrame:
        """The features that a model needs of it."""
        encoded = schema.encode(table, impute=self.impute)
        console.note(*encoded.notes)
        return encoded.X


@dataclass(frozen=True)
class TableModel:
    """A fitted estimator with the rules that turn a table into its features, and where it comes from."""

    estimator: PNCRegressor
    schema: Schema
    source: str
    rows: int
    fitted_at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    version: str = __version__

    @property
    def origin(self) -> str:
        """The training file's name, its rows, and when it was fitted."""
        return f"model fitted to {self.source} ({self.rows:,} rows) on {self.fitted_at}, unseed {self.version}"

    def save(self, folder: Path) -> None:
        """Write the folder; one that is there is replaced when the new one is complete."""
        about = {name: value for name, value in vars(self).items() if name not in ("estimator", "schema")}
        kind = type(self.estimator).__name__
        self.estimator.save(folder, extra={_FILE: {"format": _FORMAT, "estimator": kind, **about, **self.schema.to_data()}})

    @classmethod
    def load(cls, folder: Path) -> TableModel:
        """Read a folder that `unseed fit` wrote."""
        about: Any = read_document(folder, _FILE)
        if not isinstance(about, dict) or about.get("format") != _FORMAT:
            raise InvalidInputError(f"{folder / _FILE} is not of format {_FORMAT}; it needs another version of unseed")
        try:
            schema = Schema.from_data(about)
            origin = str(about["source"]), int(about["rows"]), str(about["fitted_at"]), str(about["version"])
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInputError(f"{folder / _FILE} is damaged: {type(error).__name__} {error}") from error
        estimator = PNCRegressor.load(folder)
        if estimator.n_features_in_ != len(schema.outputs):
            raise InvalidInputError(
                f"{folder}: the estimator has {estimator.n_features_in_} features and {_FILE} {len(schema.outputs)}; "
                "they do not belong together"
            )
        return cls(estimator, schema, *origin)
