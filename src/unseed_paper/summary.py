"""From records to the figures of a table: nothing here depends on when or in which order they were computed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from unseed_paper.experiment import ERROR_METHODS, INTERVAL_METHODS, Experiment
from unseed_paper.printed import REAL_TABLES, printed_figures, printed_rows
from unseed_paper.problems import Setting
from unseed_paper.records import Record

_DIGITS = 10  # deep ensembles of networks trained to the end differ from PNC in the eighth digit
_WORST = 0.05
METHODS = (*INTERVAL_METHODS, *ERROR_METHODS)


def clopper_pearson(hits: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Exact bounds of a probability from so many hits in n independent trials.

    Examples
    --------
    >>> tuple(float(round(bound, 3)) for bound in clopper_pearson(95, 100))
    (0.887, 0.984)
    """
    from scipy.stats import binomtest

    bounds = binomtest(hits, n).proportion_ci(level, method="exact")
    return float(bounds.low), float(bounds.high)


def summarise(experiment: Experiment, records: Iterable[Record]) -> dict[str, Any]:
    """Everything that is recorded of a table under a protocol with an engine, but for times."""
    if experiment.table == "table-7":
        return {"command": experiment.command, "table": experiment.table, "rows": _bounds_rows()}
    everything = Experiment(experiment.table, experiment.protocol, experiment.engine)
    groups = _by_setting_and_method(records)
    rows = []
    make = _interval_rows if experiment.is_about_intervals else _error_rows
    for setting in everything.settings:
        for method in METHODS:
            found = groups.get((setting.name, method), [])
            if found:
                rows.extend(make(everything, setting, method, found))
    versions = sorted({tuple(r["versions"].items()) for found in groups.values() for r in found})
    return {
        "command": "; ".join(_commands(everything, groups)),
        "table": experiment.table,
        "protocol": experiment.protocol,
        "engine": experiment.engine,
        "seeds": "those of every data set and method follow from setting and repetition; see the records",
        "versions": [dict(items) for items in versions],
        "rows": rows,
    }


def _commands(everything: Experiment, groups: dict[tuple[str, str], list[Record]]) -> list[str]:
    """Commands that make such records: one for each number of repetitions."""
    settings = [setting for setting in everything.settings if any(name == setting.name for name, _ in groups)]
    by_number: dict[int, list[str]] = defaultdict(list)
    for method in METHODS:
        numbers = [len(groups[s.name, method]) for s in settings if (s.name, method) in groups]
        if numbers:
            by_number[min(numbers)].append(method)
    kept: dict[str, Any] = {}
    if everything.table not in REAL_TABLES:
        rows = [setting.rows[0] for setting in settings]
        kept = {"sizes": tuple({row["n"] for row in rows}), "dimensions": tuple({row["d"] for row in rows})}
    name = (everything.table, everything.protocol, everything.engine)
    return [Experiment(*name, number, tuple(methods), **kept).command for number, methods in sorted(by_number.items())]


def times(records: Iterable[Record]) -> dict[tuple[str, str], float]:
    """Median seconds of each setting and method."""
    groups = _by_setting_and_method(records)
    return {key: float(np.median([r["seconds"] for r in found])) for key, found in groups.items()}


def domain_coverage(records: Iterable[Record]) -> dict[tuple[str, str], npt.NDArray[np.float64]]:
    """Coverage of the truth at every point of the domain, for each setting and method."""
    groups = _by_setting_and_method(records)
    return {key: _flags(found, "domain_covered_95").mean(axis=0) for key, found in groups.items()}


def _by_setting_and_method(records: Iterable[Record]) -> dict[tuple[str, str], list[Record]]:
    groups = defaultdict(list)
    for record in records:
        groups[record["setting"], record["method"]].append(record)
    return {key: sorted(found, key=lambda r: r["repetition"]) for key, found in groups.items()}


def _interval_rows(experiment: Experiment, setting: Setting, method: str, found: list[Record]) -> list[dict[str, Any]]:
    columns = {name: np.array([r[name] for r in found]) for name in ("truth", "centre", "half_width_95", "half_width_90")}
    off = np.abs(columns["centre"] - columns["truth"])  # (J, n_own)
    domain = _domain_figures(found)
    rows = []
    for point, row in enumerate(setting.rows):
        figures: dict[str, Any] = {}
        for level in ("95", "90"):
            half = columns[f"half_width_{level}"][:, point]
            hits = int((off[:, point] <= half).sum())
            low, high = clopper_pearson(hits, len(found))
            figures |= {f"cr{level}": hits / len(found), f"cr{level}_low": low, f"cr{level}_high": high}
            figures |= {f"iw{level}": float(2 * half.mean()), f"iw{level}_se": _standard_error(2 * half)}
        figures["mp"] = float(columns["centre"][:, point].mean())
        figures["truth"] = float(columns["truth"][0, point])
        if found[0]["target"] is not None:
            target = np.array([r["target"][point] for r in found])
            hits = int((np.abs(columns["centre"][:, point] - target) <= columns["half_width_95"][:, point]).sum())
            low, high = clopper_pearson(hits, len(found))
            figures |= {"target": float(target[0]), "cr95_target": hits / len(found)}
            figures |= {"cr95_target_low": low, "cr95_target_high": high}
        rows.append(_row(experiment, row, method, found, figures | domain))
    return rows


def _domain_figures(found: list[Record]) -> dict[str, Any]:
    covered = _flags(found, "domain_covered_95")
    by_point = np.sort(covered.mean(axis=0))
    figures = {
        "domain_cr95": float(covered.mean()),
        "domain_cr90": float(_flags(found, "domain_covered_90").mean()),
        "domain_worst95": float(by_point[: max(1, round(_WORST * len(by_point)))].mean()),
        "domain_iw95": float(np.mean([r["domain_width_95"] for r in found])),
    }
    if found[0]["domain_target_95"] is not None:
        figures["domain_target95"] = float(_flags(found, "domain_target_95").mean())
    return figures


def _error_rows(experiment: Experiment, setting: Setting, method: str, found: list[Record]) -> list[dict[str, Any]]:
    errors = np.array([r["mse"] for r in found])
    over_seeds = [r["mse_over_seeds"] for r in found]
    figures = {
        "mean": float(errors.mean() if None in over_seeds else np.mean(over_seeds)),
        "sd": float(errors.std(ddof=1)) if len(errors) > 1 else 0.0,
        "mean_of_draws": float(errors.mean()),
    }
    return [_row(experiment, setting.rows[0], method, found, figures)]


def _row(
    experiment: Experiment, keys: dict[str, Any], method: str, found: list[Record], figures: dict[str, Any]
) -> dict[str, Any]:
    theirs = printed_figures(experiment.table, keys, method)
    rounded = {name: _rounded(value) for name, value in figures.items()}
    about = {"method": method, "repetitions": len(found), "training": found[0]["training"]}
    return keys | about | {"ours": rounded, "theirs": theirs}


def _bounds_rows() -> list[dict[str, Any]]:
    rows = []
    for printed in printed_rows("table-7"):
        low, high = clopper_pearson(round(100 * printed["coverage"]), 100)
        ours = {"low": _rounded(low), "high": _rounded(high)}
        rows.append({"coverage": printed["coverage"], "ours": ours, "theirs": {k: printed[k] for k in ("low", "high")}})
    return rows


def _flags(found: list[Record], name: str) -> npt.NDArray[np.float64]:
    return np.array([[float(flag) for flag in r[name]] for r in found])


def _standard_error(values: npt.NDArray[np.float64]) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def _rounded(value: Any) -> Any:
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value
