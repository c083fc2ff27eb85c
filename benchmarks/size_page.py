"""What docs/scaling.md says of accuracy at every size, from results/size.json; `scaling_page.py` writes it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median

from matplotlib.figure import Figure

import size
from marked import markdown_table
from page import number
from page_plots import decades, logarithmic
from size import Record
from size_functions import HELD_BACK, NEAR_A_JUMP, NOISE, PROBLEMS, TUNED_ON, Problem
from unseed.plots._display import ON_LIGHT

NAMES = {"unseed": "unseed", "lightgbm": "LightGBM", "catboost": "CatBoost", "forest": "random forest"}
COLOURS = dict(zip(NAMES, ON_LIGHT.outputs, strict=True))
LEVEL, LEAST = 0.95, 0.90  # what intervals promise, and what no cell should fall below
BETTER, FALL = 0.5, 0.6  # of LightGBM's error; of the error with a tenth of the rows
PICTURES = {
    "size_coverage.png": "Coverage of the truth and width over an oracle's, function by function, against rows",
    "size_error.png": "RMSE against rows for each function and method",
    "size_seconds.png": "Seconds of fit and prediction against rows",
}


def found(path: Path = size.OUT) -> list[Record]:
    """What was measured with default options; of a cell that two devices did, both."""
    return [record for record in size.records(path) if record["landmarks"] is None and record["seed"] == 0]


def preferred(records: Sequence[Record], method: str) -> dict[tuple[str, int], Record]:
    """One record for each function and number of rows: of the GPU where it was measured there."""
    of_method = [record for record in records if record["method"] == method]
    on_gpus_last = sorted(of_method, key=lambda record: record["device"] == "cuda")
    return {(record["function"], record["rows"]): record for record in on_gpus_last}


def sizes(records: Sequence[Record]) -> list[int]:
    return sorted({record["rows"] for record in records})


def geometric(values: Sequence[float]) -> float:
    return math.exp(mean(map(math.log, values)))


def share(value: float) -> str:
    """Three digits behind the point, and none before it: .953."""
    return f"{value:.3f}".removeprefix("0")


# Words


def conditions(records: Sequence[Record]) -> str:
    seen = {record["function"] for record in records}
    tuned, held = (sum(problem.name in seen for problem in group) for group in (TUNED_ON, HELD_BACK))
    missing = [name for method, name in NAMES.items() if all(record["method"] != method for record in records)]
    left_out = f" Left out: {', '.join(missing)}." if missing else ""
    points = ", ".join(f"{number:,}" for number in sorted({record["points"] for record in records}))
    return (
        f"{tuned} functions that defaults were tuned on, {held} that were held back; noise of {NOISE} standard deviations of f "
        f"unless said; {points} new points; defaults, 95 %. Boosting has {size.TREES:,} trees, the forest 100 of at most "
        f"{size.ROWS_OF_A_TREE:,} rows.{left_out} An oracle's width is {size.ORACLE} times the RMSE. Where a function was "
        "measured on a CPU and on a GPU, the tables by function show the GPU. "
        f"*Away* is more than {NEAR_A_JUMP} from a jump."
    )


def verdicts(records: Sequence[Record]) -> str:
    """What was asked for, and how often it is so."""
    ours, boosting = preferred(records, "unseed"), preferred(records, "lightgbm")
    covered = [record["coverage"] for record in ours.values()]
    lines = [
        f"* The truth is covered at {LEAST} of the points or more in {sum(map(LEAST.__le__, covered))} of {len(covered)} cells."
    ]
    for rows in sizes(records):
        both = [key for key in ours if key in boosting and key[1] == rows]
        if both:
            better = sum(ours[key]["rmse_over_sd"] <= BETTER * boosting[key]["rmse_over_sd"] for key in both)
            lines.append(f"* {rows:,} rows: RMSE is at most {BETTER} of LightGBM's on {better} of {len(both)} functions.")
    smooth = {problem.name for problem in PROBLEMS.values() if problem.is_smooth}
    for rows in sizes(records):
        pairs = [(ours[name, rows], ours[name, 10 * rows]) for name in smooth if {(name, rows), (name, 10 * rows)} <= set(ours)]
        if pairs:
            falls = sum(more["rmse_over_sd"] <= FALL * fewer["rmse_over_sd"] for fewer, more in pairs)
            lines.append(
                f"* From {rows:,} to {10 * rows:,} rows RMSE falls to at most {FALL} of what it was on {falls} of {len(pairs)} "
                "smooth functions."
            )
    return "\n".join(lines)


def summary_line(rows: int, method: str, machine: str, records: Sequence[Record]) -> list[str]:
    held = [record["coverage"] for record in records if "coverage" in record]
    widths = [record["width_over_oracle"] for record in records if "coverage" in record]
    added = [record["added_bytes"] for record in records if record["added_bytes"] is not None]
    on_gpu = [record["gpu_peak_bytes"] for record in records if "gpu_peak_bytes" in record]
    coverage = (
        [share(mean(held)), share(min(held)), f"{sum(value >= LEAST for value in held)} of {len(held)}"] if held else ["–"] * 3
    )
    return [
        *(f"{rows:,}", NAMES[method], machine, str(len(records)), *coverage),
        f"{geometric(widths):.2f}" if widths else "–",
        number(geometric([record["rmse_over_sd"] for record in records])),
        *(number(choose(record["fit_seconds"] for record in records)) for choose in (median, max)),
        number(median(record["predict_seconds"] for record in records)),
        *(f"{max(n_bytes) / 1e9:.2f}" if n_bytes else "–" for n_bytes in (added, on_gpu)),
    ]


def summary_table(records: Sequence[Record]) -> str:
    """One line for each number of rows, method and machine."""
    keys = dict.fromkeys(
        (rows, method, record["machine"])
        for rows in sizes(records)
        for method in NAMES
        for record in records
        if record["method"] == method and record["rows"] == rows
    )
    lines = [
        summary_line(*key, [one for one in records if (one["rows"], one["method"], one["machine"]) == key]) for key in keys
    ]
    head = ["rows", "method", "machine", "functions", "coverage, mean", "at worst", f"cells ≥ {LEAST}", "width / oracle"]
    head += ["RMSE / sd", "fit, s: median", "at most", "prediction, s", "memory of a fit beyond the data, GB", "of the GPU, GB"]
    return markdown_table(head, lines)


def label(problem: Problem) -> str:
    remarks = ", ".join(filter(None, ["" if problem.is_tuned_on else "held back", problem.remark]))
    return f"{problem.name} ({remarks})" if remarks else problem.name


def interval_entry(record: Record | None) -> str:
    if record is None:
        return ""
    away = record.get("coverage_away_from_jumps")
    aside = "" if away is None else f", away {share(away)}"
    held = share(record["coverage"])
    return f"{held if record['coverage'] >= LEAST else f'**{held}**'}{aside} · {record['width_over_oracle']:.2f}"


def interval_table(records: Sequence[Record]) -> str:
    """Coverage and width, function by function."""
    ours = preferred(records, "unseed")
    head = ["function", "d", *(f"{rows:,} rows" for rows in sizes(list(ours.values())))]
    return markdown_table(
        head,
        [
            [label(problem), str(problem.dimension)]
            + [interval_entry(ours.get((problem.name, rows))) for rows in sizes(list(ours.values()))]
            for problem in PROBLEMS.values()
            if any(name == problem.name for name, _ in ours)
        ],
        left=1,
    )


def error_table(records: Sequence[Record]) -> str:
    """RMSE over the standard deviation of f, all methods in one entry, the best in bold."""
    methods = [method for method in NAMES if any(record["method"] == method for record in records)]
    by_method = {method: preferred(records, method) for method in methods}
    lines = []
    for problem in PROBLEMS.values():
        entries = []
        for rows in sizes(records):
            errors = {
                method: cells[problem.name, rows]["rmse_over_sd"]
                for method, cells in by_method.items()
                if (problem.name, rows) in cells
            }
            shown = {method: number(error) for method, error in errors.items()}
            best = min(errors, key=errors.__getitem__, default=None)
            entries.append(" / ".join(f"**{shown[best]}**" if method == best else shown.get(method, "–") for method in methods))
        if any(set(entry) - set("– /") for entry in entries):
            lines.append([label(problem), *entries])
    order = " / ".join(NAMES[method] for method in methods)
    return f"RMSE over the standard deviation of f: {order}.\n\n" + markdown_table(
        ["function", *(f"{rows:,} rows" for rows in sizes(records))], lines, left=1
    )


def block(path: Path = size.OUT) -> str:
    """All of it."""
    records = found(path)
    if not records:
        return "Not measured yet: `python benchmarks/size.py` does it."
    parts = [conditions(records), summary_table(records)]
    if preferred(records, "unseed"):
        intervals = "Coverage of the truth · width over an oracle's:\n\n" + interval_table(records)
        parts = [parts[0], verdicts(records), parts[1], intervals]
    pictures = "\n\n".join(f"![{words}](images/{name})" for name, words in PICTURES.items())
    return "\n\n".join([*parts, error_table(records), pictures])


# Pictures


def draw_coverage(records: Sequence[Record]) -> Figure:
    """A dot for each function, beside one another at each number of rows; those held back are hollow."""
    figure = Figure(figsize=(8, 3.8), layout="constrained")
    ours = preferred(records, "unseed")
    every = sizes(list(ours.values()))
    quantities = {"coverage": "coverage of the truth", "width_over_oracle": "width over an oracle's"}
    for ax, (quantity, words) in zip(figure.subplots(1, 2), quantities.items(), strict=True):
        for place, rows in enumerate(every):
            at = [record for (_, n), record in sorted(ours.items()) if n == rows]
            for shift, record in zip(spread_out(len(at)), at, strict=True):
                fill = ON_LIGHT.mean if PROBLEMS[record["function"]].is_tuned_on else "white"
                ax.plot(place + shift, record[quantity], "o", ms=4.5, mec=ON_LIGHT.mean, mfc=fill)
            average = mean if quantity == "coverage" else geometric
            middle = average([record[quantity] for record in at])
            ax.plot([place - 0.36, place + 0.36], [middle, middle], color=ON_LIGHT.observed, lw=2)
        ax.axhline(LEVEL if quantity == "coverage" else 1, color=ON_LIGHT.aside, lw=1)
        ax.set_xticks(range(len(every)), [f"{rows:,}" for rows in every])
        ax.set(xlabel="rows", title=words)
        ax.spines[["top", "right"]].set_visible(False)
    key = figure.axes[1]
    key.plot([], [], "o", ms=4.5, color=ON_LIGHT.mean, label="tuned on")
    key.plot([], [], "o", ms=4.5, mec=ON_LIGHT.mean, mfc="white", label="held back")
    key.plot([], [], color=ON_LIGHT.observed, lw=2, label="mean (of widths: geometric)")
    figure.legend(*key.get_legend_handles_labels(), frameon=False, fontsize=8, loc="outside lower center", ncols=3)
    return figure


def spread_out(count: int) -> list[float]:
    """Places around zero, so that dots do not cover each other."""
    return [0.6 * (place / max(1, count - 1) - 0.5) for place in range(count)]


def draw_errors(records: Sequence[Record]) -> Figure:
    """Small multiples, one for each function, with one scale."""
    names = [name for name in PROBLEMS if any(record["function"] == name for record in records)]
    columns = 4
    rows_of_axes = math.ceil((len(names) + 1) / columns)  # the last place is the legend's
    figure = Figure(figsize=(8, 1.75 * rows_of_axes), layout="constrained")
    axes = figure.subplots(rows_of_axes, columns, sharex=True, sharey=True, squeeze=False).ravel()
    by_method = {method: preferred(records, method) for method in NAMES}
    for ax, name in zip(axes, names, strict=False):
        for method, cells in by_method.items():
            line = sorted((rows, record["rmse_over_sd"]) for (function, rows), record in cells.items() if function == name)
            if line:
                ax.plot(*zip(*line, strict=True), "o-", color=COLOURS[method], ms=3, lw=1.3, label=NAMES[method])
        ax.set_title(name, size=8, loc="left")
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=7)
    for ax in axes[len(names) :]:
        ax.set_axis_off()
    logarithmic(axes[0].xaxis, sizes(records))
    logarithmic(axes[0].yaxis, decades([record["rmse_over_sd"] for record in records]))
    for ax in axes[: len(names)]:
        ax.tick_params(axis="x", rotation=45, labelbottom=names[-columns:].count(ax.get_title(loc="left")) > 0)
    lines = {name: line for ax in axes for line, name in zip(*ax.get_legend_handles_labels(), strict=True)}
    axes[-1].legend(lines.values(), lines.keys(), frameon=False, loc="center", fontsize=8)
    figure.supylabel("RMSE over the standard deviation of f", size=9)
    return figure


def draw_seconds(records: Sequence[Record]) -> Figure:
    """Median over the functions of what a fit and its predictions take."""
    figure = Figure(figsize=(6.5, 3.8), layout="constrained")
    ax = figure.subplots()
    every = []
    for method, machine in dict.fromkeys((record["method"], record["machine"]) for record in records):
        of_method = [record for record in records if (record["method"], record["machine"]) == (method, machine)]
        seconds = [
            median(one["fit_seconds"] + one["predict_seconds"] for one in of_method if one["rows"] == rows)
            for rows in sizes(of_method)
        ]
        every += seconds
        style = "o--" if of_method[0]["device"] == "cuda" else "o-"
        ax.plot(sizes(of_method), seconds, style, color=COLOURS[method], ms=4, label=f"{NAMES[method]}, {machine}")
    logarithmic(ax.xaxis, sizes(records))
    logarithmic(ax.yaxis, decades(every))
    ax.set(xlabel="rows", ylabel="seconds, fit and prediction")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8)
    return figure


def draw(folder: Path, path: Path = size.OUT) -> None:
    """All plots, where there is something to be drawn."""
    records = found(path)
    figures = {"size_error.png": draw_errors, "size_seconds.png": draw_seconds, "size_coverage.png": draw_coverage}
    for name, make in figures.items() if records else ():
        make(records).savefig(folder / name, dpi=130)
