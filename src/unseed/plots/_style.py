"""Colours on light and on dark axes, and how axes are begun and finished: the same for every display."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Palette(NamedTuple):
    """Colours by what they stand for; neighbours differ in lightness, so that a grey print keeps them apart."""

    mean: str
    band: str
    wide_band: str
    observed: str
    aside: str  # what is there for comparison
    outputs: tuple[str, ...]  # one for each output, in turn


ON_LIGHT = Palette("#0b3c5d", "#56a3d9", "#d5e6f3", "#d55e00", "#8a8a8a", ("#0b3c5d", "#d55e00", "#6db6e3", "#b07aa1"))
ON_DARK = Palette("#f4f9fd", "#56a3d9", "#2a4a63", "#f5a04c", "#9a9a9a", ("#f4f9fd", "#f5a04c", "#56a3d9", "#c594b5"))


def new_axes(width: float = 8.0, height: float = 4.5) -> Axes:
    """Axes of their own, in inches."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as missing:
        raise ImportError("plots need matplotlib; install it with: pip install 'unseed[plots]'") from missing
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def palette(ax: Axes) -> Palette:
    """Colours that stand out from these axes' background."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(ax.get_facecolor())
    return ON_LIGHT if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else ON_DARK


def finish(ax: Axes, legend_at: Literal["upper left", "best"] = "upper left") -> None:
    """Open frame and a legend without a box."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc=legend_at)


def make_room(ax: Axes, share: float = 0.3) -> None:
    """Leave so much of the height above everything drawn: the legend's place."""
    low, high = ax.get_ylim()
    ax.set_ylim(low, low + (high - low) / (1 - share))
