"""What people look at, in colours that are safe for colour-blind readers and differ in lightness for grey prints."""

from unseed.plots._coverage import CoverageDisplay
from unseed.plots._intervals import IntervalDisplay
from unseed.plots._relevance import RelevanceDisplay
from unseed.plots._seed_spread import SeedSpreadDisplay
from unseed.plots._variance import VarianceDisplay

__all__ = ["CoverageDisplay", "IntervalDisplay", "RelevanceDisplay", "SeedSpreadDisplay", "VarianceDisplay"]
