"""The demonstration: a real data set, held-out rows, intervals, and where their uncertainty comes from."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from unseed._estimators import PNCRegressor
from unseed._files import replaced
from unseed._results import FloatArray, Prediction, check_level
from unseed.errors import InvalidInputError
from unseed.plots import IntervalDisplay
from unseed_app.report import check_can_be_written, write_report

_SHOWN = 6
_PICTURES = (".png", ".pdf", ".svg", ".jpg")


@dataclass(frozen=True)
class Demonstration:
    """What was fitted and predicted."""

    estimator: PNCRegressor
    n_training: int
    feature_names: list[str]
    rows: FloatArray
    features: FloatArray
    observed: FloatArray
    prediction: Prediction
    seconds: float


def demonstrate(level: float, interval: str, seed: int, out: Path, page: Path | None, echo: Callable[[str], None]) -> None:
    """Fit, predict, say what came of it, and save a figure and a page."""
    start = time.perf_counter()
    mpl.use("Agg")
    check_level(level)
    if not out.parent.is_dir():
        raise InvalidInputError(f"out={str(out)!r}: the folder {str(out.parent)!r} does not exist; make it first")
    if out.suffix.lower() not in _PICTURES or out.is_dir():
        raise InvalidInputError(f"out={str(out)!r} must be a file that ends in .png, .pdf, .svg or .jpg")
    page = out.with_name("report.html") if page is None else page
    check_can_be_written(page)
    result = _run(interval, seed)
    echo(_describe(result, level))
    _save_figure(result, level, out)
    _save_report(result, level, page, f"unseed demo --level {level:g} --interval {interval} --seed {seed}")
    echo(f"Figure: {out}. Report: {page}. Everything took {time.perf_counter() - start:.1f} s.")


def _run(interval: str, seed: int) -> Demonstration:
    """Fit four fifths of scikit-learn's diabetes data and predict the rest."""
    patients = load_diabetes(scaled=False)
    X, y = patients.data, patients.target
    rows = np.arange(len(y))
    X_train, X_test, y_train, y_test, _, rows_test = train_test_split(X, y, rows, test_size=0.2, random_state=seed)
    start = time.perf_counter()
    estimator = PNCRegressor(interval=interval, random_state=seed, verbose=sys.stdout.isatty()).fit(X_train, y_train)
    prediction = estimator.get_prediction(X_test)
    seconds = time.perf_counter() - start
    return Demonstration(estimator, len(X_train), patients.feature_names, rows_test, X_test, y_test, prediction, seconds)


def _describe(demonstration: Demonstration, level: float) -> str:
    """The table a person reads."""
    prediction, observed = demonstration.prediction, demonstration.observed
    low, high = prediction.conf_int(level).T
    new_low, new_high = prediction.pred_int(level).T
    inside = np.mean((new_low <= observed) & (observed <= new_high))
    data, seed = np.sqrt(prediction.components.data), np.sqrt(prediction.components.procedural)
    order = np.argsort(high - low)[::-1]
    reg = demonstration.estimator
    lines = [
        f"Diabetes progression after one year: {demonstration.n_training} patients to fit, {len(observed)} held out.",
        f"Network: {_network(reg)}, infinitely wide; λ = {reg.regularization_:.3g}; {reg.interval_}.",
        f"Fitted and predicted in {demonstration.seconds:.2f} s.",
        "",
        f"{100 * level:g} % confidence intervals for the mean response, the {_SHOWN} least certain patients:",
        _HEADER,
        *(_row(demonstration, i, low, high, data, seed) for i in order[:_SHOWN]),
        f"and the {_SHOWN // 2} most certain:",
        *(_row(demonstration, i, low, high, data, seed) for i in order[: -_SHOWN // 2 - 1 : -1]),
        "",
        "± data: one standard error of the prediction, for what other data, or more of them, would change.",
        "± seed: how far another seed would move a single network's prediction; taken out of these predictions.",
        "mainly: which of the two a single network would owe more of its uncertainty to.",
        "",
        f"A new patient's own value scatters by another ± {np.sqrt(prediction.components.noise.mean()):.0f}: "
        f"the {100 * level:g} % prediction intervals, which include that, hold {100 * inside:.0f} % of the "
        f"{len(observed)} observed values.",
    ]
    return "\n".join(lines)


def _network(reg: PNCRegressor) -> str:
    return str(reg.network_) if reg.selection_ is None else reg.selection_.best.architecture


_HEADER = "  patient  observed  predicted         interval   ± data   ± seed   mainly"


def _row(demonstration: Demonstration, i: int, low: FloatArray, high: FloatArray, data: FloatArray, seed: FloatArray) -> str:
    interval = f"[{low[i]:.0f}, {high[i]:.0f}]"
    mainly = "data" if data[i] > seed[i] else "seed"
    return (
        f"  {demonstration.rows[i]:7d}  {demonstration.observed[i]:8.0f}  {demonstration.prediction.mean[i]:9.0f}"
        f"  {interval:>15}  {data[i]:7.1f}  {seed[i]:7.1f}   {mainly:>6}"
    )


def _save_figure(demonstration: Demonstration, level: float, path: Path) -> None:
    """Held-out patients with their intervals, as a picture."""
    display = IntervalDisplay.from_predictions(demonstration.prediction, demonstration.observed, level=level)
    display.ax_.set_title("Diabetes progression of held-out patients", loc="left")
    display.ax_.set_ylabel("progression after one year")
    with replaced(path, "out") as part:
        display.figure_.savefig(part, dpi=150)  # type: ignore[union-attr]


def _save_report(demonstration: Demonstration, level: float, path: Path, command: str) -> None:
    """The same patients as a page to look around in."""
    write_report(
        path,
        demonstration.estimator,
        demonstration.features,
        demonstration.observed,
        feature_names=demonstration.feature_names,
        target_names=["progression after one year"],
        row_labels=[f"patient {row}" for row in demonstration.rows],
        level=level,
        source=command,
    )
