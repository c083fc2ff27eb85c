"""Losses: what a prediction that misses its label costs, and what is thereby said of the label's law."""

from unseed.errors import InvalidInputError
from unseed.losses._loss import Loss, check_labels, check_trainable, constant_curvature, newton_step
from unseed.losses._squared import Squared

__all__ = [
    "LOSSES",
    "Loss",
    "Squared",
    "check_labels",
    "check_trainable",
    "constant_curvature",
    "newton_step",
    "resolve_loss",
]

LOSSES: dict[str, type[Squared]] = {"squared": Squared}


def resolve_loss(loss: str | Loss) -> Loss:
    """Loss of that name, or the object itself.

    Examples
    --------
    >>> resolve_loss("squared")
    Squared()
    """
    if isinstance(loss, str) and loss in LOSSES:
        return LOSSES[loss]()
    if isinstance(loss, Loss) and not isinstance(loss, type):
        return loss
    raise InvalidInputError(
        f"loss={loss!r} is not known; use {', '.join(map(repr, LOSSES))}, or an object like losses.Squared()"
    )
