"""Write the tables, sentences and plots of docs/benchmarks.md from the JSON files beside this script.

python benchmarks/page.py            refresh the page and its plots
python benchmarks/page.py --check    say whether tables and sentences are up to date
"""

from __future__ import annotations

import json
import math
import operator
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cost_of_intervals as benchmark
from marked import Blocks, markdown_table, write
from page_plots import draw_costs, draw_growth, draw_peers

HERE = Path(__file__).parent
PAGE, IMAGES = HERE.parent / "docs" / "benchmarks.md", HERE.parent / "docs" / "images"
TOLERANCE = 1.3  # a forecast is good if it is off by no more than this factor
Figures = dict[str, Any]


def figures(name: str) -> Figures:
    found: Figures = json.loads((HERE / f"{name}.json").read_text())
    if not found.get("complete", True):
        sys.exit(f"{name}.json is of a run that was stopped before its end; measure anew")
    return found


def number(value: float) -> str:
    """Three digits, thousands apart, no exponents."""
    return f"{float(f'{value:.3g}'):,.12g}"


def megabytes(n_bytes: int | None) -> str:
    """A dash where the system did not tell."""
    return "–" if n_bytes is None else number(n_bytes / 1e6)


# Peers

SETTINGS = {
    benchmark.OURS: "fit and 95 % intervals; ReLU network and λ given",
    "one bare Cholesky factorisation": "`torch.linalg.cholesky` of the n × n matrix; a floor, no interval",
    "one bare Gram matrix": "`unseed.kernels.ntk`; a floor, no interval",
    benchmark.ENTRIES: "`torch.acos` of n × n numbers and X Xᵀ, nothing of ours; a floor, no interval",
    "the same by KernelRidge, R + 1 times": 'scikit-learn, `kernel="precomputed"`, the data and R resamples; centres only',
    "Gaussian process of scikit-learn": "RBF and white noise, scales found by its own optimiser, one start",
    "deep ensemble of 5 MLPRegressors": "scikit-learn, 100 hidden units, at most 500 epochs",
    benchmark.LAPLACE: "100 hidden units, 500 epochs, full Hessian of the last layer, prior tuned",
    benchmark.MAPIE: "the same `MLPRegressor`, its default of 30 resamples",
}


def peers_conditions(peers: Figures) -> str:
    machine, once = peers["machine"], [name for name, value in peers["seconds"].items() if value > benchmark.PATIENCE]
    left_out = "".join(f" Left out: {name} ({reason})." for name, reason in peers["left_out"].items())
    return (
        f"n = {peers['rows']:,}, d = {benchmark.FEATURES}, {benchmark.POINTS} new points; {machine['threads']} threads, "
        f"Python {machine['python']}, torch {machine['torch']}. Timed once, without warm-up, because it takes longer than "
        f"{benchmark.PATIENCE:.0f} s: {'; '.join(once) or 'nothing'}. Peak memory of the whole run, peers included: "
        f"{peers['peak_bytes'] / 1e9:.1f} GB. MB: peak of memory during a job beyond what was there before.{left_out}"
    )


def peers_table(peers: Figures) -> str:
    lines = [
        [
            f"**{name}**" if name == benchmark.OURS else name,
            SETTINGS.get(name, ""),
            number(1e3 * peers["seconds"][name]),
            number(ratio),
            megabytes(peers["peak_added_bytes"].get(name)),
        ]
        for name, ratio in sorted(peers["ratios"].items(), key=operator.itemgetter(1))
    ]
    return markdown_table(["", "what is done", "ms", "ratio", "MB"], lines, left=2)


def floor(peers: Figures) -> str:
    """Seconds of the bare calls that the bootstrap is made of."""
    distinct = 1 - math.exp(-1)  # share of the rows that a resample holds
    factorisations, grams = 1 + benchmark.REPLICATIONS * distinct**3, 1 + benchmark.POINTS / peers["rows"]
    seconds = peers["seconds"]
    bare = factorisations * seconds["one bare Cholesky factorisation"] + grams * seconds["one bare Gram matrix"]
    return (
        f"A resample has {distinct:.2f} n distinct rows, so that the data and {benchmark.REPLICATIONS} resamples are "
        f"1 + {benchmark.REPLICATIONS} · {distinct:.2f}³ = {factorisations:.1f} factorisations; the new points make one Gram "
        f"matrix into {grams:.2f}. By the bare calls of the table, one after the other, that is {number(1e3 * bare)} ms, and "
        f"ours takes {seconds[benchmark.OURS] / bare:.2f} times as long."
    )


# Growth

