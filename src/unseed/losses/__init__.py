"""Losses: what a prediction that misses its label costs, and what is thereby said of the label's law."""

from unseed._listing import listed, not_known
from unseed.losses._gamma import Gamma
from unseed.losses._huber import Huber
from unseed.losses._logistic import Logistic
from unseed.losses._loss import (
    Loss,
    check_curvature,
    check_labels,
    check_trainable,
    constant_curvature,
    is_bent,
    is_location,
    newton_step,
    weighted_quantile,
)
from unseed.losses._poisson import Poisson
from unseed.losses._quantile import Quantile
from unseed.losses._softmax import Softmax
from unseed.losses._squared import Squared

__all__ = [
    "LOSSES",
    "Gamma",
    "Huber",
    "Logistic",
    "Loss",
    "Poisson",
    "Quantile",
    "Softmax",
    "Squared",
    "check_curvature",
    "check_labels",
    "check_trainable",
    "constant_curvature",
    "is_bent",
    "is_location",
    "newton_step",
    "resolve_loss",
    "weighted_quantile",
]

LOSSES: dict[str, type[Loss]] = listed(
    squared="unseed.losses._squared:Squared",
    logistic="unseed.losses._logistic:Logistic",
    softmax="unseed.losses._softmax:Softmax",
    poisson="unseed.losses._poisson:Poisson",
    gamma="unseed.losses._gamma:Gamma",
    huber="unseed.losses._huber:Huber",
    quantile="unseed.losses._quantile:Quantile",
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
        check_curvature(loss)
        return loss
    raise not_known("loss", loss, LOSSES, "an object such as losses.Squared()")
