"""The demonstration: a real data set, held-out rows, intervals, and where their uncertainty comes from."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from unseed._estimators import PNCRegressor
from unseed._files import replaced
from unseed._results import FloatArray, Prediction, check_level
from unseed.errors import InvalidInputError
from unseed.plots import IntervalDisplay
from unseed_app.report import check_can_be_written, write_report

_SHOWN = 6


def demonstrate(level: float, interval: str, seed: int, out: Path, page: Path | None, echo: Callable[[str], None]) -> None:
    """Fit four fifths of scikit-learn's diabetes data, predict the rest, say what came of it, save a figure and a page."""
    import matplotlib as mpl

    start = time.perf_counter()
    mpl.use("Agg")
    check_level(level)
    if not out.parent.is_dir():
        raise InvalidInputError(f"out={str(out)!r}: the folder {str(out.parent)!r} does not exist; make it first")
    if out.suffix.lower() not in (".png", ".pdf", ".svg", ".jpg") or out.is_dir():
        raise InvalidInputError(f"out={str(out)!r} must be a file that ends in .png, .pdf, .svg or .jpg")
    page = out.with_name("report.html") if page is None else page
    check_can_be_written(page)
    patients = load_diabetes(scaled=False)
    numbered = (patients.data, patients.target, np.arange(len(patients.target)))
    X_train, X_test, y_train, y_test, _, numbers = train_test_split(*numbered, test_size=0.2, random_state=seed)
    begin = time.perf_counter()
    reg = PNCRegressor(interval=interval, random_state=seed, verbose=sys.stdout.isatty()).fit(X_train, y_train)
    prediction = reg.get_prediction(X_test)
    seconds = time.perf_counter() - begin
    echo(f"Diabetes progression after one year: {len(X_train)} patients to fit, {len(X_test)} held out.")
    network = reg.network_ if reg.selection_ is None else reg.selection_.best.architecture
    echo(f"Network: {network}, infinitely wide; λ = {reg.regularization_:.3g}; {reg.interval_}.")
    echo(f"Fitted and predicted in {seconds:.2f} s.\n")
    echo(_in_words(prediction, y_test, numbers, level))
    display = IntervalDisplay.from_predictions(prediction, y_test, level=level)
    display.ax_.set_title("Diabetes progression of held-out patients", loc="left")
    display.ax_.set_ylabel("progression after one year")
    with replaced(out, "out") as part:
        display.figure_.savefig(part, dpi=150)  # type: ignore[union-attr]
    write_report(
        page,
        reg,
        X_test,
        y_test,
        feature_names=patients.feature_names,
        target_names=["progression after one year"],
        row_labels=[f"patient {number}" for number in numbers],
        level=level,
        source=f"unseed demo --level {level:g} --interval {interval} --seed {seed}",
    )
    echo(f"Figure: {out}. Report: {page}. Everything took {time.perf_counter() - start:.1f} s.")


def _in_words(prediction: Prediction, observed: FloatArray, numbers: npt.NDArray[np.int64], level: float) -> str:
    """The table a person reads."""
    (low, high), (new_low, new_high) = prediction.conf_int(level).T, prediction.pred_int(level).T
    inside = np.mean((new_low <= observed) & (observed <= new_high))
    data, seed = np.sqrt(prediction.components.data), np.sqrt(prediction.components.procedural)
    noise = np.sqrt(prediction.components.noise.mean())

    def row(i: int) -> str:
        interval, mainly = f"[{low[i]:.0f}, {high[i]:.0f}]", "data" if data[i] > seed[i] else "seed"
        return (
            f"  {numbers[i]:7d}  {observed[i]:8.0f}  {prediction.mean[i]:9.0f}"
            f"  {interval:>15}  {data[i]:7.1f}  {seed[i]:7.1f}   {mainly:>6}"
        )

    order = np.argsort(high - low)[::-1]
    lines = [
        f"{100 * level:g} % confidence intervals for the mean response, the {_SHOWN} least certain patients:",
        "  patient  observed  predicted         interval   ± data   ± seed   mainly",
        *map(row, order[:_SHOWN]),
        f"and the {_SHOWN // 2} most certain:",
        *map(row, order[: -_SHOWN // 2 - 1 : -1]),
        "",
        "± data: one standard error of the prediction, for what other data, or more of them, would change.",
        "± seed: how far another seed would move a single network's prediction; taken out of these predictions.",
        "mainly: which of the two a single network would owe more of its uncertainty to.",
        "",
        f"A new patient's own value scatters by another ± {noise:.0f}: "
        f"the {100 * level:g} % prediction intervals, which include that, hold {100 * inside:.0f} % of the "
        f"{len(observed)} observed values.",
    ]
    return "\n".join(lines)
