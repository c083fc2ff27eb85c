"""Rows in pieces: `partial_fit` and `fit_stream`, and a model that is solved when it is asked."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import validate_data

from unseed._checks import check_flag
from unseed._estimators.regressor import IntervalRegressor
from unseed._estimators.summed import BEGIN_ROWS, SummedRows, rows_to_begin_on
from unseed._estimators.training import TrainingData, check_regularization, is_module
from unseed._frames import names_of
from unseed._machine import resolve_device
from unseed._pieces import Piece
from unseed._progress import Progress
from unseed._random import Streams
from unseed._results import FloatArray
from unseed._scaling import Scaling
from unseed.engines import Landmarks, Solver, resolve_engine, resolve_solver
from unseed.errors import InvalidInputError
from unseed.intervals import resolve_interval

_SOLVED = frozenset({"_replicates", "_task", "_probe", "regularization_", "network_", "selection_", "interval_", "engine_"})
"""What is not there between a new piece and the next question, which makes it."""


@dataclass(kw_only=True, eq=False, repr=False)
class GrowingRegressor(IntervalRegressor):
    """A regressor that takes its rows at once or in pieces, and has a model of all of them whenever it is asked."""

    solver: str | Solver = "auto"

    _held: tuple[FloatArray, FloatArray] | None = field(init=False, default=None)
    _summed: SummedRows | None = field(init=False, default=None)

    def fit(self, X: Any, y: Any) -> Self:
        """Train.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        """
        self._held, self._summed = None, None
        return super().fit(X, y)

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Take further rows, any number at a time.

        Up to some thousand rows all are held, and the model is what `fit` makes of them. Beyond, units, network and landmarks
        are those of the first rows, and all rows are added to sums: pieces of any size come to the same model. Rows that are
        refused leave the model as it was.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        """
        is_first = "is_fitted_" not in vars(self)
        if is_first:
            self._held, self._summed = None, None
            check_regularization(self.regularization)
            self._check_options()
        output_names = names_of(y)
        allows_any_shape = is_module(self.network)
        X, y = validate_data(
            self, X, y, multi_output=True, y_numeric=True, dtype=np.float64, allow_nd=allows_any_shape, reset=is_first
        )
        columns = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        if not is_first:
            self._check_like_before(X, y, columns.shape[1])
        self._grow(X, columns)
        if is_first:
            self._row_shape, self._single_output, self._output_names = X.shape[1:], y.ndim == 1, output_names
        self.is_fitted_ = True
        return self

    def fit_stream(self, pieces: Iterable[Piece]) -> Self:
        """Train on pieces (X, y) of any size, of which no more are held than a few.

        Pieces that can be passed over again (a list, an object with ``__iter__``) are passed over twice: once to see what rows
        there are, once to add them up. A generator is passed over once, and the model begins on its first rows.

        Parameters
        ----------
        pieces : iterable of (X, y)
            Such as `unseed.parquet_pieces` gives.
        """
        self._forget()
        number = 0
        for piece in pieces:
            number += 1
            try:
                X, y = _two_parts(piece)
                self.partial_fit(X, y)
            except ValueError as error:
                raise InvalidInputError(f"piece {number}: {error}") from error
        if not number:
            raise InvalidInputError("pieces is empty: give at least one piece (X, y)")
        return self

    @abstractmethod
    def _train_exactly(self, data: TrainingData) -> None:
        """Train on rows that are all there."""

    @abstractmethod
    def _take(self, summed: SummedRows) -> None:
        """Take what the sums come to."""

    def _train(self, data: TrainingData) -> None:
        self.solver_ = resolve_solver(self.solver, resolve_engine(self.engine), len(data.X), data.device)
        if not isinstance(self.solver_, Landmarks):
            self._train_exactly(data)
            return
        rows = rows_to_begin_on(data.X, data.y, data.streams.seed)
        begun = self._begun(self.solver_, data.X[rows], data.y[rows], data, len(data.X))
        summed = begun.plus(data.X, data.y, data.progress)
        if len(data.X) > BEGIN_ROWS:
            self._summed = summed
        else:
            self._held = data.X, data.y
        self._take(summed)

    def _begun(self, solver: Landmarks, X: FloatArray, y: FloatArray, data: TrainingData, n_rows: int) -> SummedRows:
        scaling = Scaling.fit(X, y, active=bool(self.standardize))
        method = resolve_interval(self.interval, n_rows, has_posterior=True)
        return SummedRows.begun(self, method, solver, data._replace(X=X, y=y, scaling=scaling), n_rows)

    def _grow(self, X: FloatArray, y: FloatArray) -> None:
        if self._summed is not None:
            self._summed = self._summed.plus(X, y)
        else:
            held = self._rows_that_are_held()
            if held is not None:
                X, y = np.concatenate([held[0], X]), np.concatenate([held[1], y])
            data = self._data(X, y)
            most = len(X) > BEGIN_ROWS
            solver = resolve_solver(self.solver, resolve_engine(self.engine), len(X), data.device) if most else None
            if isinstance(solver, Landmarks):
                begun = self._begun(solver, X[:BEGIN_ROWS], y[:BEGIN_ROWS], data, len(X))
                self._summed, self._held, self.solver_ = begun.plus(X, y), None, solver
            else:
                self._held = X, y
        self.n_rows_ = len(X) if self._summed is None else self._summed.sums.n_rows
        for name in _SOLVED:
            self.__dict__.pop(name, None)

    def _data(self, X: FloatArray, y: FloatArray) -> TrainingData:
        scaling = Scaling.fit(X, y, active=check_flag("standardize", self.standardize))
        streams, progress = Streams.from_random_state(self.random_state), Progress(active=bool(self.verbose))
        return TrainingData(X, y, scaling, streams, resolve_device(self.device), progress)

    def _rows_that_are_held(self) -> tuple[FloatArray, FloatArray] | None:
        """Rows so far; those of `fit` are what the networks were trained on."""
        if self._held is not None or "is_fitted_" not in vars(self):
            return self._held
        if self._task is None:
            raise InvalidInputError("this model has its rows no longer, so none can be added: fit it again")
        scaling = self._replicates.scaling
        X = scaling.from_network(self._task.X.cpu().numpy())
        return X, scaling.from_labels(self._task.labels[:, 0])

    def _check_like_before(self, X: FloatArray, y: FloatArray, n_outputs: int) -> None:
        held = self._rows_that_are_held() if self._summed is None else None
        before = (
            self._summed.scaling.n_outputs if self._summed is not None else len(held[1][0]) if held is not None else n_outputs
        )
        if n_outputs != before or (y.ndim == 1) != self._single_output:
            raise InvalidInputError(f"y has {n_outputs} columns, and the rows before had {before}")
        if X.shape[1:] != self._row_shape:
            raise InvalidInputError(f"X has rows of shape {X.shape[1:]}, and those before had {self._row_shape}")

    def __getattr__(self, name: str) -> Any:
        """What a new piece has made out of date is made again when it is asked for."""
        if name in _SOLVED and "is_fitted_" in vars(self):
            if self._summed is not None:
                self._take(self._summed)
            elif self._held is not None:
                self._train(self._data(*self._held))
            if name in vars(self):
                return vars(self)[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _two_parts(piece: Any) -> tuple[Any, Any]:
    try:
        X, y = piece
    except (TypeError, ValueError) as error:
        raise InvalidInputError("a piece should be a pair (X, y)") from error
    return X, y
