"""Rows of Parquet files, a few at a time, as often as needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unseed._checks import check_whole_number, in_one_sentence
from unseed.errors import InvalidInputError

Piece = tuple[npt.ArrayLike, npt.ArrayLike]


@dataclass(frozen=True)
class ParquetPieces:
    """Pieces (X, y) of all files in turn; nothing but the columns that are asked for is read.

    Attributes
    ----------
    fragments : tuple of pyarrow.dataset.ParquetFileFragment
        One for each file, in the order of their names; all have the same columns.
    features, targets : tuple of str
    single : bool
        Whether y has one dimension.
    rows : int
        At most so many in a piece, all of one row group.
    """

    fragments: tuple[Any, ...]
    features: tuple[str, ...]
    targets: tuple[str, ...]
    single: bool
    rows: int

    def __len__(self) -> int:
        return sum(-(-group.num_rows // self.rows) for fragment in self.fragments for group in fragment.row_groups)

    def __iter__(self) -> Iterator[Piece]:
        import pyarrow as pa

        options = {"columns": [*self.features, *self.targets], "batch_size": self.rows, "batch_readahead": 2}
        for fragment in self.fragments:
            batches = fragment.to_batches(**options)
            while True:
                try:
                    batch = next(batches, None)
                except (OSError, pa.ArrowException) as error:
                    raise _unreadable(fragment.path, error) from error
                if batch is None:
                    break
                if len(batch):
                    X, y = (_numbers(batch, names) for names in (self.features, self.targets))
                    yield X, y[:, 0] if self.single else y


def parquet_pieces(
    path: str | Path, target: str | list[str], rows: int = 65536, *, features: list[str] | None = None
) -> ParquetPieces:
    """Features and target of a Parquet file, or of a folder of them, a few rows at a time; needs pyarrow.

    Parameters
    ----------
    path : str or Path
        Of a folder all files are read, also those of folders in it, in the order of their names.
    target : str or list of str
        Columns to predict.
    rows : int
        At most so many at a time; a piece does not go over the end of a row group.
    features : list of str, optional
        Columns to predict from; None is all others, in the order of the file.

    Returns
    -------
    ParquetPieces
        Can be passed over as often as needed.
    """
    try:
        import pyarrow as pa
        import pyarrow.dataset
    except ImportError as error:
        raise InvalidInputError("Parquet files need pyarrow; install it with: pip install 'unseed[parquet]'") from error
    check_whole_number("rows", rows, at_least=1)
    try:
        found = pyarrow.dataset.dataset(path, format="parquet", schema=pa.schema([]))  # schemas are compared file by file
    except (OSError, pa.ArrowException) as error:
        raise InvalidInputError(
            f"path={str(path)!r} is not a Parquet file that can be read: {in_one_sentence(error)}"
        ) from error
    fragments = tuple(sorted(found.get_fragments(), key=lambda fragment: str(fragment.path)))
    if not fragments:
        raise InvalidInputError(f"path={str(path)!r} has no Parquet file in it")
    schemas = [_schema(fragment) for fragment in fragments]
    targets = (target,) if isinstance(target, str) else tuple(target)
    names = tuple(name for name in schemas[0].names if name not in targets) if features is None else tuple(features)
    _check_columns(str(fragments[0].path), schemas[0], {"target": targets, "features": names})
    for fragment, schema in zip(fragments, schemas, strict=True):
        _check_same(schemas[0], schema, (*names, *targets), str(fragments[0].path), str(fragment.path))
    return ParquetPieces(fragments, names, targets, isinstance(target, str), rows)


def _schema(fragment: Any) -> Any:
    import pyarrow as pa

    try:
        return fragment.physical_schema
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(fragment.path, error) from error


def _unreadable(path: str, error: Exception) -> InvalidInputError:
    return InvalidInputError(f"{path!r} is not a Parquet file that can be read: {in_one_sentence(error)}")


def _check_columns(path: str, schema: Any, asked: dict[str, tuple[str, ...]]) -> None:
    import pyarrow as pa

    for option, names in asked.items():
        if not names:
            raise InvalidInputError(f"{option}: {path!r} has no column for it")
        for name in names:
            if name not in schema.names:
                raise InvalidInputError(f"{option}={name!r} is not a column of {path!r}; it has {schema.names}")
            kind = schema.field(name).type
            is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
            if not is_number and not pa.types.is_decimal(kind):
                raise InvalidInputError(
                    f"column {name!r} of {path!r} has {kind} and not numbers: leave it out with features=[...]"
                )


def _check_same(first: Any, other: Any, names: tuple[str, ...], path: str, other_path: str) -> None:
    for name in names:
        if name not in other.names:
            raise InvalidInputError(f"{other_path!r} has no column {name!r}, and {path!r} has; it has {other.names}")
        if other.field(name).type != first.field(name).type:
            raise InvalidInputError(
                f"column {name!r} of {other_path!r} has {other.field(name).type}, and that of {path!r} has "
                f"{first.field(name).type}: write all files with one schema"
            )


def _numbers(batch: Any, names: tuple[str, ...]) -> np.ndarray:
    import pyarrow as pa

    columns = (batch.column(name).cast(pa.float64(), safe=False) for name in names)
    return np.column_stack([column.to_numpy(zero_copy_only=False) for column in columns])
