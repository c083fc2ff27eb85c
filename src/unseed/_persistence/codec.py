"""One way from what an object keeps (`State`) to JSON and one safetensors file, and one way back. Nothing in either can run.

Options are ``{"type": name, "fields": {...}}``, through a fixed list of names: no file can name anything else. A float64 tensor
whose values are all float32 numbers is stored as float32: half the bytes, and not a bit is lost.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import numpy as np
import torch

from unseed._persistence.compressed import Compression
from unseed._selection import AutoNetwork, Candidate, Selection
from unseed._solvers import SGD, Converged, GaussNewton, GradientDescent, GradientFlow
from unseed._state import NumberArray, Record, State
from unseed.engines import ENGINES, SOLVERS
from unseed.errors import ModelFileError
from unseed.intervals import METHODS
from unseed.losses import LOSSES
from unseed.networks import MLP, MonteCarloMean

OPTIONS: dict[str, Any] = {
    option.__name__: option
    for option in (
        *(*METHODS.values(), *ENGINES.values(), *LOSSES.values(), *SOLVERS.values(), MLP, AutoNetwork, MonteCarloMean),
        *(Converged, GradientFlow, GradientDescent, GaussNewton, SGD, Selection, Candidate, Compression),
    )
}
_DTYPES = "float64", "float32", "int64", "uint8"
_GENERATOR = "MT19937"
_UNREADABLE = ValueError, TypeError, KeyError, OverflowError, RecursionError


class NotDescribableError(Exception):
    """An object that only its own code could rebuild."""


def describe(value: object, parameters: Mapping[str, Any] | None = None) -> Any:
    """JSON from which `rebuild` makes an equal object; one of the parameters is named where that cannot be.

    Examples
    --------
    >>> from unseed import CheapBootstrap
    >>> describe(CheapBootstrap(replications=8))
    {'type': 'CheapBootstrap', 'fields': {'replications': 8}}
    """
    try:
        return _described(value)
    except NotDescribableError:
        for name, parameter in (parameters or {}).items():
            if parameter is value:
                return _typed("parameter", name=name)
        raise


def rebuild(description: Any, parameters: Mapping[str, Any] | None = None) -> Any:
    """The object again; a description that is not one of `describe`'s raises ValueError."""
    if isinstance(description, float) and not math.isfinite(description):
        raise ValueError("a number is not finite")
    if description is None or isinstance(description, (bool, int, float, str)):
        return description
    if isinstance(description, list):
        return [rebuild(item, parameters) for item in description]
    name, fields = _name_and_fields(description)
    fields = {key: rebuild(value, parameters) for key, value in fields.items()}
    if name in OPTIONS:
        return OPTIONS[name](**fields)
    if name == "tuple":
        return tuple(fields["items"])
    if name == "dict":
        return dict(zip(fields["keys"], fields["values"], strict=True))
    if name == "device":
        return _device(fields["name"])
    if name == "RandomState":
        return _generator(**fields)
    if name == "parameter" and fields["name"] in (parameters or {}):
        return (parameters or {})[fields["name"]]
    raise ValueError(f"type {name!r:.60} is not known to this version of unseed")


def encode(state: State, parameters: Mapping[str, Any], tensors: dict[str, NumberArray], prefix: str = "") -> dict[str, Any]:
    """Facts as JSON can hold them; arrays go into ``tensors``, under names that carry their part's prefix.

    Examples
    --------
    >>> tensors = {}
    >>> encode({"seed": 3, "plan": {"counts": np.ones((1, 2))}}, {}, tensors), list(tensors)
    ({'seed': 3, 'plan': {}}, ['plan.counts'])
    """
    facts: dict[str, Any] = {}
    for name, value in state.items():
        full_name = prefix + name
        if isinstance(value, dict):
            facts[name] = encode(value, parameters, tensors, f"{full_name}.")
        elif isinstance(value, (torch.Tensor, np.ndarray)):
            array = value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise ModelFileError(f"the fitted model has NaN or infinity in {full_name}; fit it again before saving")
            tensors[full_name] = array
        else:
            try:
                facts[name] = describe(value, parameters)
            except NotDescribableError as error:
                raise ModelFileError(
                    f"{full_name} has {error}, which JSON cannot hold; use text, numbers or options of unseed"
                ) from error
    return facts


