"""Tensors as one safetensors file: nothing in it can run, and nothing is allocated that the file does not hold.

A float64 tensor whose values are all float32 numbers is stored as float32: half the bytes, and not a bit is lost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from unseed.errors import ModelFileError

NumberArray = npt.NDArray[Any]
Table = dict[str, dict[str, Any]]
DTYPES = ("float64", "float32", "int64", "uint8")
_LENGTH_BYTES = 8  # a safetensors file begins with the length of its header


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


def to_bytes(tensors: Mapping[str, NumberArray]) -> tuple[bytes, Table]:
    """The file, and what it must hold: dtype, dtype in the file and shape of every tensor."""
    from safetensors.numpy import save

    stored = {name: np.ascontiguousarray(narrow(values)).reshape(values.shape) for name, values in tensors.items()}
    table = {
        name: {"dtype": values.dtype.name, "stored_as": stored[name].dtype.name, "shape": list(values.shape)}
        for name, values in tensors.items()
    }
    return save(stored), table


def n_bytes(tensors: Mapping[str, NumberArray]) -> int:
    """Bytes that the numbers will take in the file."""
    return sum(narrow(values).nbytes for values in tensors.values())


def from_bytes(content: bytes, table: object, source: str) -> dict[str, NumberArray]:
    """Tensors of a file, if they are those of the table and finite.

    Parameters
    ----------
    content : bytes
    table : mapping
        As `to_bytes` gave it.
    source : str
        Name of the file, for the error.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    promised = _checked_table(table, source)
    header = int.from_bytes(content[:_LENGTH_BYTES], "little")
    if len(content) < _LENGTH_BYTES or header > len(content) - _LENGTH_BYTES:
        raise ModelFileError(f"{source} is cut short; copy the whole folder again, or save the model again")
    try:
        found = load(content)
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise ModelFileError(f"{source} is not a safetensors file ({error}); save the model again") from error
    for name in promised.keys() ^ found.keys():
        raise ModelFileError(f"{source} and its description differ in the tensor {name!r}; save the model again")
    return {name: _checked(name, found[name], promised[name], source) for name in promised}


def _checked_table(table: object, source: str) -> Table:
    is_table = isinstance(table, dict) and all(
        isinstance(entry, dict) and {"dtype", "stored_as", "shape"} == entry.keys() and entry["dtype"] in DTYPES
        for entry in table.values()
    )
    if not is_table or not isinstance(table, dict):
        raise ModelFileError(f"the description of {source} is damaged; save the model again")
    return table


def _checked(name: str, values: NumberArray, promised: Mapping[str, Any], source: str) -> NumberArray:
    if values.dtype.name != promised["stored_as"] or list(values.shape) != promised["shape"]:
        raise ModelFileError(
            f"{source}: tensor {name!r} is {values.dtype.name} of shape {values.shape} and should be "
            f"{promised['stored_as']} of shape {promised['shape']}; save the model again"
        )
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        place = math.floor(np.flatnonzero(~np.isfinite(values.reshape(-1)))[0])
        raise ModelFileError(f"{source}: tensor {name!r} has NaN or infinity (entry {place}); save the model again")
    return values.astype(promised["dtype"], copy=False)
