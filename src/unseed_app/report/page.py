"""From a report's data to one HTML page: text is escaped first, numbers go into a block of JSON, nothing is loaded."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np
import numpy.typing as npt

from unseed._findings import Finding
from unseed_app.report.content import Output, Report
from unseed_app.report.features import Band
from unseed_app.report.words import PARTS, PREDICTION_INTERVAL

_SCRIPTS = ("dom.js", "charts.js", "intervals.js", "row.js", "table.js", "main.js")


def render(report: Report) -> str:
    """The whole page."""
    script = "(() => {\n'use strict';\n" + "\n".join(map(_asset, _SCRIPTS)) + "})();\n"
    style = _asset("report.css")
    targets = ", ".join(output.name for output in report.outputs)
    pieces = {
        "title": escape(f"{targets}: how sure is it?"),
        "targets": escape(targets),
        "policy": f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; base-uri 'none'",
        "style": style,
        "script": script,
        "data": as_json(payload_of(report)),
        "summary": escape(_summary(report)),
        "choice": _choice(report),
        "warnings": _warnings(report),
        "headline": _headline(report),
        "facts": _definitions(report.facts),
        "percent": f"{100 * report.level:g} %",
        "target": escape(report.wording.target),
        "observation": PREDICTION_INTERVAL,
        "features_note": escape(report.order_of_features),
        "findings": _findings(report),
        "unknown": _list(report.unknown),
        "reproduction": _reproduction(report),
    }
    return Template(_asset("page.html")).substitute(pieces)


def payload_of(report: Report) -> dict[str, Any]:
    """The numbers that the page's script draws: columns, six significant digits, null for what is not known."""
    shown, wording = [report.rows.features[j] for j in report.shown], report.wording
    return {
        "level": report.level,
        "labels": report.rows.row_labels,
        "features": [feature.name for feature in shown],
        "levels": [feature.levels for feature in shown],
        "x": [_rounded(feature.values(report.rows.X)) for feature in shown],
        "far": None if report.far_rows is None else report.far_rows,
        "rowsWithSeeds": report.rows_with_seeds.tolist(),
        "spread": wording.spread,
        "spreadMeaning": wording.spread_meaning,
        "seedMeaning": wording.seed_meaning,
        "seedIsTakenOut": wording.seed_is_taken_out,
        "parts": PARTS,
        "outputs": [_output(report, output) for output in report.outputs],
    }


def _output(report: Report, output: Output) -> dict[str, Any]:
    position = {int(feature): place for place, feature in enumerate(report.shown)}
    coverage = output.coverage
    return {
        "name": output.name,
        "mean": _rounded(output.mean),
        "error": _rounded(output.standard_error),
        "confidence": _rounded(output.confidence),
        "prediction": _rounded(output.prediction),
        "seed": _rounded(output.seed),
        "noise": _rounded(output.noise),
        "parts": {name: _rounded(values) for name, values in output.parts.items() if values.any()},
        "observed": _rounded(output.observed),
        "coverage": None if coverage is None else {key: _rounded(value) for key, value in vars(coverage).items()},
        "bands": [_band(band, position[band.feature]) for band in output.bands],
        "reasons": {row: [[j, float(f"{share:.3g}")] for j, share in why] for row, why in output.reasons.items()},
        "draws": None if output.draws is None else [_rounded(draws) for draws in output.draws],
    }


def _band(band: Band, position: int) -> dict[str, Any]:
    columns = {key: _rounded(getattr(band, key)) for key in ("values", "mean", "low", "high")}
    return {"feature": position, "isDiscrete": band.is_discrete, "histogram": band.histogram.tolist(), **columns}


def _rounded(values: npt.NDArray[Any] | None) -> list[float | int] | None:
    """Six significant digits, whole numbers without a point."""
    if values is None:
        return None
    short = (float(f"{value:.6g}") for value in np.asarray(values, dtype=float).tolist())
    return [int(value) if value.is_integer() and abs(value) < 1e15 else value for value in short]


def as_json(data: object) -> str:
    r"""JSON that is safe inside ``<script>``: no tag, comment or line separator survives in it.

    Examples
    --------
    >>> as_json("</script>")
    '"\\u003c/script\\u003e"'
    """
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))  # ASCII: U+2028 and the like are escaped
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def figure(value: float, significant: int = 3) -> str:
    """A number as people read it: three significant digits, a real minus sign.

    Examples
    --------
    >>> figure(-12345.678), figure(0.000123456)
    ('−12,346', '0.000123')
    """
    if value != 0 and not 1e-4 <= abs(value) < 1e7:
        text = f"{value:.{significant - 1}e}"
    else:
        digits = 0 if value == 0 else max(0, significant - 1 - int(np.floor(np.log10(abs(value)))))
        text = f"{value:,.{digits}f}"
    return text.replace("-", "−")


