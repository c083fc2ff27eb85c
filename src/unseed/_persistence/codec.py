"""One way from what an object keeps (`State`) to JSON and tensors, and one way back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor

from unseed._persistence.descriptions import NotDescribableError, describe, rebuild
from unseed._persistence.tensors import NumberArray
from unseed._state import Record, State
from unseed.errors import ModelFileError

Tensors = dict[str, NumberArray]
_UNREADABLE = ValueError, TypeError, KeyError, OverflowError, RecursionError


def encode(state: State, parameters: Mapping[str, Any], tensors: Tensors, prefix: str = "") -> dict[str, Any]:
    """Facts as JSON can hold them; arrays go into ``tensors``, under names that carry their part's prefix.

    Parameters
    ----------
    state : dict
    parameters : mapping
        Constructor arguments: an object that cannot be described is named as one of them.
    tensors : dict
        Filled here.
    prefix : str

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
        elif isinstance(value, (Tensor, np.ndarray)):
            tensors[full_name] = _finite(value, full_name)
        else:
            facts[name] = _described(value, parameters, full_name)
    return facts


def decode(source: str, facts: Mapping[str, Any], tensors: Mapping[str, NumberArray], parameters: Mapping[str, Any]) -> Record:
    """A record whose options are objects again.

    Parameters
    ----------
    source : str
        Name of the file, for errors.
    facts, tensors : mapping
        As `encode` made them.
    parameters : mapping
        Constructor arguments, those that were given again among them.
    """
    return Record(source, _rebuilt(source, facts, parameters, ""), tensors)


def decode_options(source: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Constructor arguments, which have no parts."""
    return {name: _option(source, value, {}, name) for name, value in facts.items()}


def _finite(value: Tensor | NumberArray, name: str) -> NumberArray:
    array = value.detach().cpu().numpy() if isinstance(value, Tensor) else value
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ModelFileError(f"the fitted model has NaN or infinity in {name}; fit it again before saving")
    return array


def _described(value: object, parameters: Mapping[str, Any], name: str) -> Any:
    try:
        return describe(value, parameters)
    except NotDescribableError as error:
        raise ModelFileError(f"{name} has {error}, which JSON cannot hold; use text, numbers or options of unseed") from error


def _rebuilt(source: str, facts: Mapping[str, Any], parameters: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in facts.items():
        if isinstance(value, dict) and value.keys() != {"type", "fields"}:
            found[name] = _rebuilt(source, value, parameters, f"{prefix}{name}.")
        else:
            found[name] = _option(source, value, parameters, prefix + name)
    return found


def _option(source: str, value: Any, parameters: Mapping[str, Any], name: str) -> Any:
    try:
        return rebuild(value, parameters)
    except _UNREADABLE as error:
        raise Record(source, {}, {}).fault(f"{name} cannot be rebuilt ({error})") from error
