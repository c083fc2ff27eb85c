"""Facts and tensors of a model, part by part: `Draft` collects them, `Record` gives them back after a look at each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from unseed._persistence.descriptions import NotDescribableError, describe, rebuild
from unseed._persistence.tensors import NumberArray
from unseed.errors import ModelFileError

T = TypeVar("T")


@dataclass(frozen=True)
class Draft:
    """What is to be saved.

    Attributes
    ----------
    facts : dict
        What JSON can hold.
    tensors : dict of str to array
        Shared by all parts; names carry the part's prefix.
    parameters : mapping
        Constructor arguments: an object that cannot be described is named as one of them.
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    tensors: dict[str, NumberArray] = field(default_factory=dict)
    prefix: str = ""

    def part(self, name: str) -> Draft:
        """A part with facts and tensor names of its own."""
        return Draft(self.parameters, self.facts.setdefault(name, {}), self.tensors, f"{self.prefix}{name}.")

    def put(self, name: str, values: Tensor | NumberArray) -> None:
        """A tensor, wherever it is now."""
        array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ModelFileError(f"the fitted model has NaN or infinity in {self.prefix}{name}; fit it again before saving")
        self.tensors[self.prefix + name] = array

    def describe(self, name: str, value: object) -> None:
        """An option, by its type and fields."""
        try:
            self.facts[name] = describe(value, self.parameters)
        except NotDescribableError as error:
            raise ModelFileError(
                f"{self.prefix}{name} has {error}, which JSON cannot hold; use text, numbers or options of unseed"
            ) from error


@dataclass(frozen=True)
class Record:
    """What was saved. Nothing is believed: names, types, dtypes and shapes are compared with what is expected."""

    source: str
    facts: Mapping[str, Any]
    tensors: Mapping[str, NumberArray]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    prefix: str = ""

    def fault(self, text: str) -> ModelFileError:
        """The error that says so."""
        return ModelFileError(f"{self.source}: {text}; save the model again")

    def part(self, name: str) -> Record:
        """A part, as it was drafted."""
        facts = self.fact(name, dict)
        return Record(self.source, facts, self.tensors, self.parameters, f"{self.prefix}{name}.")

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

    def described(self, name: str, *kinds: Any) -> Any:
        """An option, rebuilt, which must be of one of the kinds where any are named."""
        if name not in self.facts:
            raise self.fault(f"{self.prefix}{name} is missing")
        try:
            value = rebuild(self.facts[name], self.parameters)
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            raise self.fault(f"{self.prefix}{name} cannot be rebuilt ({error})") from error
        if kinds and not isinstance(value, kinds):
            raise self.fault(f"{self.prefix}{name} cannot be {value!r:.60}")
        return value

    def has(self, name: str) -> bool:
        """Whether there is a tensor of that name."""
        return self.prefix + name in self.tensors

    def array(self, name: str, *shape: int | None, dtype: str = "float64") -> NumberArray:
        """A tensor of that shape (None: any length), as an array of its own."""
        values = self.tensors.get(self.prefix + name)
        if values is None:
            raise self.fault(f"tensor {self.prefix}{name} is missing")
        fits = len(values.shape) == len(shape) and all(
            wanted in (None, length) for wanted, length in zip(shape, values.shape, strict=True)
        )
        if not fits or values.dtype.name != dtype:
            wanted = tuple("any" if length is None else length for length in shape)
            raise self.fault(
                f"tensor {self.prefix}{name} is {values.dtype.name} of shape {values.shape} and should be {dtype} of {wanted}"
            )
        return np.array(values)

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape that a tensor has."""
        if not self.has(name):
            raise self.fault(f"tensor {self.prefix}{name} is missing")
        return self.tensors[self.prefix + name].shape

    def tensor(self, name: str, device: torch.device, *shape: int | None, dtype: str = "float64") -> Tensor:
        """A tensor of that shape on a device, in memory of its own (products depend on its alignment)."""
        return torch.tensor(self.array(name, *shape, dtype=dtype), device=device)
