"""The finite networks of an architecture, for data of given shape: made anew, or again from what was saved."""

from __future__ import annotations

import torch
from torch import Tensor

from unseed._state import Record
from unseed.networks._batch import MLPBatch
from unseed.networks._mlp import MLP
from unseed.networks._module import ModuleBatch, ModuleFactory
from unseed.networks._protocol import NetworkBatch

Network = MLP | ModuleFactory
WIDTH_PER_ROW = 32  # the paper's choice


def make_batch(
    network: Network, X: Tensor, n_outputs: int, width: int | None = None, dtype: torch.dtype = torch.float64
) -> NetworkBatch:
    """Finite networks for rows such as these.

    Parameters
    ----------
    network : MLP or callable
        An architecture, or a function that makes a torch module.
    X : Tensor of shape (n_rows, ...)
        A module is tried on two of them.
    n_outputs : int
    width : int or None
        Of hidden layers; None takes the network's own, or 32 per row. A module has its own.
    dtype : torch.dtype
        Of a module's parameters.

    Examples
    --------
    >>> make_batch(MLP(), torch.zeros(10, 3), n_outputs=1).n_parameters
    1280
    """
    if isinstance(network, MLP):
        return MLPBatch(network, X.shape[1], n_outputs, width or network.width or WIDTH_PER_ROW * len(X))
    batch = ModuleBatch.of(network, X[:2], n_outputs, dtype)
    return batch if width is None else batch.resized(width)


def restore_batch(
    record: Record, network: Network, X: Tensor, n_outputs: int, dtype: torch.dtype = torch.float64
) -> NetworkBatch:
    """Finite networks whose ``state()`` was recorded; ``network`` is its description, or the function given again."""
    if not isinstance(network, MLP):
        return ModuleBatch.of(network, X[:2], n_outputs, dtype)
    if X.ndim != 2:
        raise record.fault(f"an MLP cannot have rows of shape {tuple(X.shape[1:])}")
    return MLPBatch(network, X.shape[1], n_outputs, record.whole_number("width", at_least=1))