def decode(source: str, facts: Mapping[str, Any], parameters: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Facts of a file whose options are objects again."""
    found: dict[str, Any] = {}
    for name, value in facts.items():
        if isinstance(value, dict) and value.keys() != {"type", "fields"}:
            found[name] = decode(source, value, parameters, f"{prefix}{name}.")
        else:
            found[name] = decode_option(source, prefix + name, value, parameters)
    return found


def decode_option(source: str, name: str, description: Any, parameters: Mapping[str, Any]) -> Any:
    """The object again, or a sentence that names the file."""
    try:
        return rebuild(description, parameters)
    except _UNREADABLE as error:
        raise Record(source, {}, {}).fault(f"{name} cannot be rebuilt ({error})") from error


def narrow(values: NumberArray) -> NumberArray:
    """The same numbers in float32 where that loses nothing, else the array itself.

    Examples
    --------
    >>> narrow(np.array([0.5, 3.0])).dtype, narrow(np.array([0.1])).dtype
    (dtype('float32'), dtype('float64'))
    """
    if values.dtype != np.float64:
        return values
    with np.errstate(over="ignore"):
        short = values.astype(np.float32)
    return short if np.array_equal(short.astype(np.float64), values) else values


def tensors_to_bytes(tensors: Mapping[str, NumberArray]) -> tuple[bytes, dict[str, dict[str, Any]]]:
    """The file, and what it must hold: dtype, dtype in the file and shape of every tensor."""
    from safetensors.numpy import save

    stored = {name: np.ascontiguousarray(narrow(values)).reshape(values.shape) for name, values in tensors.items()}
    return save(stored), {name: _table_entry(values.dtype.name, stored[name]) for name, values in tensors.items()}


def tensors_from_bytes(content: bytes, table: Any, source: str) -> dict[str, NumberArray]:
    """Tensors of a file, if they are those of the table and finite."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    entries = table.values() if isinstance(table, dict) else [table]
    if not all(isinstance(entry, dict) and entry.get("dtype") in _DTYPES for entry in entries):
        raise ModelFileError(f"the description of {source} is damaged; save the model again")
    try:
        found = load(content)
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise ModelFileError(f"{source} is not a safetensors file ({error}); save the model again") from error
    for name in table.keys() ^ found.keys():
        raise ModelFileError(f"{source} and its description differ in the tensor {name!r}; save the model again")
    for name, values in found.items():
        actual = _table_entry(table[name]["dtype"], values)
        if actual != table[name]:
            raise ModelFileError(f"{source}: tensor {name!r} is {actual} and should be {table[name]}; save the model again")
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            place = np.flatnonzero(~np.isfinite(values.reshape(-1)))[0]
            raise ModelFileError(f"{source}: tensor {name!r} has NaN or infinity (entry {place}); save the model again")
    return {name: found[name].astype(entry["dtype"], copy=False) for name, entry in table.items()}


def _table_entry(dtype: str, stored: NumberArray) -> dict[str, Any]:
    return {"dtype": dtype, "stored_as": stored.dtype.name, "shape": list(stored.shape)}


def _described(value: object) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, PurePath):
        return str(value)
    if type(value) is list:
        return [_described(item) for item in value]
    if type(value) is tuple:
        return _typed("tuple", items=list(value))
    if type(value) is dict:
        return _typed("dict", keys=list(value), values=list(value.values()))
    if isinstance(value, torch.device):
        return _typed("device", name=str(value))
    if isinstance(value, np.random.RandomState):
        state = value.get_state(legacy=False)  # as it stands now, so that the next number it gives is the same
        if state["bit_generator"] == _GENERATOR:
            key, position = state["state"]["key"].tolist(), state["state"]["pos"]
            return _typed("RandomState", key=key, pos=position, has_gauss=state["has_gauss"], gauss=state["gauss"])
    elif OPTIONS.get(type(value).__name__) is type(value) and dataclasses.is_dataclass(value):
        return _typed(type(value).__name__, **{one.name: getattr(value, one.name) for one in dataclasses.fields(value)})
    raise NotDescribableError(f"{value!r:.60}")


def _typed(type_name: str, /, **fields: Any) -> dict[str, Any]:
    return {"type": type_name, "fields": {name: _described(value) for name, value in fields.items()}}


def _name_and_fields(description: Any) -> tuple[str, dict[str, Any]]:
    if isinstance(description, dict) and description.keys() == {"type", "fields"}:
        name, fields = description["type"], description["fields"]
        if isinstance(name, str) and isinstance(fields, dict):
            return name, fields
    raise ValueError(f"{description!r:.60} is not a description")


def _generator(key: list[int], pos: int, has_gauss: int, gauss: float) -> np.random.RandomState:
    generator = np.random.RandomState()
    generator.set_state((_GENERATOR, np.array(key, dtype=np.uint32), pos, has_gauss, gauss))
    return generator


def _device(name: object) -> torch.device:
    try:
        return torch.device(str(name))
    except RuntimeError as error:
        raise ValueError(f"device {name!r:.60} is not known") from error
