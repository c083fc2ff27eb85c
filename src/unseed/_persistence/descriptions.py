"""Options as ``{"type": name, "fields": {...}}`` and back, through a fixed list of names: no file can name anything else."""

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
from unseed.engines import ENGINES
from unseed.intervals import METHODS
from unseed.losses import LOSSES
from unseed.networks import MLP, MonteCarloMean

Json = Any
_OPTIONS: dict[str, Any] = {
    option.__name__: option
    for option in (
        *METHODS.values(),
        *ENGINES.values(),
        *LOSSES.values(),
        *(MLP, AutoNetwork, MonteCarloMean),
        *(Converged, GradientFlow, GradientDescent, GaussNewton, SGD),
        *(Selection, Candidate, Compression),
    )
}
_GENERATOR = "MT19937"


class NotDescribableError(Exception):
    """An object that only its own code could rebuild."""


def describe(value: object, parameters: Mapping[str, Any] | None = None) -> Json:
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
                return {"type": "parameter", "fields": {"name": name}}
        raise


def rebuild(description: Json, parameters: Mapping[str, Any] | None = None) -> Any:
    """The object again; a description that is not one of `describe`'s raises ValueError."""
    if isinstance(description, float) and not math.isfinite(description):
        raise ValueError("a number is not finite")
    if description is None or isinstance(description, (bool, int, float, str)):
        return description
    if isinstance(description, list):
        return [rebuild(item, parameters) for item in description]
    if not isinstance(description, dict) or description.keys() != {"type", "fields"}:
        raise ValueError(f"{description!r:.60} is not a description")
    name, fields = description["type"], description["fields"]
    if not isinstance(name, str) or not isinstance(fields, dict):
        raise ValueError(f"{description!r:.60} is not a description")
    return _rebuilt(name, {key: rebuild(value, parameters) for key, value in fields.items()}, parameters or {})


def _described(value: object) -> Json:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, PurePath):
        value = str(value)
    if value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if type(value) is list:
        return [_described(item) for item in value]
    if type(value) is tuple:
        return _typed("tuple", {"items": [_described(item) for item in value]})
    if isinstance(value, torch.device):
        return _typed("device", {"name": str(value)})
    if isinstance(value, np.random.RandomState):
        return _described_generator(value)
    if _OPTIONS.get(type(value).__name__) is type(value) and dataclasses.is_dataclass(value):
        fields = {one.name: _described(getattr(value, one.name)) for one in dataclasses.fields(value)}
        return _typed(type(value).__name__, fields)
    raise NotDescribableError(f"{value!r:.60}")


def _typed(name: str, fields: dict[str, Json]) -> Json:
    return {"type": name, "fields": fields}


def _rebuilt(name: str, fields: dict[str, Any], parameters: Mapping[str, Any]) -> Any:
    if name in _OPTIONS:
        return _OPTIONS[name](**fields)
    if name == "tuple":
        return tuple(fields["items"])
    if name == "device":
        return _rebuilt_device(fields["name"])
    if name == "RandomState":
        return _rebuilt_generator(fields)
    if name == "parameter" and fields["name"] in parameters:
        return parameters[fields["name"]]
    raise ValueError(f"type {name!r:.60} is not known to this version of unseed")


def _described_generator(generator: np.random.RandomState) -> Json:
    """A RandomState as it stands now, so that the next number it gives is the same."""
    state = generator.get_state(legacy=False)
    if state["bit_generator"] != _GENERATOR:
        raise NotDescribableError(f"{generator!r}")
    inner = state["state"]
    fields = {"key": inner["key"].tolist(), "pos": inner["pos"], "has_gauss": state["has_gauss"], "gauss": state["gauss"]}
    return _typed("RandomState", {name: _described(value) for name, value in fields.items()})


def _rebuilt_generator(fields: dict[str, Any]) -> np.random.RandomState:
    generator = np.random.RandomState()
    key = np.array(fields["key"], dtype=np.uint32)
    generator.set_state((_GENERATOR, key, fields["pos"], fields["has_gauss"], fields["gauss"]))
    return generator


def _rebuilt_device(name: object) -> torch.device:
    try:
        return torch.device(str(name))
    except RuntimeError as error:
        raise ValueError(f"device {name!r:.60} is not known") from error
