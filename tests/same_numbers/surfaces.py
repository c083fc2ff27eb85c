"""What is read elsewhere than on an estimator: files, pages, pictures, the command line, forecasts, kernels, many data sets."""

import html
import json
import re
import runpy
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import fields
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import torch

import unseed
import unseed.kernels
import unseed.plots
import unseed.report
from same_numbers.quantities import Quantities, answers, flat, numbers_in
from unseed import MLP, GradientDescent, GradientFlow, KernelEngine, LinearizedEngine, NetworkEngine, PNCRegressor, costs

RELU = MLP(bias_scale=1.0, scale_inputs=True, width=16)
OPTIONS: dict[str, Any] = {"network": RELU, "regularization": 0.01, "random_state": 0}
FLOW, STEPS, BATCHES = GradientFlow(time=1.0), GradientDescent(steps=30), unseed.SGD(epochs=5)
FINITE = (
    *("linearized", "network", LinearizedEngine(training=FLOW)),
    *(NetworkEngine(width=64, trainer=trainer) for trainer in (STEPS, BATCHES)),
)
Rows = Callable[[int], tuple[np.ndarray, np.ndarray]]


def saved(rows: Rows, new_points: Callable[[], np.ndarray]) -> Quantities:
    """Models that were written and read again, one of every kind."""
    X, y = rows(40)
    short = NetworkEngine(dtype="float64", trainer=GradientDescent(steps=10))
    models = {
        "kernel": PNCRegressor(**OPTIONS).fit(X, y),
        "linearized": PNCRegressor(engine="linearized", **OPTIONS).fit(X, y[:, 0]),
        "network": PNCRegressor(engine=short, **OPTIONS).fit(X, y[:, 0]),
        "ensemble": unseed.DeepEnsembleRegressor(members=2, engine="linearized", **OPTIONS).fit(X, y[:, 0]),
        "dropout": unseed.MCDropoutRegressor(passes=5, steps=5, **OPTIONS).fit(X, y),
    }
    found: Quantities = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, model in models.items():
            model.save(f"{folder}/{name}")
            found |= answers(type(model).load(f"{folder}/{name}"), new_points(), name=name)
    return found


def compressed(rows: Rows, new_points: Callable[[], np.ndarray]) -> Quantities:
    """Models made smaller in every way."""
    X, y = rows(60)
    reg = PNCRegressor(**OPTIONS).fit(X, y)
    found = answers(reg.compress(dtype="float32"), new_points(), name="float32")
    return found | answers(reg.compress(anchors=25), new_points(), name="anchors")


def many_data_sets() -> Quantities:
    """Intervals for several data sets at once, by every method that compares replicates."""
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(3, 41, 2)), rng.normal(size=(3, 5, 2))
    y = np.sin(X).sum(axis=2) + 0.1 * rng.normal(size=(3, 41))
    networks = {
        "relu": MLP(depth=2, bias_scale=1.0),
        "erf": MLP(activation="erf"),
        "tanh": MLP(activation="tanh", bias_scale=0.3),
    }
    found: Quantities = {}
    for name, network in networks.items():
        for interval in ("cheap_bootstrap", "batching", "sectioning", "half_sampling"):
            options = {"network": network, "regularization": 0.01, "interval": interval, "random_state": [4, 7, 1]}
            for standardize in (True, False):
                both = unseed.predict_interval_many(X, y, new, [0.9, 0.95], standardize=standardize, **options)
                found |= flat(dict(zip(("mean", "intervals"), both, strict=True)), f"{name}.{interval}.{standardize}")
    return found


