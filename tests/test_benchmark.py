"""The timing command: what it measures and what it writes."""

import json
from dataclasses import replace

import numpy as np
from numpy.testing import assert_allclose
from sklearn.kernel_ridge import KernelRidge
from typer.testing import CliRunner

from unseed import benchmark
from unseed.cli import app
from unseed.errors import InvalidInputError
from unseed.kernels import ntk


def test_command_prints_and_writes_ratios(tmp_path, monkeypatch):
    monkeypatch.setattr(benchmark, "AXES", [replace(axis, sizes=(16, 32)) for axis in benchmark.AXES])
    for slow in ("_mapie", "_laplace"):  # half a minute each, and whether they are there depends on what is installed
        monkeypatch.setattr(benchmark, slow, lambda problem: None)
    out = tmp_path / "figures.json"
    result = CliRunner().invoke(app, ["benchmark", "--rows", "40", "--repetitions", "1", "--out", str(out)])
    assert result.exit_code == 0, result.output
    figures = json.loads(out.read_text())
    assert set(figures["ratios"]) == set(benchmark.jobs(benchmark.Problem.draw(16)))
    assert figures["ratios"][benchmark.OURS] == 1
    assert all(value > 0 for value in figures["seconds"].values())
    assert set(figures["growth"]) == {"rows", "features", "points", "replications", "batches"}
    assert all(set(axis["seconds"]) == {"16", "32"} for axis in figures["growth"].values())
    assert figures["peak_bytes"] > 1e8
    assert "n = 40, d = 16, 256 new points" in result.output


def test_results_come_in_the_order_of_the_jobs(monkeypatch):
    """Also where a job takes so long that its first timing counts, and is the only one."""
    clock = {"quick": [9.0, 0.1, 0.3, 0.2], "endless": [30.0]}
    monkeypatch.setattr(benchmark, "jobs", lambda problem: {benchmark.OURS: "quick", "peer": "endless"})
    monkeypatch.setattr(benchmark, "_seconds", lambda job: clock[job].pop(0))
    found = benchmark.measure(16, 3, lambda name: None)
    assert list(found["seconds"].items()) == [(benchmark.OURS, 0.2), ("peer", 30.0)]
    assert list(found["ratios"]) == [benchmark.OURS, "peer"]


def test_a_missing_folder_is_named_before_anything_is_timed(tmp_path):
    result = CliRunner().invoke(app, ["benchmark", "--out", str(tmp_path / "no" / "file.json")])
    assert isinstance(result.exception, InvalidInputError)
    assert "does not exist; make it first" in str(result.exception)


def test_kernel_ridge_is_the_same_mathematics():
    """Its full-data prediction is our centre."""
    problem = benchmark.Problem.draw(60)
    scale = benchmark._ours().set_params(standardize=False).fit(problem.X, problem.y)
    alpha = benchmark.REGULARIZATION * 60
    ridge = KernelRidge(alpha=alpha, kernel="precomputed").fit(ntk(problem.X, network=benchmark.NETWORK), problem.y)
    theirs = ridge.predict(ntk(problem.X_new, problem.X, network=benchmark.NETWORK))
    assert_allclose(scale.predict(problem.X_new), theirs, rtol=0, atol=1e-8)
    assert np.isfinite(theirs).all()


def test_exponent_is_the_slope_of_the_logarithms(monkeypatch):
    clock = iter([0.01 * 2**3, 0.01 * 4**3, 0.01 * 8**3])
    monkeypatch.setattr(benchmark, "_seconds", lambda job: next(clock))
    found = benchmark.Axis("rows", (2, 4, 8), lambda size: lambda: None).measure(1, lambda name: None)
    assert abs(found["exponent"] - 3) < 1e-9
