"""What people look at, in colours that are safe for colour-blind readers and differ in lightness for grey prints."""

from unseed.plots._intervals import CoverageDisplay, IntervalDisplay
from unseed.plots._origins import SeedSpreadDisplay, VarianceDisplay
from unseed.plots._relevance import RelevanceDisplay

__all__ = ["CoverageDisplay", "IntervalDisplay", "RelevanceDisplay", "SeedSpreadDisplay", "VarianceDisplay"]
