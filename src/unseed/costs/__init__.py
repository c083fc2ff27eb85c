"""What a job will take, before it is begun: time and memory from a few rates of this machine."""

from unseed.costs._finite import NetworkRates, TangentRates
from unseed.costs._formulas import Forecast, forecast
from unseed.costs._job import TYPICAL_NETWORK, FullCentre, Job
from unseed.costs._memory import shortage
from unseed.costs._rates import Rates
from unseed.costs._solvers import SolverRates
from unseed.costs._timing import Growth

__all__ = [
    "TYPICAL_NETWORK",
    "Forecast",
    "FullCentre",
    "Growth",
    "Job",
    "NetworkRates",
    "Rates",
    "SolverRates",
    "TangentRates",
    "forecast",
    "shortage",
]
