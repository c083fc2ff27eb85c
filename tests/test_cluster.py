"""Many processes through joblib: a real Dask cluster gives the same numbers, also when a worker dies."""

import importlib
import os
import signal
import threading
import time
import warnings

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

from unseed import MLP, GradientDescent, KernelEngine, LinearizedEngine, NetworkEngine, PNCRegressor
from unseed.engines import _cohorts as cohorts
from unseed.engines import _linearized as linearized
from unseed.engines import _systems as systems
from unseed.errors import InvalidInputError
from unseed.tasks import on_cluster
from unseed_app.cli import app
from unseed_paper import Experiment, reproduce

distributed = pytest.importorskip("distributed")


class _Counted:
    """A function that remembers its calls in this process; a worker gets the function alone."""

    def __init__(self, function, calls):
        self.function, self.calls = function, calls

    def __call__(self, *arguments, **options):
        self.calls.append(self.function.__name__)
        return self.function(*arguments, **options)

    def __reduce__(self):
        return _itself, (self.function.__module__, self.function.__qualname__)


def _itself(module, name):
    return getattr(importlib.import_module(module), name)


RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = np.sin(X).sum(axis=1) + 0.1 * RNG.normal(size=300)


@pytest.fixture(scope="module")
def cluster():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
        with distributed.LocalCluster(**options) as local, distributed.Client(local) as client:
            yield client


def not_here(*_, **__):
    raise AssertionError("this was to be done by a worker")


def assert_same(far, near):
    assert_allclose(far.mean, near.mean, rtol=1e-9)
    assert_allclose(far.standard_error, near.standard_error, rtol=1e-7)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "engine",
    [KernelEngine(), LinearizedEngine(width=64), NetworkEngine(width=64, trainer=GradientDescent(steps=9), dtype="float64")],
    ids=lambda engine: type(engine).__name__,
)
def test_replicates_on_two_processes(cluster, engine, monkeypatch):
    options = {"engine": engine, "network": MLP(bias_scale=1.0), "regularization": 1e-2, "random_state": 0}
    reg = PNCRegressor(interval="cheap_bootstrap", **options)
    near = reg.fit(X, Y).get_prediction(X[:5])
    monkeypatch.setattr(cohorts, "_train", not_here)
    only_here = {"_systems": systems._solve_alone, "_linearized": linearized._solved}
    solved_here = []
    for module, function in ((systems, "_solve_alone"), (linearized, "_solved")):
        real = only_here[module.__name__.rsplit(".", 1)[1]]
        monkeypatch.setattr(module, function, _Counted(real, solved_here))
    with joblib.parallel_config(backend="dask"):
        assert_same(reg.fit(X, Y).get_prediction(X[:5]), near)
    assert len(solved_here) <= 1  # the system of all rows, whose factor is kept


@pytest.mark.filterwarnings("ignore")
def test_commands_know_a_cluster(cluster, tmp_path):
    address = cluster.scheduler.address
    arguments = ["reproduce", "table-1", "--protocol", "authors-code", "--repetitions", "3", "--methods", "batching"]
    arguments += ["--sizes", "128", "--dimensions", "2"]
    summaries = []
    for place, where in (("far", ["--cluster", address]), ("near", [])):
        done = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / place), *where])
        assert done.exit_code == 0, done.output
        (summary,) = (tmp_path / place).glob("summary.*.json")
        summaries.append(summary.read_text())
    assert summaries[0] == summaries[1]


@pytest.mark.filterwarnings("ignore")
def test_a_table_is_fitted_on_a_cluster(cluster, tmp_path, monkeypatch):
    table = tmp_path / "train.csv"
    np.savetxt(table, np.column_stack([X[:200], Y[:200]]), delimiter=",", header="a,b,c,d,y", comments="")
    arguments = ["fit", str(table), "--target", "y", "--interval", "half_sampling", "--quiet"]
    predictions = []
    for place, where in (("near", []), ("far", ["--cluster", cluster.scheduler.address])):
        if where:
            solved_here = []
            monkeypatch.setattr(systems, "_solve_alone", _Counted(systems._solve_alone, solved_here))
        done = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / place), *where])
        assert done.exit_code == 0, done.output
        predictions.append(PNCRegressor.load(tmp_path / place).predict_interval(X[:5])[1])
    assert len(solved_here) == 1  # the system of all rows
    assert_allclose(*predictions, rtol=1e-6)


def test_a_cluster_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr("unseed.tasks._PATIENCE", 0.5)
    place = on_cluster("tcp://127.0.0.1:9")
    with pytest.raises(InvalidInputError, match=r"cluster='tcp://127.0.0.1:9': no Dask scheduler answers there"), place:
        pass


@pytest.mark.filterwarnings("ignore")
def test_repetitions_go_on_when_a_worker_is_killed(cluster, tmp_path):
    experiment = Experiment("table-1", "authors-code", repetitions=30, methods=("batching",), sizes=(128,), dimensions=(2,))
    whole = reproduce(experiment, tmp_path / "near", n_jobs=1, verbose=False)
    victim = next(iter(cluster.run(os.getpid).values()))
    records = tmp_path / "far" / f"records.{experiment.name}.jsonl"
    seen = []

    def kill_in_the_middle():
        while not records.exists() or not records.stat().st_size:
            time.sleep(0.005)
        os.kill(victim, signal.SIGKILL)
        seen.append(records.read_text().count("\n"))

    killer = threading.Thread(target=kill_in_the_middle)
    killer.start()
    with joblib.parallel_config(backend="dask"):
        far = reproduce(experiment, tmp_path / "far", n_jobs=-1, verbose=False)
    killer.join()
    assert seen[0] < 30
    assert far == whole
    assert records.read_text().count("\n") == 30  # none lost, none doubled
