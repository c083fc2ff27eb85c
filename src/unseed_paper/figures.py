"""Pictures of the reports: coverage and width against n, and where in the domain the truth is covered."""

from __future__ import annotations

from typing import Any

import numpy as np

from unseed_paper.experiment import Experiment
from unseed_paper.problems import Setting, Synthetic
from unseed_paper.records import Record
from unseed_paper.summary import domain_coverage

# Okabe and Ito's colours, told apart by the colour-blind; markers tell them apart in grey
_STYLES = {
    "auto": ("#000000", "o"),
    "pnc_batching": ("#0072B2", "s"),
    "pnc_cheap_bootstrap": ("#D55E00", "^"),
    "algorithm_3": ("#F0E442", "<"),
    "pnc_jackknife": ("#CC79A7", "v"),
    "sectioning": ("#009E73", "D"),
    "half_sampling": ("#56B4E9", "P"),
    "dropout_uq": ("#E69F00", "X"),
    "base_network": ("#D55E00", "^"),
    "pnc": ("#000000", "o"),
    "deep_ensemble_2": ("#56B4E9", "P"),
    "deep_ensemble_5": ("#0072B2", "s"),
}


def figures_of(experiment: Experiment, summary: dict[str, Any], records: list[Record]) -> list[tuple[str, Any]]:
    """Captions and figures."""
    if experiment.table == "table-7" or not summary["rows"]:
        return []
    synthetic = "d" in summary["rows"][0]
    if not experiment.is_about_intervals:
        return [("Mean square error against n; hollow: printed.", _against_n(summary, "mean"))] if synthetic else []
    figures = []
    if synthetic:
        caption = "Coverage of the truth at x0 against n, with Clopper–Pearson bars; dotted: nominal."
        figures = [(caption, _against_n(summary, "cr95"))]
        caption = "Width at x0 against n; hollow: printed; dotted: falling like 1/√n."
        figures.append((caption, _against_n(summary, "iw95")))
    caption = "Coverage of the truth over the domain (first two features), largest n of every row."
    everything = Experiment(experiment.table, experiment.protocol, experiment.engine)
    return [*figures, (caption, _maps(everything, records))]


def _against_n(summary: dict[str, Any], name: str) -> Any:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    rows = summary["rows"]
    dimensions = sorted({row["d"] for row in rows})
    figure, axes = plt.subplots(1, len(dimensions), figsize=(4.2 * len(dimensions), 4), sharey=name == "cr95", squeeze=False)
    for axis, d in zip(axes[0], dimensions, strict=True):
        for method in dict.fromkeys(row["method"] for row in rows):
            chosen = [row for row in rows if row["d"] == d and row["method"] == method]
            if chosen:
                _draw(axis, chosen, method, name)
        axis.set(xscale="log", xlabel="n", title=f"d = {d}")
        sizes = sorted({row["n"] for row in rows})
        axis.set_xticks(sizes, [str(n) for n in sizes])
        axis.minorticks_off()
        if name == "cr95":
            axis.axhline(0.95, color="grey", ls=":")
        else:
            axis.set_yscale("log")
    axes[0, 0].set_ylabel({"cr95": "coverage", "iw95": "width", "mean": "mean square error"}[name])
    axes[0, -1].legend(fontsize=8)
    figure.tight_layout()
    return figure


def _draw(axis: Any, rows: list[dict[str, Any]], method: str, name: str) -> None:
    colour, marker = _STYLES[method]
    n, values = np.array([row["n"] for row in rows]), np.array([row["ours"][name] for row in rows])
    if name == "cr95":
        shift = 1 + 0.04 * (list(_STYLES).index(method) - 3)  # bars beside, not on top of each other
        bars = np.abs(np.array([[row["ours"]["cr95_low"], row["ours"]["cr95_high"]] for row in rows]).T - values)
        axis.errorbar(n * shift, values, yerr=bars, color=colour, marker=marker, ls="-", lw=1, capsize=2, label=method)
        return
    axis.plot(n, values, color=colour, marker=marker, lw=1, label=method)
    printed = [(row["n"], row["theirs"][name]) for row in rows if name in row["theirs"]]
    if printed:
        axis.plot(*zip(*printed, strict=True), color=colour, marker=marker, mfc="none", ls="none", ms=9)
    if name == "iw95":
        axis.plot(n, values[0] * np.sqrt(n[0] / n), color=colour, ls=":", lw=0.8)


def _maps(experiment: Experiment, records: list[Record]) -> Any:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    coverage = domain_coverage(records)
    settings = _largest([setting for setting in experiment.settings if any(name == setting.name for name, _ in coverage)])
    methods = [m for m in _STYLES if any((s.name, m) in coverage for s in settings)]
    shape = (len(settings), len(methods))
    figure, axes = plt.subplots(*shape, figsize=(2.6 * shape[1] + 1, 2.5 * shape[0]), squeeze=False, layout="constrained")
    dots = None
    for line, setting in zip(axes, settings, strict=True):
        places = setting.places()
        X = places.X[places.n_own :]
        for axis, method in zip(line, methods, strict=True):
            found = coverage.get((setting.name, method))
            axis.set_title(f"{method}\n{setting.name}", fontsize=7)
            axis.tick_params(labelsize=6)
            if found is not None:
                dots = axis.scatter(X[:, 0], X[:, 1], c=found, vmin=0, vmax=1, cmap="viridis", s=10)
    if dots is not None:
        figure.colorbar(dots, ax=axes, label="coverage of the truth", shrink=0.6)
    return figure


def _largest(settings: list[Setting]) -> list[Setting]:
    """For every dimension the setting with most rows; real data sets all."""
    by_kind = {(s.function, s.d) if isinstance(s, Synthetic) else s.name: s for s in sorted(settings, key=lambda s: s.n)}
    return [setting for setting in settings if setting in by_kind.values()]
