"""Writing a report: the whole file or none of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from unseed.errors import InvalidInputError
from unseed.report.content import Report, build
from unseed.report.held_out import HeldOut
from unseed.report.page import figure, render
from unseed.results import check_level


def write_report(
    path: str | os.PathLike[str],
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    feature_names: Sequence[Any] | None = None,
    target_names: Sequence[Any] | None = None,
    row_labels: Sequence[Any] | None = None,
    level: float = 0.95,
    source: str | None = None,
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
    level : float
        Of the intervals.
    source : str, optional
        The command or the file it comes from, shown under "How to reproduce".

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
    _write_whole(target, render(_asked(estimator, X, y, feature_names, target_names, row_labels, level, source)))
    return target


def report(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    out: Path,
    feature_names: Sequence[Any] | None = None,
    target_names: Sequence[Any] | None = None,
    row_labels: Sequence[Any] | None = None,
    level: float = 0.95,
    source: str | None = None,
    echo: Callable[[str], object] = print,
) -> None:
    """What ``unseed report`` does with a model and a table: write the page, and say in a few lines what is in it.

    Parameters are those of `write_report`; ``echo`` gets each line.
    """
    check_can_be_written(out)
    content = _asked(estimator, X, y, feature_names, target_names, row_labels, level, source)
    _write_whole(out, render(content))
    for line in _in_short(content):
        echo(line)
    echo(f"Report: {out} ({out.stat().st_size / 1e6:.2f} MB)")


def _asked(
    estimator: Any, X: Any, y: Any, features: Any, targets: Any, labels: Any, level: float, source: str | None
) -> Report:
    check_level(level)
    check_is_fitted(estimator, "is_fitted_")
    rows = HeldOut.of(estimator, X, y, feature_names=features, target_names=targets, row_labels=labels)
    return build(estimator, rows, level, source)


def _in_short(content: Report) -> list[str]:
    """Accuracy of each output, and what does not hold."""
    lines = []
    for output in content.outputs:
        if output.accuracy is not None:
            lines.append(
                f"{output.name}: RMSE {figure(output.accuracy.rmse)}; {100 * output.accuracy.inside:.1f} % of "
                f"{output.accuracy.n_rows:,} observed values are inside their {100 * content.level:g} % prediction intervals."
            )
    return lines + [
        f"Check: {finding.sentence} What to do: {finding.advice}" for finding in content.findings if not finding.holds
    ]


def check_can_be_written(path: Path) -> None:
    """Refuse a path whose folder is missing, or that is a folder, before anything is computed."""
    if not path.parent.is_dir():
        raise InvalidInputError(f"path={str(path)!r}: the folder {str(path.parent)!r} does not exist; make it first")
    if path.is_dir():
        raise InvalidInputError(f"path={str(path)!r} is a folder; give the name of a file, such as report.html")


def _write_whole(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise InvalidInputError(f"path={str(path)!r} could not be written: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)