def kernels() -> Quantities:
    """Tangent and covariance kernels of every activation."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(9, 3)), rng.normal(size=(4, 3))
    X[1], Z[1], Z[2] = X[0], X[0] * (1 + 1e-9), 0
    activations = ("relu", "erf", "tanh", "gelu", "softplus", "silu", "sin", torch.nn.functional.mish)
    found: Quantities = {}
    for activation in activations:
        for depth, options in (
            (1, {}),
            (2, {"bias_scale": 1.0}),
            (3, {"bias_scale": 0.5, "bias_init": "zero", "scale_inputs": True}),
        ):
            network = MLP(depth=depth, activation=activation, weight_std=1.2, **options)
            name = activation if isinstance(activation, str) else "own"
            for kind in (unseed.kernels.ntk, unseed.kernels.nngp):
                with_itself, with_others = kind(X, network=network), kind(X, Z, network=network)
                found |= flat({"gram": with_itself, "cross": with_others}, f"{name}.{depth}.{kind.__name__}")
    return found


def forecasts() -> Quantities:
    """Time and memory of jobs of every engine, on a machine whose rates are given."""
    rates = _rates()
    found: Quantities = {}
    for place, estimator in enumerate(_regressors()):
        for outputs in (1, 3):
            said = costs.forecast(costs.Job.of(estimator, 3000, 4, 200, outputs), rates)
            found |= flat({"figures": said, "seconds": said.seconds, "words": numbers_in(str(said))}, f"{place}.{outputs}")
            found.pop(f"{place}.{outputs}.figures.disk", None)  # zero, where there is one
            if estimator.get_params().get("engine") in FINITE:  # whose memory came with rates that were measured
                del found[f"{place}.{outputs}.figures.bytes"], found[f"{place}.{outputs}.words"]
    return _without_words(found)


def _rates() -> costs.Rates:
    growth, tangent = costs.Growth(2e-10, 1e-9), costs.TangentRates(row=1e-6, pair=1e-9)
    network = {"forward": 1e-6, "step": 3e-6, "tangent": tangent, "training_tangent": tangent, "start": 1e-3, "bytes": 10**8}
    known = {field.name for field in fields(costs.NetworkRates)}
    return costs.Rates(
        *(2e-11, 1e-10, 5e-9, 4e-9, 1e-9, 1e-11, 0.006, 1e-6, 1e-3),
        network=costs.NetworkRates(**{name: rate for name, rate in network.items() if name in known}),
        solvers=costs.SolverRates(growth, growth, 1e-9, 4e-9),
    )


def _regressors() -> list[PNCRegressor]:
    intervals = "truth", "sectioning", "batching", "cheap_bootstrap", "half_sampling", "infinitesimal_jackknife"
    options: list[dict[str, Any]] = [{"engine": engine, "interval": i} for engine in ("kernel", *FINITE[:2]) for i in intervals]
    options += [{"network": "auto"}, {"engine": KernelEngine(precision="mixed"), "interval": "cheap_bootstrap"}]
    options += [{"engine": engine} for engine in (KernelEngine(training=FLOW), *FINITE[2:])]
    options += [{"engine": KernelEngine(training=GradientDescent(steps=30, rate=0.01))}]
    return [PNCRegressor(**{"network": RELU, "device": "cpu", "n_jobs": 1} | given) for given in options]


def pages(rows: Rows) -> Quantities:
    """The data and the words of reports about one output, several, a baseline, and rows without labels."""
    X, y = rows(50)
    new, observed = X[40:], y[40:]
    shown = {
        "one": (PNCRegressor(**OPTIONS).fit(X[:40], y[:40, 0]), observed[:, 0]),
        "several": (PNCRegressor(interval="cheap_bootstrap", **OPTIONS).fit(X[:40], y[:40]), observed),
        "ensemble": (unseed.DeepEnsembleRegressor(members=2, engine="linearized", **OPTIONS).fit(X[:40], y[:40, 0]), None),
    }
    names = dict.fromkeys(("feature_names", "target_names", "row_labels"))
    found: Quantities = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (reg, labels) in shown.items():
            path = unseed.report.write_report(f"{folder}/page.html", reg, new, labels, level=0.9)
            found |= _of_page(path, name)
            content = unseed.report.build(reg, unseed.report.checked_rows(reg, new, labels, 0.9, **names), 0.9)
            found |= flat(
                {str(place): numbers_in(line) for place, line in enumerate(unseed.report.in_short(content))}, f"{name}.short"
            )
    return found


def _of_page(path: Path, name: str) -> Quantities:
    """What the page's script draws, and every number that stands in its words but in how it was made."""
    text = path.read_text(encoding="utf-8")
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])
    words = re.sub(r'<(script|style|section id="reproduce").*?</(script|style|section)>', " ", text, flags=re.DOTALL)
    words = html.unescape(re.sub(r"<[^>]*>", " ", words)).replace("−", "-")
    return _without_words(flat({"data": data, "words": numbers_in(words)}, name))


def _without_words(found: Quantities) -> Quantities:
    return {name: value for name, value in found.items() if value.dtype.kind == "f"}


