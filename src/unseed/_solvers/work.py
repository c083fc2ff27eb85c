"""What a forecast of costs adds up: so much of an operation that has a rate."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Work:
    """So much of an operation.

    Parameters
    ----------
    rate : str
        Its rate: an attribute of `unseed.costs.Rates` ("entry", "network.step"), or the name of a trial of an engine's own.
    sizes : tuple of float
        What a rate that is a function is asked for; a rate that is a number is multiplied by all of them.
    times : float
    asked_by : str
        The option that the operation is for, in the words of the error where its rate is not known; else the engine.
    at_most : bool
        Whether it may come to less.

    Examples
    --------
    >>> 2 * Work("entry", (1000, 50))
    Work(rate='entry', sizes=(1000, 50), times=2.0, asked_by='', at_most=False)
    """

    rate: str
    sizes: tuple[float, ...] = ()
    times: float = 1.0
    asked_by: str = ""
    at_most: bool = False

    def __rmul__(self, times: float) -> Work:
        return replace(self, times=times * self.times)
