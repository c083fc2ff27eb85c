"""Reports made from records: Markdown, and one HTML page with plots inside."""

from __future__ import annotations

import base64
import html
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unseed import replaced
from unseed_paper.experiment import Experiment
from unseed_paper.figures import figures_of
from unseed_paper.printed import REAL_TABLES, TITLES
from unseed_paper.records import Record
from unseed_paper.summary import times

METHOD_TITLES = {
    "auto": "unseed's default interval",
    "pnc_batching": "PNC batching",
    "pnc_cheap_bootstrap": "PNC cheap bootstrap",
    "algorithm_3": "PNC cheap bootstrap with one resample for both networks: Algorithm 3 as it is written",
    "pnc_jackknife": "PNC infinitesimal jackknife (training to convergence)",
    "sectioning": "Sectioning",
    "half_sampling": "Half sampling",
    "dropout_uq": "DropoutUQ, rate tuned to the width of the bootstrap",
    "base_network": "Base network",
    "pnc": "PNC",
    "deep_ensemble_2": "Deep ensemble of 2",
    "deep_ensemble_5": "Deep ensemble of 5",
}
_LEGEND = (
    "CR: coverage rate at the paper's own point, with Clopper–Pearson bounds; IW: mean width; MP: mean of the midpoints. "
    "Domain: averages over random points of the domain; worst 5 %: mean coverage of the twentieth part of them that is "
    "covered least. h*: what the same training makes of infinitely many data, the target of the paper's theorems. "
    "Seconds: median for one data set."
)
_ERROR_LEGEND = (
    "MSE: mean over data sets and, in closed form, over all seeds of the networks, so that PNC is smaller than the others by "
    "the seed's variance over the number of members. Drawn: mean and standard deviation with one seed for each data set."
)
_REAL_LEGEND = (
    "The paper does not print its test points, noise and splits: these are other points of the same data. Compare data sets, "
    "not rows. Labels stand for the truth, their own noise included, so no interval for a function can hold them all."
)


