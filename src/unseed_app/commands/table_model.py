"""A model folder: the estimator, and what is known of the table that it was trained on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from unseed import __version__, read_document
from unseed._estimators import BlockwisePNCRegressor, PNCRegressor
from unseed.errors import InvalidInputError
from unseed_app.tables import Schema, Table

TABLE_FILE = "table.json"
_FORMAT = 1

Regressor = PNCRegressor | BlockwisePNCRegressor
_REGRESSORS: dict[str, type[Regressor]] = {kind.__name__: kind for kind in (PNCRegressor, BlockwisePNCRegressor)}


@dataclass(frozen=True)
class Origin:
    """Where a model comes from: the training file's name, its rows, and when it was fitted."""

    source: str
    rows: int
    fitted_at: str
    version: str

    @classmethod
    def of(cls, table: Table, path: Path) -> Origin:
        """A model fitted to this table now."""
        return cls(path.name, len(table), datetime.now(UTC).isoformat(timespec="seconds"), __version__)

    def __str__(self) -> str:
        return f"model fitted to {self.source} ({self.rows:,} rows) on {self.fitted_at}, unseed {self.version}"


@dataclass(frozen=True)
class TableModel:
    """A fitted estimator with the rules that turn a table into its features."""

    estimator: Regressor
    schema: Schema
    origin: Origin

    def save(self, folder: Path) -> None:
        """Write the folder; one that is there is replaced when the new one is complete."""
        kind = type(self.estimator).__name__
        about = {"format": _FORMAT, "estimator": kind, **vars(self.origin), **self.schema.to_data()}
        self.estimator.save(folder, extra={TABLE_FILE: about})

    @classmethod
    def load(cls, folder: Path) -> TableModel:
        """Read a folder that `unseed fit` wrote."""
        about = read_document(folder, TABLE_FILE)
        if not isinstance(about, dict) or about.get("format") != _FORMAT:
            raise InvalidInputError(f"{folder / TABLE_FILE} is not of format {_FORMAT}; it needs another version of unseed")
        try:
            return cls._described(about, folder)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InvalidInputError):
                raise
            raise InvalidInputError(f"{folder / TABLE_FILE} is damaged: {type(error).__name__} {error}") from error

    @classmethod
    def _described(cls, about: dict[str, Any], folder: Path) -> TableModel:
        schema = Schema.from_data(about)
        origin = Origin(str(about["source"]), int(about["rows"]), str(about["fitted_at"]), str(about["version"]))
        estimator = _REGRESSORS[about["estimator"]].load(folder)
        if estimator.n_features_in_ != len(schema.outputs):
            raise InvalidInputError(
                f"{folder}: the estimator has {estimator.n_features_in_} features and {TABLE_FILE} {len(schema.outputs)}; "
                "they do not belong together"
            )
        return cls(estimator, schema, origin)
