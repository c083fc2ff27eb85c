"""Plots of docs/benchmarks.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from unseed.plots._display import ON_LIGHT, finish


def draw_peers(ratios: dict[str, float], ours: str) -> Figure:
    """Bars that begin at ours: to the left what is faster, to the right what is slower."""
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    ax = figure.subplots()
    names = sorted(ratios, key=ratios.__getitem__, reverse=True)
    ax.set_yticks(range(len(names)), names)
    for height, (name, label) in enumerate(zip(names, ax.get_yticklabels(), strict=True)):
        ratio, weight = ratios[name], "bold" if name == ours else "normal"
        ax.barh(height, ratio - 1, left=1, height=0.62, color=ON_LIGHT.band if ratio > 1 else ON_LIGHT.aside)
        beyond = {"ha": "right", "xytext": (-6, 0)} if ratio < 1 else {"ha": "left", "xytext": (7, 0)}
        ax.annotate(plain(ratio) + " ×", (ratio, height), textcoords="offset points", va="center", weight=weight, **beyond)
        label.set_weight(weight)
    ax.axvline(1, color=ON_LIGHT.mean, lw=1.2)
    ax.plot(1, names.index(ours), "o", color=ON_LIGHT.mean, ms=8)
    ax.tick_params(axis="y", length=0)
    logarithmic(ax.xaxis, decades(ratios.values()))
    ax.set_xlim(min(ratios.values()) / 5, max(ratios.values()) * 4)  # room for the numbers beyond the bars
    ax.set_xlabel("time over that of unseed's cheap bootstrap")
    ax.spines[["top", "right", "left"]].set_visible(False)
    return figure


def draw_growth(growth: dict[str, Any], letters: dict[str, str]) -> Figure:
    """Small multiples with one scale of seconds; lines have the fitted exponent and span the sizes it was fitted to."""
    columns = 3
    rows = math.ceil((len(growth) + 1) / columns)  # the last place is the legend's
    figure = Figure(figsize=(8, 2.5 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
    for ax, (name, found) in zip(axes, growth.items(), strict=False):
        sizes, seconds = np.array([*map(int, found["seconds"])]), np.array([*found["seconds"].values()])
        large = slice(-max(2, (len(sizes) + 1) // 2), None)
        level = np.exp(np.mean(np.log(seconds[large]) - found["exponent"] * np.log(sizes[large])))
        line = level * sizes[large] ** found["exponent"]
        ax.plot(sizes[large], line, color=ON_LIGHT.band, lw=3, label="fitted exponent,\nlarger half of the sizes")
        ax.plot(sizes, seconds, "o", color=ON_LIGHT.mean, ms=5, label="median time")
        ax.set_title(f"{name}: exponent {found['exponent']:.2f}".replace("-", "−"), loc="left", size=11)
        logarithmic(ax.xaxis, sizes)
        ax.set_xlim(sizes[0] / 1.5, sizes[-1] * 1.5)
        ax.set_xlabel(letters.get(name, name))
        ax.spines[["top", "right"]].set_visible(False)
    logarithmic(axes[0].yaxis, decades([value for found in growth.values() for value in found["seconds"].values()]))
    for ax in axes[::columns]:
        ax.set_ylabel("seconds")
    for ax in axes[len(growth) :]:
        ax.set_axis_off()
    axes[-1].legend(*axes[0].get_legend_handles_labels(), frameon=False, loc="center left")
    return figure


def draw_costs(points_by_device: dict[str, list[dict[str, Any]]], tolerance: float) -> Figure:
    """Forecast against measured seconds, a panel for each device; hollow outside the band."""
    series = dict.fromkeys(series_of(point) for points in points_by_device.values() for point in points)
    styles = dict(zip(series, cycle(zip(ON_LIGHT.outputs, "osD^", strict=True)), strict=False))
    panels = max(1, len(points_by_device))
    figure = Figure(figsize=(8, 4.4) if panels > 1 else (5.5, 5), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    for ax, (device, points) in zip(axes, points_by_device.items(), strict=False):
        both = [point[name] for point in points for name in ("forecast", "measured")]
        ends = np.array([min(both) / 2, max(both) * 2])
        band = {"color": ON_LIGHT.wide_band, "label": f"within a factor of {tolerance}"}
        ax.fill_between(ends, ends / tolerance, ends * tolerance, lw=0, **band)
        ax.plot(ends, ends, color=ON_LIGHT.aside, lw=1)
        for point in points:
            colour, marker = styles[series_of(point)]
            is_within = 1 / tolerance < point["forecast"] / point["measured"] < tolerance
            fill = colour if is_within else "white"
            ax.plot(point["measured"], point["forecast"], marker, mec=colour, mfc=fill, ms=5.5)
        for name in dict.fromkeys(map(series_of, points)):
            colour, marker = styles[name]
            ax.plot([], [], marker, color=colour, label=name)
        for axis in (ax.xaxis, ax.yaxis):
            logarithmic(axis, decades(both))
        ax.set(xlim=ends, ylim=ends, xlabel="measured, seconds", ylabel="forecast, seconds", aspect="equal")
        ax.set_title(device, loc="left")
        finish(ax)
    return figure


def series_of(point: dict[str, Any]) -> str:
    return "rows summed up" if point["kind"] == "landmarks" else f"{point['engine']} engine"


def logarithmic(axis: Axis, ticks: Sequence[float]) -> None:
    """A logarithmic axis with these ticks alone, in plain numbers."""
    getattr(axis.axes, f"set_{axis.axis_name}scale")("log")
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))


def decades(values: Sequence[float]) -> list[float]:
    """Powers of ten around these values."""
    return [10.0**power for power in range(math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))) + 1)]


def plain(value: float) -> str:
    """Two digits below a hundred, whole numbers above."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"
