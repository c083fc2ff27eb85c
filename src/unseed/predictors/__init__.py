"""Predictors combine what engines train."""

from unseed.predictors.pnc import PNCReplicates, fit_pnc
from unseed.predictors.seeds import draw_networks

__all__ = ["PNCReplicates", "draw_networks", "fit_pnc"]
