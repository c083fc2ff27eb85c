"""What a job will take, before it is begun: time and memory from a few rates of this machine."""

from unseed.costs.finite import NetworkRates, TangentRates
from unseed.costs.formulas import Forecast, forecast
from unseed.costs.job import TYPICAL_NETWORK, Job
from unseed.costs.rates import Rates

__all__ = ["TYPICAL_NETWORK", "Forecast", "Job", "NetworkRates", "Rates", "TangentRates", "forecast"]
