"""What a job will take, before it is begun: time and memory from a few rates of this machine.

Every engine says in amounts of operations what it takes (`unseed.engines.Cost`), and `Rates` have the seconds of each.
"""

from unseed.costs._job import TYPICAL_NETWORK, Job
from unseed.costs._rates import Forecast, Growth, Rates, SolverRates, forecast, shortage
from unseed.engines._trials import NetworkRates, TangentRates

__all__ = [
    "TYPICAL_NETWORK",
    "Forecast",
    "Growth",
    "Job",
    "NetworkRates",
    "Rates",
    "SolverRates",
    "TangentRates",
    "forecast",
    "shortage",
]
