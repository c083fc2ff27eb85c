"""Write the tables of docs/results.md from results/*.json: no figure on that page is typed by hand.

python benchmarks/results_page.py            refresh the page
python benchmarks/results_page.py --check    say whether it is up to date

Summaries come from records: `unseed reproduce … --out FOLDER` writes them, and they are copied here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from marked import Blocks, markdown_table, write

ROOT = Path(__file__).parent.parent
PAGE, RESULTS = ROOT / "docs" / "results.md", ROOT / "results"
PROTOCOLS = ("paper", "authors-code", "default")


def rows_of(name: str, method: str) -> dict[tuple, dict[str, Any]]:
    """Rows of a summary by their keys; empty where there is no such summary."""
    path = RESULTS / f"summary.{name}.json"
    if not path.exists():
        return {}
    rows = json.loads(path.read_text())["rows"]
    return {_key(row): row for row in rows if row["method"] == method}


def _key(row: dict[str, Any]) -> tuple:
    return (row["d"], row["n"]) if "d" in row else (row["dataset"], row["test"])


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def coverage(ours: dict[str, Any]) -> str:
    return f"{ours['cr95']:.3f} ({ours['cr95_low']:.3f}–{ours['cr95_high']:.3f})"


def widths_of_the_authors(table: str) -> str:
    """Closed form and trained networks against the printed widths."""
    head = ["d", "n", "method", "printed width", "closed form / printed", "networks / printed", "networks / closed form"]
    head += ["CR printed", "CR closed form", "over the domain", "CR of h*", "J", "J networks"]
    lines = []
    for method in ("pnc_batching", "pnc_cheap_bootstrap"):
        kernel, network = (rows_of(f"{table}.authors-code.{engine}", method) for engine in ("kernel", "network"))
        for key, row in kernel.items():
            ours, theirs, trained = row["ours"], row["theirs"], network.get(key)
            both = trained["ours"]["iw95"] / ours["iw95"] if trained else None
            error = both * (trained["ours"]["iw95_se"] / trained["ours"]["iw95"]) if trained else None
            line = [*map(str, key), method, number(theirs["iw95"]), f"{ours['iw95'] / theirs['iw95']:.2f}"]
            line.append(f"{trained['ours']['iw95'] / theirs['iw95']:.2f}" if trained else "")
            line.append(f"{both:.2f} ± {error:.2f}" if both else "")
            line += [number(theirs["cr95"]), coverage(ours), number(ours["domain_cr95"])]
            line += [f"{ours['cr95_target']:.3f}", str(row["repetitions"])]
            lines.append([*line, str(trained["repetitions"]) if trained else ""])
    return markdown_table(head, lines)


def algorithm_3(table: str) -> str:
    """One resample for base and auxiliary network, under the authors' budget."""
    head = ["d", "n", "J", "width", "over the printed one", "CR of f(x0)", "CR over the domain", "CR of h*"]
    printed = rows_of(f"{table}.authors-code.kernel", "pnc_cheap_bootstrap")
    lines = []
    for key, row in rows_of(f"{table}.authors-code.kernel", "algorithm_3").items():
        ours = row["ours"]
        ratio = f"{ours['iw95'] / printed[key]['theirs']['iw95']:.2f}"
        line = [*map(str, key), str(row["repetitions"]), number(ours["iw95"]), ratio, coverage(ours)]
        lines.append([*line, number(ours["domain_cr95"]), f"{ours['cr95_target']:.3f}"])
    return markdown_table(head, lines)


def default_intervals(table: str) -> str:
    """What a user gets, and the narrowest printed width beside it."""
    head = ["d", "n", "J", "CR 95 %", "CR 90 %", "width", "narrowest printed", "CR over the domain", "worst 5 % of points"]
    batching = rows_of(f"{table}.default.kernel", "pnc_batching")
    lines = []
    for key, row in rows_of(f"{table}.default.kernel", "auto").items():
        ours, theirs = row["ours"], batching[key]["theirs"]
        line = [*map(str, key), str(row["repetitions"]), coverage(ours), f"{ours['cr90']:.3f}", number(ours["iw95"])]
        lines.append([*line, number(theirs["iw95"]), f"{ours['domain_cr95']:.3f}", f"{ours['domain_worst95']:.3f}"])
    return markdown_table(head, lines)


def coverage_of_both_targets(table: str) -> str:
    """Protocol of the text: the theorems' target is covered, the truth is not."""
    head = ["d", "n", "method", "J", "width", "printed", "CR of f(x0)", "CR of h*(x0)", "CR of f, domain", "CR of h*, domain"]
    lines = []
    for method in ("pnc_batching", "pnc_cheap_bootstrap", "sectioning", "half_sampling", "dropout_uq"):
        for key, row in rows_of(f"{table}.paper.kernel", method).items():
            ours, theirs = row["ours"], row["theirs"]
            figures = ("cr95", "cr95_target", "domain_cr95", "domain_target95")
            lines.append(
                [*map(str, key), method, str(row["repetitions"]), number(ours["iw95"]), number(theirs.get("iw95"))]
                + [f"{ours[name]:.3f}" for name in figures]
            )
    return markdown_table(head, lines)