AXES = {  # letter, what is timed, exponent where one term has outgrown all others
    "rows": ("n", "fit and intervals", "3"),
    "features": ("d", "fit and intervals, n = 1,024", "1"),
    "points": ("points", "intervals of a fitted model, n = 1,024", "1"),
    "replications": ("R", "fit, n = 1,024", "1"),
    "batches": ("m'", "fit by batching, n = 4,096", "−2 while m' is small"),
}


def growth_table(growth: Figures) -> str:
    lines = []
    for axis, found in growth.items():
        letter, timed, limit = AXES.get(axis, (axis, "", ""))
        sizes = " / ".join(f"{int(size):,}" for size in found["seconds"])
        times = " / ".join(number(1e3 * seconds) for seconds in found["seconds"].values())
        memory = " / ".join(megabytes(found["peak_added_bytes"].get(size)) for size in found["seconds"])
        lines.append([letter, timed, sizes, times, memory, f"{found['exponent']:.2f}".replace("-", "−"), limit])
    return markdown_table(["against", "what is timed", "sizes", "ms", "MB", "exponent", "in the limit"], lines, left=2)


def repeats(peers: Figures) -> str:
    """One and the same job is timed in three places: how far they are apart is what a timing is worth."""
    rows, features = (peers["growth"][axis]["seconds"] for axis in ("rows", "features"))
    same = [peers["seconds"][benchmark.OURS], rows[str(peers["rows"])], features[str(benchmark.FEATURES)]]
    return (
        "How sure these figures are: our job of the first table is also a point of the first two plots. In one run "
        f"it took {', '.join(number(1e3 * seconds) for seconds in same)} ms; the longest is {max(same) / min(same):.2f} times "
        "the shortest."
    )


# Promises


@dataclass(frozen=True)
class Promise:
    """A limit that a figure of limits.json was meant to stay within."""

    machine: str
    measurement: str
    figure: str
    job: str  # filled in from the figures of the measurement, as is the next
    counted: str
    unit: str
    limit: float
    is_kept: Callable[[float, float], bool] = operator.lt

    def line(self, limits: Figures) -> list[str]:
        found = limits.get(self.machine, {}).get("figures", {}).get(self.measurement)
        wanted = f"{SIGNS[self.is_kept]} {number(self.limit)}{self.unit}"
        if found is None:
            return [self.machine, f"`{self.measurement}`", "", "not measured", wanted, ""]
        value = found[self.figure]
        kept = "yes" if self.is_kept(value, self.limit) else "**no**"
        described = [text.format(**found) for text in (self.job, self.counted)]
        return [self.machine, *described, f"{number(value)}{self.unit}", wanted, kept]


SIGNS = {operator.lt: "<", operator.le: "≤"}
BOOTSTRAP, POINTS = "cheap bootstrap of {rows:,} rows", "intervals at {points:,} points, {rows:,} rows"
MANY_ROWS, MANY = "{rows:,} rows, network chosen", "{sets} data sets of {rows:,} rows at once"
ARCCOS = (
    "{seconds:.1f} s over {floor_seconds:.1f} s of arccos by torch on all cores "
    "(over NumPy's on one core: {ratio_to_numpy_on_one_core:.2f})"
)
CORES, GPU = "two cores", "H200"
PROMISES = (
    Promise(
        *(CORES, "bootstrap", "ratio", BOOTSTRAP, "{seconds:.2f} s over {floor_seconds:.2f} s of factorisations"),
        *(" ×", 1.6, operator.le),
    ),
    Promise(CORES, "bootstrap", "peak_matrices", BOOTSTRAP, "peak of memory beyond what was there before", " n × n", 3),
    Promise(CORES, "points", "ratio", POINTS, ARCCOS, " ×", 2.5, operator.le),
    Promise(CORES, "many_rows", "seconds", MANY_ROWS, "fit and intervals", " s", 120),
    Promise(CORES, "many_rows", "peak_gigabytes", MANY_ROWS, "peak of memory of the process", " GB", 4),
    Promise(
        *(CORES, "many_rows", "ratio", MANY_ROWS, "{seconds:.1f} s over {half_seconds:.1f} s for half the rows"),
        *(" ×", 2.2, operator.le),
    ),
    Promise(GPU, "gpu_many", "cheap_bootstrap_ms_each", MANY + ", cheap bootstrap", "for each data set", " ms", 1.5),
    Promise(GPU, "gpu_many", "batching_ms_each", MANY + ", batching", "for each data set", " ms", 0.15),
    Promise(
        *(GPU, "gpu_bootstrap", "seconds", BOOTSTRAP),
        "fit and intervals, {ratio:.2f} times its {floor_seconds:.2f} s of factorisations",
        *(" s", 2.5),
    ),
    Promise(
        *(GPU, "gpu_many_rows", "seconds", MANY_ROWS),
        "fit and intervals, {ratio:.2f} times as long as half the rows",
        *(" s", 12),
    ),
)


