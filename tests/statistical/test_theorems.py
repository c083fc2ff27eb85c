"""The paper's theorems as statistics: each method covers h* as often as it says, and widths shrink like n^-1/2."""

import numpy as np
import pytest

from statistical.h_star import binomial_band, coverage_and_width
from unseed import Batching, CheapBootstrap, HalfSampling, InfinitesimalJackknife, Sectioning

PAPER = [Batching(), CheapBootstrap(), InfinitesimalJackknife()]
BEYOND = [Sectioning(), HalfSampling()]


@pytest.mark.parametrize("interval", PAPER + BEYOND, ids=str)
def test_quick_coverage_of_h_star(interval):
    n_repetitions, levels = 80, (0.95, 0.8)
    # Three binomial standard errors at 95 % allow 0.877 to 1; a look at 80 % as well, 0.666 to 0.934, has two sides.
    coverages, _ = coverage_and_width(interval, 256, n_repetitions, levels)
    for level, coverage in zip(levels, coverages, strict=True):
        low, high = binomial_band(level, n_repetitions, z=3.0)
        assert low <= coverage <= high


@pytest.mark.slow
@pytest.mark.parametrize("interval", PAPER + BEYOND, ids=str)
def test_coverage_of_h_star(interval):
    n_repetitions = 1000
    low, high = binomial_band(0.95, n_repetitions)  # 0.9365 to 0.9635
    (coverage,), (width,) = coverage_and_width(interval, n_rows=512, n_repetitions=n_repetitions)
    print(f"\n{interval}: coverage of h* {coverage:.4f}, band [{low:.4f}, {high:.4f}], mean width {width:.4f}")
    assert low <= coverage <= high


@pytest.mark.parametrize("interval", PAPER + BEYOND, ids=str)
def test_widths_shrink_like_root_n(interval):
    sizes = np.array([128, 256, 512, 1024])
    widths = [coverage_and_width(interval, n_rows=int(n), n_repetitions=24)[1][0] for n in sizes]
    slope = np.polyfit(np.log(sizes), np.log(widths), 1)[0]
    # A width from three degrees of freedom has a relative sd of about 0.4; 24 repetitions and correlated points leave
    # 0.08 per size, hence 0.05 for the slope over these sizes: three of those.
    assert abs(slope + 0.5) < 0.15
