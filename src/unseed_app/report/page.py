"""From a report's data to one HTML file: text is escaped, numbers go into a block of JSON, nothing is loaded."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FunctionLoader, StrictUndefined

from unseed._files import replaced
from unseed._progress import Progress
from unseed.errors import InvalidInputError
from unseed_app.report.content import Report, build, checked_rows
from unseed_app.report.outputs import Output

_SCRIPTS = ("dom.js", "charts.js", "intervals.js", "row.js", "table.js", "main.js")


def write_report(
    path: str | os.PathLike[str],
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    feature_names: Sequence[Any] | None = None,
    target_names: Sequence[Any] | None = None,
    row_labels: Sequence[Any] | None = None,
    categories: Mapping[str, Mapping[str, str]] | None = None,
    level: float = 0.95,
    source: str | None = None,
    cautions: Sequence[str] = (),
    verbose: bool = False,
) -> Path:
    """Write one HTML file that says how sure an estimator is about each row, and why.

    The file needs nothing else: it opens from disk, without a network. A file that is there already is replaced only when
    the new one is complete.

    Parameters
    ----------
    path : path of the file
    estimator : fitted estimator of unseed
        With intervals.
    X : array-like of shape (n_rows, n_features)
        Rows that were kept out of training.
    y : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
        What was observed there; without it the report has no accuracy and no calibration.
    feature_names, target_names, row_labels : sequence, optional
        What features, outputs and rows are called; by default as in the data frames, or numbers.
    categories : mapping, optional
        Features that several columns of 0 and 1 stand for: their names, and which column is which of their values, as in
        ``{"city": {"city_Bern": "Bern", "city_Rome": "Rome"}}``.
    level : float
        Of the intervals.
    source : str, optional
        The command or the file it comes from, shown under "How to reproduce".
    cautions : sequence of str
        Sentences that a reader should see first.
    verbose : bool
        Show how far it is.

    Returns
    -------
    Path
        Where it was written.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_diabetes
    >>> from unseed import MLP, PNCRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> reg = PNCRegressor(network=MLP(bias_scale=1.0), regularization=1.0, random_state=0).fit(X[:300], y[:300])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_report(f"{folder}/report.html", reg, X[300:], y[300:])
    ...     path.read_text(encoding="utf-8").startswith("<!doctype html>")
    True
    """
    target = Path(path)
    check_can_be_written(target)
    names = {"feature_names": feature_names, "target_names": target_names, "row_labels": row_labels, "categories": categories}
    rows = checked_rows(estimator, X, y, level, **names)
    write_page(target, build(estimator, rows, level, source, cautions, Progress(active=verbose)))
    return target


def check_can_be_written(path: Path) -> None:
    """Refuse a path whose folder is missing, or that is a folder, before anything is computed."""
    if not path.parent.is_dir():
        raise InvalidInputError(f"path={str(path)!r}: the folder {str(path.parent)!r} does not exist; make it first")
    if path.is_dir():
        raise InvalidInputError(f"path={str(path)!r} is a folder; give the name of a file, such as report.html")


def write_page(path: Path, content: Report) -> None:
    """Write the page; what stood there before is replaced at the very end."""
    text = render(content)
    with replaced(path, "path") as part:
        part.write_text(text, encoding="utf-8")


def in_short(content: Report) -> list[str]:
    """Accuracy of each output, and what does not hold, a line each."""
    known = [(output.name, output.accuracy) for output in content.outputs if output.accuracy is not None]
    lines = [
        f"{name}: RMSE {figure(accuracy.rmse)}; {100 * accuracy.inside:.1f} % of "
        f"{accuracy.n_rows:,} observed values are inside their {100 * content.level:g} % prediction intervals."
        for name, accuracy in known
    ]
    return lines + [f"Check: {one.sentence} What to do: {one.what_to_do}" for one in content.findings if not one.holds]


def render(report: Report) -> str:
    """The whole page."""
    script = "(() => {\n'use strict';\n" + "\n".join(map(_asset, _SCRIPTS)) + "})();\n"
    style = _asset("report.css")
    environment = Environment(
        loader=FunctionLoader(_asset), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"figure": figure, "median": np.median}
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":"), "default": plain}
    return environment.get_template("page.html").render(
        report=report,
        policy=f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; base-uri 'none'",
        style=style,
        script=script,
        payload=payload_of(report),
    )


def payload_of(report: Report) -> dict[str, Any]:
    """What the page's script draws."""
    shown = [report.rows.features[j] for j in report.shown]
    words: dict[str, Any] = plain(report.wording)
    return words | {
        "level": report.level,
        "labels": report.rows.row_labels,
        "features": [feature.name for feature in shown],
        "levels": [feature.levels for feature in shown],
        "x": report.rows.values.T[report.shown],
        "far": report.far_rows,
        "rowsWithSeeds": report.rows_with_seeds,
        "outputs": list(map(_drawn, report.outputs)),
    }


def _drawn(output: Output) -> dict[str, Any]:
    values: dict[str, Any] = plain(output)
    del values["accuracy"]  # the page has words for it
    values["error"] = values.pop("standardError")
    return values


def plain(value: Any) -> Any:
    """What JSON does not know: arrays, with six significant digits, and records, with names as JavaScript has them."""
    if not isinstance(value, np.ndarray):
        return {re.sub("_(.)", lambda found: found[1].upper(), name): one for name, one in vars(value).items()}
    if value.ndim > 1:
        return list(value)
    short = [float(f"{one:.6g}") for one in value.tolist()]
    return [int(one) if one.is_integer() and abs(one) < 1e15 else one for one in short]


def figure(value: float) -> str:
    """A number as people read it: three significant digits, a real minus sign.

    Examples
    --------
    >>> figure(-12345.678), figure(0.000123456)
    ('−12,346', '0.000123')
    """
    if value != 0 and not 1e-4 <= abs(value) < 1e7:
        text = f"{value:.2e}"
    else:
        text = f"{value:,.{0 if value == 0 else max(0, 2 - int(np.floor(np.log10(abs(value)))))}f}"
    return text.replace("-", "−")


def _asset(name: str) -> str:
    return files("unseed_app.report").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """What the page's own policy allows: this script and this style, and no other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode()