def promises(limits: Figures) -> str:
    lines = [promise.line(limits) for promise in PROMISES]
    verdicts = [line[-1] for line in lines if line[-1]]
    head = ["machine", "job", "what is counted", "measured", "wanted", "kept"]
    return f"Kept: {verdicts.count('yes')} of the {len(verdicts)} that were measured.\n\n" + markdown_table(head, lines, left=3)


CEILINGS = {  # by the share that is reached: ceiling, how high it is, what is held against it, how far that gets
    "cholesky_share_of_matrix_product": (
        "matrix product",
        "{matrix_product_tflops:.1f} TFLOP/s",
        "Cholesky factorisation",
        "{cholesky_tflops:.1f} TFLOP/s",
    ),
    "kernel_share_of_arccos": (
        "elementwise arccos",
        "{arccos_entries_per_ns:.0f} entries/ns",
        "kernel matrix",
        "{kernel_entries_per_ns:.1f} entries/ns",
    ),
    "kernel_share_of_bandwidth": (
        "memory, by copying",
        "{bandwidth_tb_per_s:.2f} TB/s",
        "kernel matrix",
        "{kernel_entries_per_ns:.1f} entries/ns, written twice",
    ),
}


def ceilings(limits: Figures) -> str:
    found = limits.get(GPU, {}).get("figures", {}).get("gpu_ceilings")
    if found is None:
        return "Not measured."
    lines = [[*(text.format(**found) for text in texts), f"{found[share]:.2f}"] for share, texts in CEILINGS.items()]
    return markdown_table(["ceiling", "measured", "what is held against it", "measured", "share"], lines, left=1)


# Cost model

DEVICES = {"cpu": "CPU", "cuda": "GPU"}


def forecasts(costs: Figures) -> dict[str, list[Figures]]:
    """Forecast and measured seconds by device; the kernel engine where none is named."""
    return {
        name: [{"engine": "kernel"} | point for point in costs[device]["points"]]
        for device, name in DEVICES.items()
        if costs.get(device, {}).get("points")
    }


def is_within(point: Figures) -> bool:
    return 1 / TOLERANCE < point["forecast"] / point["measured"] < TOLERANCE


def costs_summary(costs: Figures) -> str:
    parts = []
    for device, points in forecasts(costs).items():
        ratios = [point["forecast"] / point["measured"] for point in points]
        within = sum(map(is_within, points))
        span = f"forecast over measured from {min(ratios):.2f} to {max(ratios):.2f}"
        parts.append(f"{device}: {within} of {len(points)} forecasts are within a factor of {TOLERANCE} of the clock, {span}.")
    return "\n".join(parts) or "Not measured."


def costs_table(costs: Figures) -> str:
    lines = [
        [device, point["engine"], point["kind"], f"{point['rows']:,}", f"{point['points']:,}"]
        + [number(point[name]) for name in ("forecast", "measured")]
        + [f"{point['forecast'] / point['measured']:.2f}", "yes" if is_within(point) else "**no**"]
        for device, points in forecasts(costs).items()
        for point in points
    ]
    head = ["", "engine", "job", "rows", "new points", "forecast, s", "measured, s", "forecast / measured", "within"]
    return markdown_table(head, lines, left=3)


BLOCKS: Blocks = {
    "peers conditions": lambda: peers_conditions(figures("peers")),
    "peers": lambda: peers_table(figures("peers")),
    "floor": lambda: floor(figures("peers")),
    "growth": lambda: growth_table(figures("peers")["growth"]),
    "repeats": lambda: repeats(figures("peers")),
    "promises": lambda: promises(figures("limits")),
    "ceilings": lambda: ceilings(figures("limits")),
    "costs summary": lambda: costs_summary(figures("costs")),
    "costs": lambda: costs_table(figures("costs")),
}


def draw(folder: Path) -> None:
    """All plots of the page."""
    peers = figures("peers")
    draw_peers(peers["ratios"], benchmark.OURS).savefig(folder / "benchmark_peers.png", dpi=130)
    letters = {axis: letter for axis, (letter, *_) in AXES.items()}
    draw_growth(peers["growth"], letters).savefig(folder / "benchmark_growth.png", dpi=130)
    draw_costs(forecasts(figures("costs")), TOLERANCE).savefig(folder / "benchmark_costs.png", dpi=130)


if __name__ == "__main__":
    write(PAGE, BLOCKS)
    draw(IMAGES)
