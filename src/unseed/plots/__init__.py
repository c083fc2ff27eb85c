"""What people look at, in colours that are safe for colour-blind readers and differ in lightness for grey prints."""

from unseed.plots.coverage import CoverageDisplay
from unseed.plots.intervals import IntervalDisplay
from unseed.plots.relevance import RelevanceDisplay
from unseed.plots.seed_spread import SeedSpreadDisplay
from unseed.plots.variance import VarianceDisplay

__all__ = ["CoverageDisplay", "IntervalDisplay", "RelevanceDisplay", "SeedSpreadDisplay", "VarianceDisplay"]
