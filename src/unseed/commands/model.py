"""A model folder: the estimator, and what is known of the table that it was trained on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from unseed import __version__
from unseed.errors import InvalidInputError
from unseed.estimators import BlockwisePNCRegressor, PNCRegressor
from unseed.tables import Schema, Table, replaced_folder

TABLE_FILE = "table.json"
_FORMAT = 1

Regressor = PNCRegressor | BlockwisePNCRegressor


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


@dataclass(frozen=True)
class TableModel:
    """A fitted estimator with the rules that turn a table into its features."""

    estimator: Regressor
    schema: Schema
    origin: Origin

    def save(self, folder: Path) -> None:
        """Write the folder; one that is there is replaced at the very end."""
        with replaced_folder(folder) as new:
            self.estimator.save(new)
            data = {"format": _FORMAT, **vars(self.origin), **self.schema.to_data()}
            (new / TABLE_FILE).write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> TableModel:
        """Read a folder that `unseed fit` wrote."""
        data = _table_data(folder)
        try:
            schema = Schema.from_data(data)
            origin = Origin(str(data["source"]), int(data["rows"]), str(data["fitted_at"]), str(data["version"]))
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInputError(f"{folder / TABLE_FILE} is damaged: {type(error).__name__} {error}") from error
        estimator = _estimator(folder)
        if estimator.n_features_in_ != len(schema.outputs):
            raise InvalidInputError(
                f"{folder}: the estimator has {estimator.n_features_in_} features and {TABLE_FILE} {len(schema.outputs)}; "
                "they do not belong together"
            )
        return cls(estimator, schema, origin)


def _estimator(folder: Path) -> Regressor:
    return PNCRegressor.load(folder)


def check_model_folder(folder: Path) -> None:
    """Refuse to replace anything but an earlier model or an empty folder."""
    if folder.exists() and not folder.is_dir():
        raise InvalidInputError(f"out={str(folder)!r} is a file; name a folder for the model")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / TABLE_FILE).is_file():
        raise InvalidInputError(f"out={str(folder)!r} holds other files than a model, which would be lost; name another folder")


def _table_data(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise InvalidInputError(f"model {str(folder)!r} is not a folder; make one with: unseed fit train.csv --target …")
    try:
        data = json.loads((folder / TABLE_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InvalidInputError(f"model {str(folder)!r} has no {TABLE_FILE}: `unseed fit` did not make it") from error
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{folder / TABLE_FILE} could not be read: {error}") from error
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        raise InvalidInputError(f"{folder / TABLE_FILE} is not of format {_FORMAT}; it needs another version of unseed")
    return data
