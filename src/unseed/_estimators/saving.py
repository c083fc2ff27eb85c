"""`save` and `load` of every regressor: what all have in common, and two questions to each about its own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from unseed._machine import resolve_device
from unseed._persistence import Compression, bytes_of, code_among, read_model, write_model
from unseed._results import FloatArray
from unseed._scaling import Scaling, unit_of
from unseed._state import Record, State
from unseed.engines import Task
from unseed.errors import InvalidInputError, ModelFileError, NotEnoughMemoryError, UnseedError

_WITNESS_POINTS = 8  # points at which code that was given again is compared with the code that was there
_CLOSE = 1e-4
# what objects say that are put together from a file that was changed and signed again
_MISFITS = UnseedError, ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError


class Saved(BaseEstimator):
    """A regressor that can be written to a folder and read from it."""

    _chosen: ClassVar[dict[str, tuple[Any, ...]]]  # names that arguments come to, with "_" added, and legal types
    _replicates: Any  # networks for every replicate of a plan, in the user's units
    _task: Task | None  # what they were trained on
    _row_shape: tuple[int, ...]
    _single_output: bool
    _unit: FloatArray = np.ones(1)  # of y within, where squares in the user's own are beyond float64
    _output_names: Any
    interval_: Any

    def save(self, path: str | Path, *, extra: Mapping[str, Any] | None = None) -> None:
        """Write the fitted model into a folder: ``model.json`` and ``tensors.safetensors``.

        The folder is new, empty, or holds a model of unseed, which is replaced when the new one is complete. Nothing in it can
        run. Functions (a torch module's, ``initial_mean``'s, an activation's) are not stored and must be given to `load` again.

        Parameters
        ----------
        path : str or Path
        extra : mapping from file name to JSON document, optional
            Further documents for the same folder, such as ``{"table.json": {...}}``; `unseed.read_document` reads them.
        """
        check_is_fitted(self, "is_fitted_")
        write_model(path, type(self).__name__, self.get_params(deep=False), self._whole_state(), extra or {})

    @classmethod
    def load(cls, path: str | Path, *, device: str | torch.device | None = None, **given: Any) -> Self:
        """Read a model that `save` wrote; it answers every question as the one that was saved.

        Parameters
        ----------
        path : str or Path
        device : str or None
            Where it shall live. None is where the constructor's ``device`` says, or the CPU where that is not on this machine.
        **given
            Constructor arguments that could not be stored, because they are code: ``network=make_module``,
            ``initial_mean=function``.
        """
        parameters, record = read_model(path, cls.__name__, given)
        try:
            estimator = cls(**parameters)
        except TypeError as error:
            raise record.fault(f"its arguments are not those of {cls.__name__} ({error})") from error
        if device is not None:
            estimator.device = device
        estimator._read(record, estimator._available_device(device is not None), has_code=bool(given))
        if given:
            estimator._compare(record.part("witness"))
        return estimator

    def size_in_bytes(self) -> int:
        """Bytes that the numbers of the model take on disk; ``model.json`` adds a few thousand."""
        check_is_fitted(self, "is_fitted_")
        return bytes_of(self._whole_state(), self.get_params(deep=False))

    @abstractmethod
    def _state(self) -> State:
        """What training has left, beside what the arguments came to."""

    @abstractmethod
    def _restore(self, record: Record, device: torch.device) -> Scaling:
        """Take back what `_state` said; return the units."""

    @abstractmethod
    def _some_points(self, n_points: int) -> FloatArray:
        """Points among the training rows, in the user's units."""

    @abstractmethod
    def _centre(self, X: FloatArray) -> FloatArray:
        """Predictions. Shape (n_points, n_outputs)."""

    def _in_unit(self, columns: FloatArray, *, is_first: bool) -> FloatArray:
        """Labels (n, n_outputs), where their squares are beyond float64 in a unit of their own."""
        if is_first and not callable(getattr(self, "initial_mean", None)):  # a mean that is given is one in the user's units
            self._unit = unit_of(columns)
        return columns / self._unit if (self._unit != 1).any() else columns

    def _whole_state(self) -> State:
        names = getattr(self, "feature_names_in_", None)
        state: State = {
            "feature_names_in": None if names is None else list(names),
            "output_names": None if self._output_names is None else list(self._output_names),
            "output": getattr(self, "_sklearn_output_config", {}).get("transform"),
            "single_output": bool(self._single_output),
            "n_rows": int(self.n_rows_),
            "unit": self._unit,
            "compression": getattr(self, "compression_", None),
            **{name: getattr(self, f"{name}_") for name in self._chosen},
            **self._state(),
        }
        if code_among(self.get_params(deep=False)):
            points = self._some_points(_WITNESS_POINTS)
            state["witness"] = {"X": points, "centre": self._centre(points)}
        return state

    def _read(self, record: Record, device: torch.device, *, has_code: bool) -> None:
        try:
            for name, types in self._chosen.items():
                setattr(self, f"{name}_", record.option(name, *types))
            self._take_common(record, self._restore(record, device))
        except (ModelFileError, NotEnoughMemoryError):
            raise
        except _MISFITS as error:
            if has_code and isinstance(error, UnseedError):
                raise  # it is about the code that was given, and says so
            raise record.fault(f"the parts of the model do not fit together ({error})") from error
        self.is_fitted_ = True

    def _take_common(self, record: Record, units: Scaling) -> None:
        self._row_shape, self.n_features_in_ = units.x_mean.shape, units.x_mean.shape[0]
        self._single_output = record.fact("single_output", bool)
        self.n_rows_ = record.whole_number("n_rows", at_least=1)
        self._output_names = record.option("output_names", list, type(None))
        names, n_outputs = record.option("feature_names_in", list, type(None)), len(units.y_mean)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        if (names is not None and len(names) != self.n_features_in_) or (self._single_output and n_outputs > 1):
            raise record.fault(f"names and outputs do not fit {self.n_features_in_} features and {n_outputs} outputs")
        if self._output_names and len(self._output_names) != n_outputs:
            raise record.fault(f"{len(self._output_names)} output names for {n_outputs} outputs")
        if record.has("unit"):  # models of 0.1.0 have none
            self._unit = record.array("unit", None)
        compression = record.option("compression", Compression, type(None))
        if compression is not None:
            self.compression_ = compression
        if record.option("output") is not None:
            self.set_output(transform=record.option("output"))

    def _available_device(self, is_asked_for: bool) -> torch.device:
        """The constructor's device; a model from a machine with a GPU lives on the CPU where there is none."""
        try:
            return resolve_device(self.device)
        except InvalidInputError:
            if is_asked_for or not str(self.device).startswith("cuda"):
                raise
            return torch.device("cpu")

    def _compare(self, witness: Record) -> None:
        """Code cannot be stored, but what it did can: refuse code that does something else."""
        X = witness.array("X", None, *self._row_shape)
        before, now = witness.array("centre", len(X), None), self._centre(X)
        change = float(np.abs(now - before).max())
        if not change <= _CLOSE * max(float(np.abs(before).max()), float(np.ptp(before))):
            raise ModelFileError(
                f"{witness.source}: the functions given to load predict otherwise than those the model was fitted with (by "
                f"{change:.3g} at one of its rows); give the same functions"
            )