@dataclass(frozen=True)
class Table:
    """Rows of text under a title."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def to_markdown(self) -> str:
        """As a Markdown table."""
        lines = [self.columns, ["---:"] * len(self.columns), *self.rows]
        return f"### {self.title}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"

    def to_html(self) -> str:
        """As an HTML table."""
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>\n" for row in self.rows)
        table = f"<table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>"
        return f"<h2>{html.escape(self.title)}</h2>\n<div>{table}</div>"


def write_reports(experiment: Experiment, summary: dict[str, Any], records: list[Record], out: Path) -> None:
    """``report.<experiment>.md`` and ``report.<experiment>.html``."""
    tables = tables_of(experiment, summary, records)
    notes = [f"Command: `{summary['command']}`"]
    if experiment.table != "table-7":
        notes += [f"Protocol `{experiment.protocol}`: {experiment.rules.description}", f"Engine: {experiment.engine}."]
    if experiment.is_about_intervals:
        notes.append(_LEGEND)
    elif experiment.engine == "kernel" and experiment.table != "table-7":
        notes.append(_ERROR_LEGEND)
    if experiment.table in REAL_TABLES:
        notes.append(_REAL_LEGEND)
    title = f"{experiment.table.capitalize().replace('-', ' ')}: {TITLES[experiment.table]}"
    text = "\n\n".join([f"# {title}", *notes, *(table.to_markdown() for table in tables)])
    write_whole(out / f"report.{experiment.name}.md", text)
    pictures = [(caption, _as_png(figure)) for caption, figure in figures_of(experiment, summary, records)]
    write_whole(out / f"report.{experiment.name}.html", _page(title, notes, tables, pictures))


def write_whole(path: Path, text: str) -> None:
    """The whole file or none of it, whatever happens in between."""
    with replaced(path) as part:
        part.write_text(text, encoding="utf-8")


def tables_of(experiment: Experiment, summary: dict[str, Any], records: list[Record]) -> list[Table]:
    """One table for each method, or one for all where there is little to say."""
    rows = summary["rows"]
    if experiment.table == "table-7":
        columns = ["CR", "low", "printed", "high", "printed"]
        pairs = [(r["coverage"], r["ours"], r["theirs"]) for r in rows]
        cells = [
            [f"{c:.2f}", _number(o["low"]), _number(t["low"]), _number(o["high"]), _number(t["high"])] for c, o, t in pairs
        ]
        return [Table("Bounds", columns, cells)]
    seconds = times(records)
    everything = Experiment(experiment.table, experiment.protocol, experiment.engine)
    names = {tuple(row.values()): setting.name for setting in everything.settings for row in setting.rows}
    found = [method for method in METHOD_TITLES if any(row["method"] == method for row in rows)]
    make = _interval_table if experiment.is_about_intervals else _error_table
    return [make(method, [row for row in rows if row["method"] == method], names, seconds) for method in found]


Names = dict[tuple[Any, ...], str]
Seconds = dict[tuple[str, str], float]


def _interval_table(method: str, rows: list[dict[str, Any]], names: Names, seconds: Seconds) -> Table:
    keys = _keys(rows[0])
    columns = [*keys, "J", "training", "CR 95 %", "printed", "IW 95 %", "printed", "ratio", "CR 90 %", "printed", "IW 90 %"]
    columns += ["printed", "ratio", "MP", "printed", "truth", "domain CR 95 %", "domain IW", "worst 5 %", "CR of h*"]
    columns += ["domain CR of h*", "seconds"]
    cells = []
    for row in rows:
        ours, theirs = row["ours"], row["theirs"]
        line = [*(str(row[key]) for key in keys), str(row["repetitions"]), _training(row["training"])]
        for level in ("95", "90"):
            line += [_rate(ours, f"cr{level}"), _number(theirs.get(f"cr{level}"))]
            line += _compared(ours[f"iw{level}"], theirs.get(f"iw{level}"), is_same="d" in row)
        line += [_number(ours["mp"]), _number(theirs.get("mp")), _number(ours["truth"])]
        line += [_number(ours.get(name)) for name in ("domain_cr95", "domain_iw95", "domain_worst95")]
        line += [_rate(ours, "cr95_target"), _number(ours.get("domain_target95"))]
        cells.append([*line, _number(seconds.get((names[tuple(row[key] for key in keys)], method)))])
    return Table(METHOD_TITLES[method], columns, cells)


def _error_table(method: str, rows: list[dict[str, Any]], names: Names, seconds: Seconds) -> Table:
    keys = _keys(rows[0])
    columns = [*keys, "J", "training", "MSE", "drawn: mean ± sd", "printed", "ratio", "seconds"]
    cells = []
    for row in rows:
        ours, theirs = row["ours"], row["theirs"]
        mean, printed, ratio = _compared(ours["mean"], theirs.get("mean"), is_same="d" in row)
        if "sd" in theirs:
            printed += f" ± {theirs['sd']:.2g}"
        line = [*(str(row[key]) for key in keys), str(row["repetitions"]), _training(row["training"])]
        line += [mean, f"{ours['mean_of_draws']:.3g} ± {ours['sd']:.2g}", printed, ratio]
        cells.append([*line, _number(seconds.get((names[tuple(row[key] for key in keys)], method)))])
    return Table(METHOD_TITLES[method], columns, cells)


def _training(words: dict[str, float] | str) -> str:
    if isinstance(words, str):
        return words
    dropout = f", dropout {words['dropout']:.3g}" if "dropout" in words else ""
    return f"{words['steps']} × {words['rate']:.3g}{dropout}"


def _rate(ours: dict[str, Any], name: str) -> str:
    return f"{ours[name]:.3f} ({ours[f'{name}_low']:.3f}–{ours[f'{name}_high']:.3f})" if name in ours else ""


def _keys(row: dict[str, Any]) -> list[str]:
    return [name for name in ("d", "n", "dataset", "test") if name in row]


def _compared(ours: float, theirs: float | None, *, is_same: bool) -> list[str]:
    """Ours, theirs and the ratio, where both are of the same thing."""
    return [_number(ours), _number(theirs), f"{ours / theirs:.2f}" if theirs is not None and is_same else ""]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _as_png(figure: Any) -> str:
    import matplotlib.pyplot as plt

    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110, bbox_inches="tight")
    plt.close(figure)
    return base64.b64encode(buffer.getvalue()).decode()


_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 1400px; padding: 0 1rem; }
div { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px; }
th, td { padding: .2rem .6rem; text-align: right; white-space: nowrap; border-bottom: 1px solid #8884; }
figure { margin: 1.5rem 0; } img { max-width: 100%; background: white; } code { background: #8882; padding: .1rem .3rem; }
"""


def _with_code(text: str) -> str:
    return re.sub(r"`(.+?)`", r"<code>\1</code>", html.escape(text))


def _page(title: str, notes: list[str], tables: list[Table], pictures: list[tuple[str, str]]) -> str:
    paragraphs = "\n".join(f"<p>{_with_code(note)}</p>" for note in notes)
    images = "\n".join(
        f'<figure><img alt="{html.escape(caption)}" src="data:image/png;base64,{data}">'
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
        for caption, data in pictures
    )
    body = "\n".join(table.to_html() for table in tables)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<style>{_STYLE}</style></head>\n<body><h1>{html.escape(title)}</h1>\n{paragraphs}\n{images}\n{body}\n</body></html>\n"
    )