def errors(table: str) -> str:
    """Mean square error of PNC and of the best ensemble, in every protocol, beside the printed ones."""
    runs = [(protocol, "kernel") for protocol in PROTOCOLS] + [("authors-code", "network")]
    methods = ("base_network", "deep_ensemble_5", "pnc")
    found = {(run, method): rows_of(f"{table}.{'.'.join(run)}", method) for run in runs for method in methods}
    runs = [run for run in runs if found[run, "pnc"]]
    first = found[runs[0], "pnc"] if runs else {}
    head = ["d", "n"] if first and isinstance(next(iter(first))[0], int) else ["data", "split"]
    head += ["printed: base / ensemble of 5 / PNC", *(f"{protocol}, {engine}" for protocol, engine in runs)]
    lines = []
    for key in first:
        line = [*map(str, key), " / ".join(number(found[runs[0], m][key]["theirs"]["mean"]) for m in methods)]
        for run in runs:
            cells = [found[run, method].get(key) for method in methods]
            line.append(" / ".join(number(cell["ours"]["mean"]) for cell in cells) if all(cells) else "")
        lines.append(line)
    return markdown_table(head, lines)


def real_intervals() -> str:
    """Table 5: every protocol beside the print."""
    runs = [("authors-code", "network"), ("authors-code", "kernel"), ("paper", "kernel"), ("default", "kernel")]
    head = ["data", "test", "method", "printed CR / width"]
    head += [f"{protocol}, {engine}: CR / width / held-out CR" for protocol, engine in runs]
    lines = []
    for method in ("pnc_batching", "pnc_cheap_bootstrap"):
        columns = [rows_of(f"table-5.{'.'.join(run)}", method) for run in runs]
        for key in next((column for column in columns if column), {}):
            theirs = next(column[key]["theirs"] for column in columns if key in column)
            line = [*map(str, key), method, f"{theirs['cr95']:.3g} / {theirs['iw95']:.3g}"]
            for column in columns:
                ours = column[key]["ours"] if key in column else None
                line.append(f"{ours['cr95']:.2f} / {ours['iw95']:.3g} / {ours['domain_cr95']:.2f}" if ours else "")
            lines.append(line)
    for key, row in rows_of("table-5.default.kernel", "auto").items():
        ours = row["ours"]
        lines.append(
            [*map(str, key), "auto", "", "", "", "", f"{ours['cr95']:.2f} / {ours['iw95']:.3g} / {ours['domain_cr95']:.2f}"]
        )
    return markdown_table(head, lines)


def searched_intervals() -> str:
    """Table 3: the authors' time, and the time at which the centre is the printed midpoint."""
    head = ["d", "n", "method", "printed CR / width / MP", "time 0.8 (authors): CR / width / MP", "matching time"]
    head += ["there: CR / width / MP", "best CR later than 1"]
    lines = []
    for row in _search()["intervals"]:
        printed, authors, matching = (
            " / ".join(number(figures[name]) for name in ("cr95", "iw95", "mp")) if figures else "never"
            for figures in (row["printed"], row["authors_budget"], row["matching"])
        )
        time = number(row["matching"]["time"]) if row["matching"] else ""
        later = f"{row['best_coverage_after_1']:.2f}"
        lines.append([str(row["d"]), str(row["n"]), row["method"], printed, authors, time, matching, later])
    return markdown_table(head, lines)


def searched_errors() -> str:
    """Tables 2 and 4: training time at which PNC's error falls to the printed one."""
    found = {(row["table"], row["d"], row["n"]): row for row in _search()["errors"]}
    sizes = sorted({n for _, _, n in found})
    head = ["table", "d", *(f"n = {n}" for n in sizes)]
    lines = []
    for table, d in dict.fromkeys((table, d) for table, d, _ in found):
        times = [found[table, d, n]["time"] for n in sizes]
        lines.append([table, str(d), *("never" if time is None else number(time) for time in times)])
    return markdown_table(head, lines)


def _search() -> dict[str, Any]:
    return json.loads((RESULTS / "budget-search.json").read_text())


BLOCKS: Blocks = {
    "authors table-1": lambda: widths_of_the_authors("table-1"),
    "authors table-3": lambda: widths_of_the_authors("table-3"),
    "algorithm-3 table-1": lambda: algorithm_3("table-1"),
    "search intervals": searched_intervals,
    "search errors": searched_errors,
    "default table-1": lambda: default_intervals("table-1"),
    "default table-3": lambda: default_intervals("table-3"),
    "paper table-1": lambda: coverage_of_both_targets("table-1"),
    "paper table-3": lambda: coverage_of_both_targets("table-3"),
    "errors table-2": lambda: errors("table-2"),
    "errors table-4": lambda: errors("table-4"),
    "errors table-6": lambda: errors("table-6"),
    "real table-5": real_intervals,
}


if __name__ == "__main__":
    write(PAGE, BLOCKS)
