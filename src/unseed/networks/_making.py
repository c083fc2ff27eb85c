"""The finite networks of an architecture, for data of given shape: made anew, or again from what was saved."""

from __future__ import annotations

from torch import Tensor

from unseed._state import Record
from unseed.errors import ModelFileError
from unseed.networks._mlp import MLP, MLPBatch, MLPEvaluation
from unseed.networks._module import ModuleBatch, ModuleEvaluation, ModuleFactory

Network = MLP | ModuleFactory
NetworkBatch = MLPBatch | ModuleBatch
"""Many networks of one architecture, which answer the same questions: that is all that trainers and engines know of them."""

Evaluation = MLPEvaluation | ModuleEvaluation
"""Networks at their inputs, ready for first-order questions. J is the Jacobian in the parameters."""

WIDTH_PER_ROW = 32  # the paper's choice


def make_batch(network: Network, X: Tensor, n_outputs: int, width: int | None = None) -> NetworkBatch:
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

    Examples
    --------
    >>> make_batch(MLP(), torch.zeros(10, 3), n_outputs=1).n_parameters
    1280
    """
    if isinstance(network, MLP):
        return MLPBatch(network, X.shape[1], n_outputs, width or network.width or WIDTH_PER_ROW * len(X))
    batch = ModuleBatch.of(network, X[:2], n_outputs)
    return batch if width is None else batch.resized(width)


def restore_batch(record: Record, network: Network, X: Tensor, n_outputs: int, n_parameters: int | None = None) -> NetworkBatch:
    """Finite networks whose width was recorded; ``network`` is its description, or the function given again.

    What was saved has ``n_parameters`` numbers for each, where that is known.
    """
    if isinstance(network, MLP):
        if X.ndim != 2:
            raise record.fault(f"an MLP cannot have rows of shape {tuple(X.shape[1:])}")
        of_ours = MLPBatch(network, X.shape[1], n_outputs, record.whole_number("width", at_least=1))
        if n_parameters not in (None, of_ours.n_parameters):
            raise record.fault(f"{n_parameters:,} parameters for a network that has {of_ours.n_parameters:,}")
        return of_ours
    batch = ModuleBatch.of(network, X[:2], n_outputs)
    if n_parameters not in (None, batch.n_parameters):
        raise ModelFileError(
            f"{record.source}: the network given to load has {batch.n_parameters:,} parameters and the saved one had "
            f"{n_parameters:,}; give the function that the model was fitted with"
        )
    return batch
