"""The little that unseed knows of data frames: where names and index come from, and how to give them back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def index_of(X: Any) -> Any:
    """Index of a pandas object; None for anything else (a list has a method of that name)."""
    return None if callable(getattr(X, "index", None)) else getattr(X, "index", None)


def names_of(y: Any) -> Sequence[Any]:
    """Names of the outputs: the columns of a frame, the name of a series, nothing for an array or a nameless series."""
    columns = getattr(y, "columns", None)
    if columns is not None:
        return list(columns)
    name = getattr(y, "name", None)
    return [name] if name not in (None, "") else []  # polars calls a nameless series ""


def pandas_for(what: str) -> Any:
    """The module pandas, or what cannot be done without."""
    try:
        import pandas as pd
    except ImportError as missing:
        raise ImportError(f"{what} needs pandas; install it with: pip install 'unseed[frames]'") from missing
    return pd


def to_pandas(values: npt.NDArray[np.float64], index: Any, names: Sequence[Any]) -> Any:
    """Series or data frame with the rows' index and the outputs' names."""
    pd = pandas_for("pandas output")
    if values.ndim == 1:
        return pd.Series(values, index=index, name=names[0] if names else None)
    return pd.DataFrame(values, index=index, columns=list(names) or None)
