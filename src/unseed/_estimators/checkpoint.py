"""How far a long fit is, written down now and then: a folder like that of a model, from which it goes on after a kill."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from unseed._estimators.summed import SummedRows
from unseed._persistence import check_target, code_among, described, kind_of, read_document, read_model, write_model
from unseed.engines import Landmarks, Solver
from unseed.errors import InvalidInputError, ModelFileError

_SHARE = 0.05
"""Of the time that may go into writing."""

_ARGUMENTS = "arguments.json"
_NO_MATTER = "verbose", "n_jobs", "device"  # arguments that leave the numbers as they are


@dataclass
class Checkpoint:
    """Sums, and what was decided before them, in a folder; it is of one model and of one table of rows.

    Attributes
    ----------
    path : str or Path
    kind : str
        Name of the estimator's class.
    arguments : mapping
        Of its constructor.
    identity : str
        Fingerprint of the rows; "" until it is known.
    """

    path: str | Path
    kind: str
    arguments: Mapping[str, Any]
    identity: str = ""
    _begun: float = field(default_factory=time.perf_counter)
    _spent: float = 0.0
    _last: float = 0.0

    def __post_init__(self) -> None:
        self.kind = f"{self.kind} checkpoint"
        self.is_there = check_target(self.path).exists() and any(Path(self.path).iterdir())
        self._described = described(self.arguments)  # before a generator among them moves on

    def read(self, device: torch.device) -> tuple[SummedRows, Landmarks] | None:
        """What was written last, if anything was; refused where it is of another model."""
        if not self.is_there:
            return None
        code = {name: self.arguments[name] for name in code_among(self.arguments)}
        try:
            _, record = read_model(self.path, self.kind, code)
        except ModelFileError as error:
            raise self._fault(error) from error
        self.identity = record.fact("identity", str)
        try:
            summed = SummedRows.restore(record.part("summed"), self.arguments.get("initial_mean"), device)
        except (ArithmeticError, LookupError, RuntimeError, TypeError) as error:
            raise record.fault(f"the parts of the checkpoint do not fit together ({error})") from error
        return summed, record.option("solver", Landmarks)

    def check_rows(self, identity: str) -> None:
        """Refuse rows that are not those of the checkpoint; where there is none yet, these are."""
        if self.identity not in ("", identity):
            raise InvalidInputError(
                f"checkpoint={str(self.path)!r} is of other data (its first rows, or its columns, differ): give the same "
                "pieces, or another folder"
            )
        self.identity = identity

    def write_if_due(self, summed: SummedRows | None, solver: Solver) -> None:
        """Write, unless that has taken too much of the time already; rows that are still held are too few to lose."""
        start = time.perf_counter()
        if summed is None or self._spent + self._last > _SHARE * (start - self._begun):
            return
        state = {"summed": summed.state(), "solver": solver, "identity": self.identity}
        write_model(self.path, self.kind, self.arguments, state, {_ARGUMENTS: self._described})
        self._last = time.perf_counter() - start
        self._spent += self._last

    def check_model(self) -> None:
        """Refuse a folder of another model; what has been written there is not read yet."""
        if not self.is_there:
            return
        try:
            before = read_document(self.path, _ARGUMENTS) if kind_of(self.path) == self.kind else self._described
        except ModelFileError as error:
            raise self._fault(error) from error
        for name in sorted(before.keys() | self._described.keys()):
            if name not in _NO_MATTER and before.get(name) != self._described.get(name):
                raise InvalidInputError(
                    f"checkpoint={str(self.path)!r} is of another model ({name} differs): give the same arguments, or another "
                    "folder"
                )

    def _fault(self, error: ModelFileError) -> ModelFileError:
        return ModelFileError(f"checkpoint={str(self.path)!r}: {error}; or begin anew in another folder")
