"""A few rows that stand for many: half of them anywhere, half of them close together.

Rows far apart tell the large scales of a function; only close ones tell its fine structure from noise. A random subset of many
rows has few close pairs, and what all the rows could resolve would be taken for noise.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

NEIGHBOURS = 20
"""Rows of a group of close ones."""


def representative_rows(X: Tensor, n_rows: int, generator: np.random.Generator) -> Tensor:
    """Indices of rows, sorted: all of them where there are not more than ``n_rows``.

    Parameters
    ----------
    X : Tensor of shape (n, d)
        Standardised features: closeness is Euclidean.
    n_rows : int
    generator : numpy Generator
    """
    if len(X) <= n_rows:
        return torch.arange(len(X), device=X.device)
    order = generator.permutation(len(X))
    anchors = torch.from_numpy(order[: n_rows // (2 * NEIGHBOURS)].copy()).to(X.device)
    groups = torch.cdist(X[anchors], X).topk(min(NEIGHBOURS, n_rows), largest=False).indices.flatten()
    close = np.unique(groups.cpu().numpy())
    elsewhere: npt.NDArray[np.int64] = order[~np.isin(order, close)][: n_rows - len(close)]
    return torch.from_numpy(np.sort(np.concatenate([close, elsewhere]))).to(X.device)
