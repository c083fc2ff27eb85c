"""Losses: what a prediction that misses its label costs, and what is thereby said of the label's law."""

from unseed._listing import listed, not_known
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

LOSSES: dict[str, type[Loss]] = listed(
    squared="unseed.losses._squared:Squared",
)
"""The one list of losses: by these names they are asked for, and by their classes' names they are kept in files."""


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
    raise not_known("loss", loss, LOSSES, "an object such as losses.Squared()")
