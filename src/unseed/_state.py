"""What an object keeps: `State` as it says it, `Record` as it finds it again, every part looked at.

A state is a nested dictionary. Its leaves are arrays or tensors, numbers, text, and options of the library; its branches are
the states of the object's parts. One codec (`unseed._persistence.codec`) writes it and reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from unseed.errors import ModelFileError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

State = dict[str, Any]
NumberArray = npt.NDArray[Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Record:
    """What was saved. Nothing is believed: names, types, dtypes and shapes are compared with what is expected."""

    source: str  # name of the file, for errors
    facts: Mapping[str, Any]  # numbers, text, options and parts
    tensors: Mapping[str, NumberArray]  # of all parts; names carry the part's prefix
    prefix: str = ""

    def fault(self, text: str) -> ModelFileError:
        """The error that says so."""
        return ModelFileError(f"{self.source}: {text}; save the model again")

    def part(self, name: str) -> Record:
        """State of a part."""
        return Record(self.source, self.fact(name, dict), self.tensors, f"{self.prefix}{name}.")

    def fact(self, name: str, kind: type[T]) -> T:
        """A fact of that type."""
        value = self.facts.get(name)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.fault(f"{self.prefix}{name} should be of type {kind.__name__} and is {value!r:.60}")
        return value

    def whole_number(self, name: str, at_least: int = 0) -> int:
        """A fact that counts something."""
        value = self.fact(name, int)
        if value < at_least:
            raise self.fault(f"{self.prefix}{name}={value} should be at least {at_least}")
        return value

    def option(self, name: str, *kinds: Any) -> Any:
        """An option, which must be of one of the kinds where any are named."""
        if name not in self.facts:
            raise self.fault(f"{self.prefix}{name} is missing")
        value = self.facts[name]
        if kinds and not isinstance(value, kinds):
            raise self.fault(f"{self.prefix}{name} cannot be {value!r:.60}")
        return value

    def has(self, name: str) -> bool:
        """Whether there is a tensor of that name."""
        return self.prefix + name in self.tensors

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape that a tensor has."""
        return self._raw(name).shape

    def dtype(self, name: str) -> str:
        """Name of the type that a tensor has."""
        return self._raw(name).dtype.name

    def array(self, name: str, *shape: int | None, dtype: str = "float64") -> NumberArray:
        """A tensor of that shape (None: any length), as an array of its own."""
        values = self._raw(name)
        fits = len(values.shape) == len(shape) and all(
            wanted in (None, length) for wanted, length in zip(shape, values.shape, strict=True)
        )
        if not fits or values.dtype.name != dtype:
            wanted = tuple("any" if length is None else length for length in shape)
            raise self.fault(
                f"tensor {self.prefix}{name} is {values.dtype.name} of shape {values.shape} and should be {dtype} of {wanted}"
            )
        return np.array(values)

    def tensor(self, name: str, device: torch.device, *shape: int | None, dtype: str = "float64") -> Tensor:
        """A tensor of that shape on a device, in memory of its own (products depend on its alignment)."""
        import torch

        return torch.tensor(self.array(name, *shape, dtype=dtype), device=device)

    def _raw(self, name: str) -> NumberArray:
        values = self.tensors.get(self.prefix + name)
        if values is None:
            raise self.fault(f"tensor {self.prefix}{name} is missing")
        return values
