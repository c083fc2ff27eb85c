"""Writing a report: the whole file or none of it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from unseed._files import replaced
from unseed._progress import Progress
from unseed._results import check_level
from unseed.errors import InvalidInputError
from unseed_app.report.content import Report, build
from unseed_app.report.held_out import HeldOut
from unseed_app.report.page import figure, render


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


def checked_rows(estimator: Any, X: Any, y: Any, level: float, **names: Any) -> HeldOut:
    """Rows of a report with their names, after everything that can be refused without computing has been."""
    check_level(level)
    check_is_fitted(estimator, "is_fitted_")
    return HeldOut.of(estimator, X, y, **names)


def in_short(content: Report) -> list[str]:
    """Accuracy of each output, and what does not hold, a line each."""
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


def write_page(path: Path, content: Report) -> None:
    """Write the page; what stood there before is replaced at the very end."""
    text = render(content)
    with replaced(path, "path") as part:
        part.write_text(text, encoding="utf-8")