def displays(rows: Rows) -> Quantities:
    """Every line and area that the displays draw."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    X, y = rows(60)
    reg, new = PNCRegressor(**OPTIONS).fit(X[:40], y[:40, 0]), X[40:]
    relevant = PNCRegressor(**OPTIONS | {"network": MLP(bias_scale=1.0, input_scale=[1.0, 0.5, 2.0])}).fit(X, y[:, 0])
    drawn = {
        "intervals": unseed.plots.IntervalDisplay.from_estimator(reg, new),
        "coverage": unseed.plots.CoverageDisplay.from_estimator(reg, new, y[40:, 0]),
        "variance": unseed.plots.VarianceDisplay.from_estimator(reg, new),
        "average": unseed.plots.VarianceDisplay.from_estimator(reg, new, average=True),
        "seeds": unseed.plots.SeedSpreadDisplay.from_estimator(reg, new, random_state=0, n_networks=5),
        "relevance": unseed.plots.RelevanceDisplay.from_estimator(relevant),
    }
    found: Quantities = {}
    for name, display in drawn.items():
        lines = [line.get_xydata() for line in display.ax_.get_lines()]
        areas = [path.vertices for area in display.ax_.collections for path in area.get_paths()]
        bars = [
            patch.get_path().vertices * [patch.get_width(), 1] for patch in display.ax_.patches if hasattr(patch, "get_width")
        ]
        found |= flat(
            {kind: dict(enumerate(some)) for kind, some in (("lines", lines), ("areas", areas), ("bars", bars))}, name
        )
    pyplot.close("all")
    return found


def command_line(target: str, interval: str) -> Quantities:
    """`unseed fit`, `predict`, `diagnose` and `report` on a table with numbers, words, dates and gaps."""
    found: Quantities = {}
    with tempfile.TemporaryDirectory() as folder:
        train, new, out, page = (Path(folder) / name for name in ("train.csv", "new.csv", "out.csv", "page.html"))
        train.write_text(_table(60, seed=0), encoding="utf-8")
        new.write_text(_table(14, seed=1), encoding="utf-8")
        model = f"{folder}/model"
        fit = [
            "fit",
            str(train),
            "--target",
            target,
            "--out",
            model,
            "--interval",
            interval,
            "--device",
            "cpu",
            "--impute",
            "median",
        ]
        found |= _said(fit, "fit")
        found |= _said(["predict", model, str(new), "--out", str(out), "--level", "0.9", "--impute", "median"], "predict")
        found |= _said(["diagnose", model, str(new), "--impute", "median"], "diagnose")
        found |= _said(["report", model, str(new), "--out", str(page), "--impute", "median"], "report")
        found |= _of_page(page, "page") | _of_csv(out, "intervals")
    return found


def _table(n: int, seed: int) -> str:
    rng = np.random.default_rng(seed)
    lines = ["city,area,built,rooms,price,size"]
    for i in range(n):
        area, rooms, place = rng.uniform(20, 200), rng.integers(1, 7), rng.choice(["Bern", "Rome", "Wien"])
        price = 3 * area + 40 * rooms + {"Bern": 50, "Rome": 0, "Wien": -30}[place] + 20 * rng.normal()
        shown = "" if i % 11 == 5 else f"{area:.2f}"
        lines.append(f"{place},{shown},20{i % 20 + 1:02d}-0{i % 9 + 1}-15,{rooms},{price:.3f},{area + rng.normal():.3f}")
    return "\n".join(lines) + "\n"


def _said(arguments: list[str], name: str) -> Quantities:
    """The numbers of the JSON that a command prints; not how long it took, nor the sizes of files."""
    printed = StringIO()
    with redirect_stdout(printed), _called_with([*arguments, "--json"]):
        try:
            runpy.run_module("unseed", run_name="__main__")
        except SystemExit as end:
            if end.code:
                raise RuntimeError(f"unseed {' '.join(arguments)} ended with {end.code}: {printed.getvalue()}") from end
    return {
        key: value for key, value in _without_words(flat(json.loads(printed.getvalue()), name)).items() if "seconds" not in key
    }


@contextmanager
def _called_with(arguments: list[str]) -> Iterator[None]:
    kept = sys.argv
    sys.argv = ["unseed", *arguments]
    try:
        yield
    finally:
        sys.argv = kept


def _of_csv(path: Path, name: str) -> Quantities:
    header, *lines = (line.split(",") for line in path.read_text(encoding="utf-8").splitlines())
    columns = {title: list(cells) for title, cells in zip(header, zip(*lines, strict=True), strict=True)}
    return {f"{name}.{title}": np.array([float(cell) for cell in cells]) for title, cells in columns.items() if "_" in title}
