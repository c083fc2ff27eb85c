"""What a job will take, before it is begun: time and memory from a few rates of this machine."""

from unseed.costs.finite import NetworkRates, TangentRates
from unseed.costs.formulas import Forecast, forecast
from unseed.costs.job import TYPICAL_NETWORK, FullCentre, Job
from unseed.costs.memory import shortage
from unseed.costs.rates import Rates
from unseed.costs.solvers import SolverRates
from unseed.costs.timing import Growth

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
