"""Rows in pieces: `partial_fit` and `fit_stream`, and a model that is solved when it is asked."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from unseed._checks import check_flag, check_no_text, fault_of
from unseed._estimators.first_look import BEGIN_ROWS, Block, FirstLook, joined
from unseed._estimators.partitions import fit_partitions, grow_by_partitions, partitions_of
from unseed._estimators.regressor import IntervalRegressor
from unseed._estimators.streams import ArrayPieces, CheckedPieces, add_up, check_stream
from unseed._estimators.summed import SummedRows
from unseed._estimators.training import TrainingData, check_regularization, is_module
from unseed._estimators.whole import solved_on_all_rows
from unseed._frames import names_of
from unseed._machine import resolve_device
from unseed._parquet import Piece
from unseed._predictors import PNCReplicates
from unseed._progress import Progress
from unseed._random import Streams
from unseed._results import FloatArray
from unseed._scaling import Scaling
from unseed._selection import Choice
from unseed._state import State
from unseed.engines import ROWS_AT_A_TIME, AllRows, Exact, Landmarks, Solver, landmark_memory, resolve_engine, resolve_solver
from unseed.errors import InvalidInputError
from unseed.intervals import hashed_plan, resolve_interval

_SOLVED = frozenset({"_replicates", "_task", "_probe", "regularization_", "network_", "selection_", "interval_", "engine_"})
"""What is not there between a new piece and the next question, which makes it."""


@dataclass(kw_only=True, eq=False, repr=False)
class GrowingRegressor(IntervalRegressor):
    """A regressor that takes its rows at once or in pieces, and has a model of all of them whenever it is asked."""

    solver: str | Solver = "auto"

    solver_: Solver = field(init=False)
    _held: tuple[FloatArray, FloatArray] | None = field(init=False, default=None)
    _summed: SummedRows | None = field(init=False, default=None)

    def fit(self, X: Any, y: Any) -> Self:
        """Train.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Of a memory map with more rows than are held at once no copy is made.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        """
        partitions = partitions_of(X, y)
        if partitions is not None:
            return fit_partitions(self, partitions)
        if not (isinstance(X, np.ndarray) and isinstance(y, np.ndarray) and X.ndim == 2 and y.ndim and len(X) == len(y)):
            return super().fit(X, y)
        self._begin()
        if self._solver_of_many(len(X), resolve_device(self.device)) is None:
            return super().fit(X, y)
        add_up(self, CheckedPieces(ArrayPieces(X, y), self._checked, self._progress(), place=ArrayPieces.place))
        return self

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
        check_stream(self, "partial_fit takes them", None, "fit")
        partitions = partitions_of(X, y)
        if partitions is not None:
            return grow_by_partitions(self, partitions)
        is_first = "is_fitted_" not in vars(self)
        if is_first:
            self._begin()
        self._grow(*self._checked(X, y, None if is_first else self._outputs_before()))
        self.is_fitted_ = True
        return self

    def fit_stream(self, pieces: Iterable[Piece], checkpoint: str | Path | None = None) -> Self:
        """Train on pieces (X, y) of any size, of which no more are held than a few.

        Pieces that can be passed over again (a list, an object with ``__iter__``) are passed over twice: once to see what rows
        there are, once to add them up. A generator is passed over once, and the model begins on its first rows.

        Parameters
        ----------
        pieces : iterable of (X, y)
            Such as `unseed.parquet_pieces` gives.
        checkpoint : str or Path, optional
            Folder in which what is known of many rows is written down now and then, in at most a twentieth of the time. Where
            it is there already, the same pieces are gone on with after the last row that it knows.
        """
        kept = check_stream(self, "fit_stream takes them", checkpoint, "fit")
        self._begin()
        add_up(self, CheckedPieces(pieces, self._checked, self._progress()), kept)
        return self

    @property
    def handling_(self) -> str:
        """How the rows were handled, in words."""
        return str(self._replicates.handling)

    def _begin(self) -> None:
        """Nothing is left of what was, and options are possible."""
        self._forget()
        check_flag("standardize", self.standardize)
        check_regularization(self.regularization)
        self._check_options()

    def _progress(self) -> Progress:
        return Progress(active=bool(self.verbose))

    def _forget(self) -> None:
        super()._forget()
        self._held, self._summed = None, None

    @abstractmethod
    def _train_exactly(self, data: TrainingData) -> None:
        """Train on rows that are all there."""

    @abstractmethod
    def _take(self, summed: SummedRows, solved: tuple[PNCReplicates, Choice] | None = None) -> None:
        """Take what the sums come to, or what has been solved with them."""

    def _train(self, data: TrainingData) -> None:
        self.solver_ = resolve_solver(self.solver, resolve_engine(self.engine), len(data.X), data.device)
        if isinstance(self.solver_, Exact):
            self._train_exactly(data)
        elif isinstance(self.solver_, Landmarks):
            self._train_on_sums(data, self.solver_)
        else:
            self._train_on_all(data, self.solver_)

    def _train_on_all(self, data: TrainingData, solver: AllRows) -> None:
        """By iterations; where it was left to us, and they do not come to an end, by sums."""
        summed = self._added(Landmarks(solver.landmarks), data, alone=True)
        with warnings.catch_warnings():
            if self.solver == "auto":
                warnings.simplefilter("error", ConvergenceWarning)
            try:
                solved = solved_on_all_rows(summed, data, solver)
            except ConvergenceWarning:
                self._train_on_sums(data, Landmarks())
                return
        self._take(summed, solved)
        self.solver_ = AllRows(solver.tolerance, max(summed.sums.spaces.sizes))

    def _train_on_sums(self, data: TrainingData, solver: Landmarks) -> None:
        summed = self._added(solver, data, alone=False)
        self._summed, self._held = (summed, None) if len(data.X) > BEGIN_ROWS else (None, (data.X, data.y))
        self._take(summed)

    def _added(self, solver: Landmarks, data: TrainingData, *, alone: bool) -> SummedRows:
        look = FirstLook(data.streams.seed).plus(data.X, data.y)
        begun = self._begun(solver, look, data.streams, data.device, data.progress, alone=alone)
        with data.progress.steps("adding rows", -(-len(data.X) // ROWS_AT_A_TIME)) as step:
            return begun.plus(data.X, data.y, step)

    def _begun(
        self,
        solver: Landmarks,
        look: FirstLook,
        streams: Streams,
        device: torch.device,
        progress: Progress,
        *,
        alone: bool = False,
    ) -> SummedRows:
        X, y = look.rows()
        data = TrainingData(X, y, Scaling.fit(X, y, active=bool(self.standardize)), streams, device, progress)
        method = resolve_interval(self.interval, look.n_rows, has_posterior=True)
        return SummedRows.begun(self, method, solver, data, look.n_rows, alone=alone)

    def _solver_of_many(self, n_rows: int, device: torch.device) -> Landmarks | None:
        """Landmarks, where so many rows are not held; refused where there is no memory for as many as were asked for."""
        if n_rows <= BEGIN_ROWS:
            return None
        solver = resolve_solver(self.solver, resolve_engine(self.engine), n_rows, device)
        if isinstance(solver, Landmarks) and solver.count:  # before seconds go into a look at the other rows
            plan = hashed_plan(resolve_interval(self.interval, n_rows, has_posterior=True), Streams(0))
            landmark_memory(n_rows, len(plan.weights(0, 1)), [min(solver.count, BEGIN_ROWS)]).check(device)
        return solver if isinstance(solver, Landmarks) else None

    def _grow(self, X: FloatArray, y: FloatArray) -> None:
        if self._summed is not None:
            self._summed = self._summed.plus(X, y)
        else:
            held = self._rows_that_are_held()
            X, y = (X, y) if held is None else joined([held, (X, y)])
            device = resolve_device(self.device)
            solver = self._solver_of_many(len(X), device)
            if solver is None:
                self._held = X, y
            else:
                streams, few = Streams.from_random_state(self.random_state), slice(BEGIN_ROWS)
                look = replace(FirstLook(streams.seed).plus(X[few], y[few]), n_rows=len(X))
                begun = self._begun(solver, look, streams, device, self._progress())
                self._summed, self._held, self.solver_ = begun.plus(X, y), None, begun.solver
        self._changed()

    def _changed(self) -> None:
        """What was solved is out of date."""
        self.n_rows_ = len(self._held[0]) if self._held is not None else self._summed.sums.n_rows if self._summed else 0
        for name in _SOLVED:
            self.__dict__.pop(name, None)

    def _checked(self, X: Any, y: Any, n_outputs: int | None) -> Block:
        """As arrays like those before, which had so many outputs; None where there were none before."""
        output_names, given = names_of(y), (X, y)
        options = {"y_numeric": True, "dtype": np.float64, "allow_nd": is_module(self.network), "reset": n_outputs is None}
        try:
            X, y = validate_data(self, X, y, multi_output=True, **options)
        except ValueError as error:
            raise InvalidInputError(fault_of(*given, error)) from error
        check_no_text(X=given[0], y=given[1])  # numbers that are written as text
        columns = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        if n_outputs is None:
            self._row_shape, self._single_output, self._output_names = X.shape[1:], y.ndim == 1, output_names
        elif columns.shape[1] != n_outputs or (y.ndim == 1) != self._single_output:
            raise InvalidInputError(f"y has {columns.shape[1]} columns, and the rows before had {n_outputs}")
        elif X.shape[1:] != self._row_shape:
            raise InvalidInputError(f"X has rows of shape {X.shape[1:]}, and those before had {self._row_shape}")
        return X, self._in_unit(columns, is_first=n_outputs is None)

    def _names(self) -> list[str]:
        return [str(name) for name in (*getattr(self, "feature_names_in_", ()), *(self._output_names or ()))]

    def _outputs_before(self) -> int:
        if self._summed is not None:
            return self._summed.scaling.n_outputs
        if self._held is not None:
            return int(self._held[1].shape[1])
        scaling: Scaling = self._replicates.scaling
        return scaling.n_outputs

    def _data(self, X: FloatArray, y: FloatArray) -> TrainingData:
        scaling = Scaling.fit(X, y, active=bool(self.standardize))
        streams, progress = Streams.from_random_state(self.random_state), self._progress()
        return TrainingData(X, y, scaling, streams, resolve_device(self.device), progress)

    def _state(self) -> State:
        return super()._state() if self._summed is None else {**super()._state(), "summed": self._summed.state()}

    def _rows_that_are_held(self) -> tuple[FloatArray, FloatArray] | None:
        """Rows so far; those of `fit` are what the networks were trained on."""
        if self._held is not None or "is_fitted_" not in vars(self):
            return self._held
        if self._task is None:
            raise InvalidInputError("this model has its rows no longer, so none can be added: fit it again")
        scaling = self._replicates.scaling
        X = scaling.from_network(self._task.X.cpu().numpy())
        return X, scaling.from_labels(self._task.labels[:, 0])

    def __getattr__(self, name: str) -> Any:
        """What a new piece has made out of date is made again when it is asked for."""
        if name in _SOLVED | {"solver_"} and "is_fitted_" in vars(self):
            if self._summed is not None:
                self._take(self._summed)
            elif self._held is not None:
                self._train(self._data(*self._held))
            if name in vars(self):
                return vars(self)[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
