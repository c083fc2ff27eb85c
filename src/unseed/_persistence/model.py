"""A model as a folder: constructor arguments, fitted facts and tensors; and what only the user can bring back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unseed._persistence import folder, tensors
from unseed._persistence.codec import decode, decode_options, encode
from unseed._persistence.descriptions import NotDescribableError, describe
from unseed._state import Record, State
from unseed._version import __version__
from unseed.errors import ModelFileError

_GIVEN = {"type": "given", "fields": {}}


@dataclass(frozen=True)
class SavedModel:
    """A model as it was read.

    Attributes
    ----------
    kind : str
        Name of the estimator's class.
    parameters : dict
        Constructor arguments, those that were given again among them.
    fitted : Record
    needs_look : bool
        Whether something was given again that the file can only know by what it does.
    """

    kind: str
    parameters: dict[str, Any]
    fitted: Record
    needs_look: bool


def describe_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Constructor arguments; functions and objects that are not unseed's must be given again."""
    described: dict[str, Any] = {}
    for name, value in parameters.items():
        try:
            described[name] = describe(value)
        except NotDescribableError:
            described[name] = _GIVEN
    return described


def code_among(parameters: Mapping[str, Any]) -> list[str]:
    """Names of the arguments that must be given again."""
    return [name for name, value in describe_parameters(parameters).items() if value == _GIVEN]


def write_model(path: str | Path, kind: str, parameters: Mapping[str, Any], state: State, extra: Mapping[str, Any]) -> None:
    """Write a folder with the model and further documents."""
    arrays: dict[str, tensors.NumberArray] = {}
    facts = encode(state, parameters, arrays)
    content, table = tensors.to_bytes(arrays)
    description = {
        "unseed_version": __version__,
        "kind": kind,
        "parameters": describe_parameters(parameters),
        "fitted": facts,
        "tensors": table,
    }
    folder.write(path, description, {folder.TENSORS: content, **folder.documents(extra)})


def bytes_of(state: State, parameters: Mapping[str, Any]) -> int:
    """Bytes that the numbers of a model take on disk."""
    arrays: dict[str, tensors.NumberArray] = {}
    encode(state, parameters, arrays)
    return tensors.n_bytes(arrays)


def kind_of(path: str | Path) -> str:
    """Name of the class whose ``load`` reads a folder.

    Parameters
    ----------
    path : str or Path
    """
    kind = folder.read_description(path).get("kind")
    if not isinstance(kind, str):
        raise ModelFileError(f"{path} does not say which regressor it holds; save the model again")
    return kind


def read_model(path: str | Path, kind: str, given: Mapping[str, Any]) -> SavedModel:
    """Read a folder that holds a model of that kind.

    Parameters
    ----------
    path : str or Path
    kind : str
        Name of the class that reads it.
    given : mapping
        Arguments that were not stored, by name.
    """
    description = folder.read_description(path)
    if description.get("kind") != kind:
        other = str(description.get("kind"))[:60]
        raise ModelFileError(f"{path} holds a {other} and not a {kind}; use {other}.load({str(path)!r})")
    source = Path(path) / folder.DESCRIPTION
    described, facts = description.get("parameters"), description.get("fitted")
    if not isinstance(described, dict) or not isinstance(facts, dict):
        raise ModelFileError(f"{source} is damaged; save the model again")
    missing = {name for name, value in described.items() if value == _GIVEN}
    _check_given(path, kind, missing, given)
    content = folder.read_file(path, description, folder.TENSORS)
    found = tensors.from_bytes(content, description.get("tensors"), str(Path(path) / folder.TENSORS))
    stored = decode_options(str(source), {name: value for name, value in described.items() if name not in missing})
    parameters = {name: given[name] if name in missing else stored[name] for name in described}
    return SavedModel(kind, parameters, decode(str(source), facts, found, parameters), bool(missing))


def _check_given(path: str | Path, kind: str, missing: set[str], given: Mapping[str, Any]) -> None:
    for name in sorted(missing - given.keys()):
        raise ModelFileError(
            f"{path}: {name} is code of your own, which no file of unseed holds; give it again: "
            f"{kind}.load({str(path)!r}, {name}=...)"
        )
    for name in sorted(given.keys() - missing):
        raise ModelFileError(f"{path}: {name} was given, and is stored with the model (or no argument at all); leave it out")
