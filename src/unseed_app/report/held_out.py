"""The rows a report is about and their features, checked before anything expensive, with names that are safe to show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import _safe_indexing

from unseed._frames import index_of, names_of
from unseed._results import FloatArray
from unseed.errors import InvalidInputError

Indices = npt.NDArray[np.intp]

_LONGEST_NAME = 200


@dataclass(frozen=True)
class Feature:
    """Where a feature is in X, and what its values are called.

    Examples
    --------
    >>> city = Feature("city", (1, 2), ("Bern", "Rome"))
    >>> city.values(np.array([[5.0, 0.0, 1.0], [7.0, 1.0, 0.0]]))
    array([1., 0.])
    """

    name: str
    columns: tuple[int, ...]  # of X: one, or one for each level
    levels: tuple[str, ...] = ()  # of a category; empty for a number

    def values(self, X: FloatArray) -> FloatArray:
        """The number, or which level it is. Shape (n_rows,)."""
        if not self.levels:
            return np.asarray(X[:, self.columns[0]])
        return np.asarray(np.argmax(X[:, self.columns], axis=1), dtype=np.float64)


@dataclass(frozen=True)
class HeldOut:
    """Rows, what was observed there, and what everything is called."""

    given: Any  # X as the user has it, for the estimator's own checks
    X: FloatArray  # (n_rows, ...)
    y: FloatArray | None  # (n_rows, n_outputs)
    feature_names: tuple[str, ...]  # of the columns; empty where a row is not a line of features
    target_names: tuple[str, ...]
    row_labels: tuple[str, ...]
    features: tuple[Feature, ...]  # as a person knows them: the columns of a category are one
    is_seen: npt.NDArray[np.bool_]  # (n_rows,), whether the network was trained on a row, as far as that is known

    @classmethod
    def of(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        feature_names: Sequence[Any] | None = None,
        target_names: Sequence[Any] | None = None,
        row_labels: Sequence[Any] | None = None,
        categories: Mapping[str, Mapping[str, str]] | None = None,
    ) -> HeldOut:
        """Names come from the arguments, else from data frames, else from the fit, else they are numbers."""
        rows = _numbers("X", X)
        if rows.ndim < 2 or len(rows) == 0:
            raise InvalidInputError(f"X has shape {rows.shape}; a report needs at least one row, as a table of rows")
        n_outputs, n_columns = int(np.size(estimator.predict(X[:1]))), rows.shape[1] if rows.ndim == 2 else 0
        columns = _first_given(feature_names, names_of(X), getattr(estimator, "feature_names_in_", ())) if n_columns else []
        names = _named("feature_names", n_columns, "x{}", columns)
        return cls(
            given=X,
            X=rows,
            y=None if y is None else _observed(y, len(rows), n_outputs),
            feature_names=names,
            target_names=_named("target_names", n_outputs, "y" if n_outputs == 1 else "y{}", target_names, names_of(y)),
            row_labels=_named("row_labels", len(rows), "{}", row_labels, index_of(X)),
            features=_features(rows, columns or list(names), names, categories or {}),
            is_seen=_seen(estimator, rows),
        )

    @cached_property
    def values(self) -> FloatArray:
        """Of the features: numbers, or which level. Shape (n_rows, n_features)."""
        return np.array([feature.values(self.X) for feature in self.features]).T.reshape(len(self.X), -1)

    @cached_property
    def typical(self) -> FloatArray:
        """Values that occur: the median of each number, the most frequent level of each category. Shape (n_features,)."""
        typical = np.quantile(self.values, 0.5, axis=0, method="closest_observation")
        for j, feature in enumerate(self.features):
            if feature.levels:
                typical[j] = np.bincount(self.values[:, j].astype(np.intp)).argmax()
        return np.asarray(typical)

    def rows_with(self, values: FloatArray) -> FloatArray:
        """Rows of X that have these values of the features. Shape (n_rows, n_columns)."""
        rows = np.empty((len(values), self.X.shape[1]))
        for feature, one in zip(self.features, values.T, strict=True):
            columns = np.eye(len(feature.levels))[one.astype(np.intp)] if feature.levels else one[:, None]
            rows[:, feature.columns] = columns
        return rows

    def taken(self, rows: Indices) -> Any:
        """Some rows of X, as the kind of thing that the user has: a frame, an array or a list."""
        return _safe_indexing(self.given, rows)


def plain_text(name: Any) -> str:
    r"""A name in one line: no control characters, nothing that UTF-8 cannot hold, not longer than a screen.

    Examples
    --------
    >>> plain_text("dose\n(mg)")
    'dose (mg)'
    """
    text = str(name).encode("utf-8", "replace").decode("utf-8")
    text = "".join(character if character.isprintable() else " " for character in text).strip()
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"


def _numbers(name: str, values: Any) -> FloatArray:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name} must hold numbers only ({error}); turn categories into numbers first") from error


def _observed(y: Any, n_rows: int, n_outputs: int) -> FloatArray:
    values = _numbers("y", y)
    if values.ndim not in (1, 2) or len(values) != n_rows or values.size != n_rows * n_outputs:
        raise InvalidInputError(f"y has shape {values.shape} and X has {n_rows} rows for {n_outputs} outputs; they must agree")
    if not np.isfinite(values).all():
        raise InvalidInputError("y has missing or infinite values; leave those rows out, or give y=None")
    return values.reshape(n_rows, n_outputs)


def _seen(estimator: Any, X: FloatArray) -> npt.NDArray[np.bool_]:
    """Rows that are among those which the estimator holds from its training: none where it holds none."""
    task, replicates = getattr(estimator, "_task", None), getattr(estimator, "_replicates", None)
    if task is None or replicates is None or not len(task.X):
        return np.zeros(len(X), dtype=np.bool_)
    trained = {row.tobytes() for row in task.X.cpu().numpy()}
    return np.array([row.tobytes() in trained for row in np.ascontiguousarray(replicates.scaling.to_network(X))])


def _features(
    X: FloatArray, columns: list[Any], names: Sequence[str], categories: Mapping[str, Mapping[str, str]]
) -> tuple[Feature, ...]:
    """In the order of the columns; a category stands where its first column is."""
    place = {column: j for j, column in enumerate(columns)}
    found: dict[int, Feature] = {}
    taken: set[int] = set()
    for name, levels in categories.items():
        missing = [column for column in levels if column not in place]
        if missing:
            raise InvalidInputError(f"categories[{name!r}] names the column {missing[0]!r}, which X does not have")
        members = tuple(place[column] for column in levels)
        is_one_of = np.isin(X[:, members], (0, 1)).all() and (X[:, members].sum(axis=1) == 1).all()
        if not members or taken.intersection(members) or not is_one_of:
            raise InvalidInputError(f"categories[{name!r}]: give its columns of 0 and 1, one of which is 1 in every row")
        taken.update(members)
        found[min(members)] = Feature(plain_text(name), members, tuple(map(plain_text, levels.values())))
    singles = {j: Feature(name, (j,)) for j, name in enumerate(names) if j not in taken}
    return tuple(feature for _, feature in sorted((found | singles).items()))


def _named(argument: str, n: int, pattern: str, *candidates: Any) -> tuple[str, ...]:
    """The first names that are given, one for each of n things; where there are none, or one is empty, after the pattern."""
    names = _first_given(*candidates) or [""] * n
    if len(names) != n:
        raise InvalidInputError(f"{argument} has {len(names)} entries and {n} are needed; give one for each")
    return tuple(plain_text(name) or pattern.format(i) for i, name in enumerate(names))


def _first_given(*candidates: Any) -> list[Any]:
    return next((list(names) for names in candidates if names is not None and len(names)), [])