def _asset(name: str) -> str:
    return files("unseed_app.report").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """What the page's own policy allows: this script and this style, and no other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode()


def _summary(report: Report) -> str:
    n = len(report.rows.row_labels)
    known = "with observed values" if report.rows.y is not None else "without observed values"
    trained = next((f", trained on {words}" for name, words in report.facts if name == "Trained on"), "")
    return f"{n:,} row{'s'[: n != 1]} {known}; {report.facts[0][1]}{trained}."


def _choice(report: Report) -> str:
    if len(report.outputs) == 1:
        return ""
    options = "".join(f'<option value="{k}">{escape(output.name)}</option>' for k, output in enumerate(report.outputs))
    return f'<p class="choice"><label for="output">Output shown</label> <select id="output">{options}</select></p>'


def _warnings(report: Report) -> str:
    items = "".join(f"<li><strong>{escape(sentence)}</strong></li>" for sentence in report.cautions)
    failing = [finding for finding in report.findings if not finding.holds]
    items += "".join(f"<li><strong>{escape(f.sentence)}</strong> What to do: {escape(f.advice)}</li>" for f in failing)
    if not items:
        return ""
    return f'<div class="callout" role="note"><h3>Before you rely on it</h3><ul>{items}</ul></div>'


def _headline(report: Report) -> str:
    if len(report.outputs) > 1:
        return _table_of_outputs(report)
    cards = "".join(
        f'<div class="card"><dt>{escape(name)}</dt><dd><span class="big">{escape(value)}</span> {escape(words)}</dd></div>'
        for name, value, words in _figures(report, report.outputs[0])
    )
    return f'<dl class="cards">{cards}</dl>'


def _table_of_outputs(report: Report) -> str:
    rows = [_figures(report, output) for output in report.outputs]
    names = [name for name, _, _ in max(rows, key=len)]
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in ["Output", *names])
    body = ""
    for output, cells in zip(report.outputs, rows, strict=True):
        values = {name: value for name, value, _ in cells}
        line = "".join(f"<td>{escape(values.get(name, '–'))}</td>" for name in names)
        body += f'<tr><th scope="row">{escape(output.name)}</th>{line}</tr>'
    caption = f"For each output; intervals are medians of half widths at {100 * report.level:g} %"
    return (
        f'<div class="scroll"><table class="outputs"><caption>{caption}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _figures(report: Report, output: Output) -> list[tuple[str, str, str]]:
    """Name, figure and words of the headline."""
    percent = f"{100 * report.level:g} %"
    figures = [("Function", f"± {figure(float(np.median(output.confidence)))}", f"{percent} confidence, median row")]
    if output.prediction is not None:
        median = figure(float(np.median(output.prediction)))
        figures.append(("New observation", f"± {median}", f"{percent} prediction interval, median row"))
    accuracy = output.accuracy
    if accuracy is not None:
        band = f"{100 * accuracy.inside_low:.1f} to {100 * accuracy.inside_high:.1f} %"
        words = f"{accuracy.n_inside:,} of {accuracy.n_rows:,} observed values; binomial band {band}"
        figures.append((f"Inside {percent} intervals", f"{100 * accuracy.inside:.1f} %", words))
        if accuracy.r_squared is not None:
            figures.append(("R²", figure(accuracy.r_squared), "share of the variation that is predicted"))
        figures.append(("RMSE", figure(accuracy.rmse), "root mean squared error"))
        figures.append(("MAE", figure(accuracy.mae), "mean absolute error"))
    if output.seed is not None:
        moved = figure(float(np.median(output.seed)))
        words = "moves a single network, median row; taken out here" if report.wording.seed_is_taken_out else "still in it"
        figures.append(("Another seed", f"± {moved}", words))
    return figures


def _definitions(pairs: Iterable[tuple[str, str]]) -> str:
    return "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(words)}</dd></div>" for name, words in pairs)


def _list(sentences: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences) + "</ul>"


def _findings(report: Report) -> str:
    if not report.findings:
        return "<p>There is no diagnosis for this kind of model.</p>"
    outlook = f"<p>{escape(report.outlook)}</p>" if report.outlook else ""
    return f'<ul class="findings">{"".join(map(_finding, report.findings))}</ul>{outlook}'


def _finding(finding: Finding) -> str:
    mark, kind = ("holds", "ok") if finding.holds else ("check", "check")
    advice = f" What to do: {escape(finding.what_to_do)}" if finding.what_to_do else ""
    return (
        f'<li class="{kind}"><span class="mark">{mark}</span> <span><strong>{escape(finding.sentence)}</strong>{advice} '
        f"<small>{escape(finding.figures)}</small></span></li>"
    )


def _reproduction(report: Report) -> str:
    made = report.reproduction
    blocks = []
    if made.source:
        blocks.append(f"<h3>Where it comes from</h3><pre><code>{escape(made.source)}</code></pre>")
    blocks.append(f"<h3>The estimator</h3><pre><code>{escape(made.constructor)}</code></pre>")
    if made.chosen:
        blocks.append(f"<h3>What was chosen from the data</h3><pre><code>{escape(made.chosen)}</code></pre>")
    versions = ", ".join(f"{name} {number}" for name, number in made.versions)
    blocks.append(f'<dl class="facts">{_definitions([("Seed", made.seed), ("Versions", versions)])}</dl>')
    return "".join(blocks)
