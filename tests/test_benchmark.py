"""The timing command and the check of its ratios: what they measure, what they leave out, what they write."""

import importlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.kernel_ridge import KernelRidge
from typer.testing import CliRunner

import cost_of_intervals as benchmark
from cost_of_intervals import command, floors, memory, peers, timing
from unseed.errors import InvalidInputError
from unseed.kernels import PopulationKernel, ntk
from unseed_app.cli import app

ROOT = Path(__file__).parents[1]
KNOWS_PEAKS = memory._CLEAR.exists()


@pytest.fixture
def quick(monkeypatch):
    """No rest between jobs, no growth, and no other package's methods: which are there depends on what is installed."""
    monkeypatch.setattr(timing, "REST", 0.0)
    monkeypatch.setattr(timing, "AXES", [])
    monkeypatch.setattr(peers, "OPTIONAL", {})


@pytest.fixture
def jobs(monkeypatch):
    """Put other jobs in the place of all but ours."""

    def put(ours=lambda: None, **others):
        monkeypatch.setattr(timing, "jobs", lambda problem: {benchmark.OURS: ours} | others)

    return put


def run(*arguments):
    return CliRunner().invoke(app, ["benchmark", "--rows", "40", "--repetitions", "1", *arguments])


def test_command_prints_and_writes_ratios_and_memory(quick, monkeypatch, tmp_path):
    monkeypatch.setattr(timing, "AXES", [replace(axis, sizes=(16, 32)) for axis in benchmark.AXES])
    out = tmp_path / "figures.json"
    result = run("--out", str(out))
    assert result.exit_code == 0, result.output
    figures = json.loads(out.read_text())
    assert list(figures["ratios"]) == list(benchmark.jobs(benchmark.Problem.draw(16)))
    assert figures["ratios"][benchmark.OURS] == 1
    assert all(value > 0 for value in figures["seconds"].values())
    assert set(figures["growth"]) == {"rows", "features", "points", "replications", "batches"}
    assert all(set(axis["seconds"]) == {"16", "32"} for axis in figures["growth"].values())
    assert figures["peak_bytes"] > 1e8
    assert figures["complete"]
    assert figures["left_out"] == {}
    assert "n = 40, d = 16, 256 new points" in result.output
    assert "left out" not in result.output
    for found in (figures, *figures["growth"].values()):
        assert list(found["peak_added_bytes"]) == list(found["seconds"])
        assert all((0 <= value < 1e9) if KNOWS_PEAKS else value is None for value in found["peak_added_bytes"].values())
    lines = [line for line in result.output.splitlines() if " ms " in line]
    assert len(lines) == 7 + 10
    assert all(line.endswith(" MB" if KNOWS_PEAKS else "–") for line in lines)


def test_results_come_in_the_order_of_the_jobs(quick, jobs, monkeypatch):
    """Also where a job takes so long that its first timing counts, and is the only one."""
    clock = {"quick": [9.0, 0.1, 0.3, 0.2], "endless": [30.0]}
    jobs("quick", peer="endless")
    monkeypatch.setattr(timing, "seconds", lambda job: clock[job].pop(0))
    found = timing.Benchmark(16, 3)
    found.time_peers()
    assert list(found.figures()["seconds"].items()) == [(benchmark.OURS, 0.2), ("peer", 30.0)]
    assert list(found.figures()["ratios"].items()) == [(benchmark.OURS, 1.0), ("peer", 150.0)]


# What is left out


def test_missing_and_broken_packages_are_named_with_the_reason(quick, jobs, monkeypatch, tmp_path):
    (tmp_path / "built_for_another_torch.py").write_text("raise RuntimeError('torchvision::nms does not exist\\nand more')")
    monkeypatch.syspath_prepend(tmp_path)
    packages = {"absent": ("no_such_package_here", None), "broken": ("built_for_another_torch", None)}
    monkeypatch.setattr(peers, "OPTIONAL", packages | {"there": ("json", lambda problem: None)})
    timed = benchmark.jobs(benchmark.Problem.draw(16))
    assert "there" in timed
    assert not {"absent", "broken"} & set(timed)
    jobs()
    out = tmp_path / "figures.json"
    result = run("--out", str(out))
    assert json.loads(out.read_text())["left_out"] == {
        "absent": "not installed; pip install 'unseed[benchmark]'",
        "broken": "cannot be imported (RuntimeError: torchvision::nms does not exist); "
        "it works without torchvision: pip uninstall torchvision",
    }
    assert "left out: absent: not installed; pip install 'unseed[benchmark]'" in result.output


class Failing:
    """A job that works so many times and then does not."""

    def __init__(self, error, works=0):
        self.error, self.left = error, works

    def __call__(self, *_):
        if not self.left:
            raise self.error
        self.left -= 1
        return self


@pytest.mark.parametrize("works", [0, 2])
def test_a_peer_that_fails_is_left_out_and_the_others_stay(quick, jobs, tmp_path, works):
    jobs(failing=Failing(ValueError("matrix is singular\nsecond line"), works), after=lambda: None)
    out = tmp_path / "figures.json"
    result = CliRunner().invoke(app, ["benchmark", "--repetitions", "3", "--out", str(out)])
    assert result.exit_code == 0, result.output
    figures = json.loads(out.read_text())
    assert figures["left_out"] == {"failing": "ValueError: matrix is singular"}
    for by_name in ("seconds", "ratios", "peak_added_bytes"):
        assert list(figures[by_name]) == [benchmark.OURS, "after"]
    assert figures["complete"]


def test_a_size_that_fails_is_left_out_and_the_others_stay(quick, monkeypatch):
    job = {16: lambda: None, 32: Failing(MemoryError())}.__getitem__
    monkeypatch.setattr(timing, "AXES", [benchmark.Axis("rows", (16, 32), job)])
    found = timing.Benchmark(40, 1)
    found.time_growth(timing.AXES[0])
    figures = found.figures()
    assert figures["left_out"] == {"rows = 32": "MemoryError"}
    assert list(figures["growth"]["rows"]["seconds"]) == [16]
    assert figures["growth"]["rows"]["exponent"] is None
    assert "against rows: exponent –" in benchmark.describe(figures)


def test_where_ours_fails_that_is_an_error_and_what_was_measured_is_kept(quick, jobs, tmp_path):
    jobs(Failing(ValueError("ours"), works=2), peer=lambda: None)
    out = tmp_path / "figures.json"
    result = CliRunner().invoke(app, ["benchmark", "--repetitions", "3", "--out", str(out)])
    assert isinstance(result.exception, ValueError)
    figures = json.loads(out.read_text())
    assert list(figures["seconds"]) == [benchmark.OURS, "peer"]
    assert not figures["complete"]


# The file


def test_ctrl_c_leaves_what_was_measured(quick, jobs, tmp_path):
    jobs(stopped=Failing(KeyboardInterrupt(), works=1))
    out = tmp_path / "figures.json"
    result = run("--out", str(out))
    assert result.exit_code == 130
    figures = json.loads(out.read_text())
    assert list(figures["ratios"]) == [benchmark.OURS]
    assert not figures["complete"]
    assert "stopped before the end" in result.output


def test_ctrl_c_before_anything_was_measured_leaves_the_file_alone(quick, monkeypatch, tmp_path):
    monkeypatch.setattr(timing, "jobs", Failing(KeyboardInterrupt()))
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text("figures")
    assert run("--out", str(old)).exit_code == run("--out", str(new)).exit_code == 130
    assert old.read_text() == "figures"
    assert not new.exists()


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("no/file.json", "does not exist; make it first"),
        (".", "is a folder; give the name of a file"),
        ("/proc/figures.json", "could not be written"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_timed(monkeypatch, tmp_path, out, message):
    monkeypatch.setattr(command, "Benchmark", Failing(AssertionError("timed")))
    monkeypatch.chdir(tmp_path)
    result = run("--out", out)
    assert isinstance(result.exception, InvalidInputError)
    assert message in str(result.exception)


def test_refusals_are_one_line_and_code_1():
    done = subprocess.run([sys.executable, "-m", "unseed", "benchmark", "--out", "no/f.json"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "unseed: out='no/f.json': the folder 'no' does not exist; make it first\n"


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no device that is always full")
def test_figures_are_printed_where_the_disk_is_full_in_the_end(quick, jobs, tmp_path):
    jobs()
    (tmp_path / "full").symlink_to("/dev/full")  # not the device itself: whatever went wrong would hit every process here
    result = run("--out", str(tmp_path / "full"))
    assert "could not be written: No space left on device" in str(result.exception)
    assert "n = 40" in result.output


# Memory


@pytest.mark.skipif(not KNOWS_PEAKS, reason="Linux alone tells the peak of memory")
def test_peak_is_that_of_the_job_and_freed_memory_counts():
    watched = memory.PeakMemory()
    watched.begin()
    np.ones(25_000_000).sum()
    assert 1.9e8 < watched.added() < 2.6e8
    watched.begin()
    np.ones(2_500_000).sum()
    assert 1e7 < watched.added() < 1e8
    assert watched.of_process() >= watched.highest > 2e8


def test_peak_is_unknown_elsewhere(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "_CLEAR", tmp_path / "no" / "clear_refs")
    watched = memory.PeakMemory()
    watched.begin()
    assert watched.added() is None
    assert watched.of_process() > 1e8


# What the jobs are


def test_kernel_ridge_is_the_same_mathematics():
    """Its full-data prediction is our centre."""
    problem = benchmark.Problem.draw(60)
    scale = benchmark.ours().set_params(standardize=False).fit(problem.X, problem.y)
    alpha = benchmark.REGULARIZATION * 60
    ridge = KernelRidge(alpha=alpha, kernel="precomputed").fit(ntk(problem.X, network=benchmark.NETWORK), problem.y)
    theirs = ridge.predict(ntk(problem.X_new, problem.X, network=benchmark.NETWORK))
    assert_allclose(scale.predict(problem.X_new), theirs, rtol=0, atol=1e-8)
    assert np.isfinite(theirs).all()


def test_floors_by_torch_and_numpy_are_the_same_work():
    X = np.random.default_rng(0).normal(size=(3, 5, 2))
    for ways in (floors.arccos(3, 5), floors.products(X)):
        first, second = (torch.as_tensor(way()).clone() for way in ways)
        assert_allclose(first, second, rtol=1e-12, atol=1e-14)
    assert_allclose(floors.products(X)[0](), X @ X.swapaxes(1, 2), rtol=1e-12, atol=1e-14)
    factor = floors.cholesky(X)()
    assert_allclose(factor @ factor.mT, X @ X.swapaxes(1, 2) + 5 * np.eye(5), rtol=1e-12, atol=1e-14)


def test_exponent_is_the_slope_of_the_logarithms(quick, monkeypatch):
    clock = iter([0.01 * 2**3, 0.01 * 4**3, 0.01 * 8**3])
    monkeypatch.setattr(timing, "seconds", lambda job: next(clock))
    found = timing.Benchmark(40, 1)
    found.time_growth(benchmark.Axis("rows", (2, 4, 8), lambda size: lambda: None))
    assert abs(found.figures()["growth"]["rows"]["exponent"] - 3) < 1e-9


# The check


@pytest.fixture
def check(quick, monkeypatch, tmp_path):
    """The script with small sizes and a baseline of its own."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    script = importlib.import_module("check")
    small = {"BASELINE": tmp_path / "baseline.json", "ROWS": 128, "POINTS": 256, "BATCHES": 2, "ROUNDS": 5}
    for name, value in small.items():
        monkeypatch.setattr(script, name, value)
    monkeypatch.setattr(benchmark, "REST", 0.0)
    return script


def slow_down(monkeypatch, function, calls):
    fast = getattr(PopulationKernel, function)
    monkeypatch.setattr(PopulationKernel, function, lambda *given: [fast(*given) for _ in range(calls)][-1])


def test_a_slower_kernel_breaks_the_check(check, monkeypatch, capsys):
    """Jobs of a millisecond on a machine that tests share: factors of 4 and 30 are far enough from what noise does."""
    monkeypatch.setattr(check, "TOLERANCE", 4.0)
    monkeypatch.setattr(sys, "argv", ["check.py", "--store"])
    assert check.main() == 0
    monkeypatch.setattr(sys, "argv", ["check.py"])
    assert check.main() == 0, capsys.readouterr().out
    printed = capsys.readouterr().out
    assert printed.count("   kept\n") == len(check.RATIOS)
    assert "BROKEN" not in printed
    for function in ("_gram", "_cross", "_product"):
        slow_down(monkeypatch, function, calls=30)
    monkeypatch.setattr(check, "ROUNDS", 1)
    assert check.main() == 1
    printed = capsys.readouterr().out
    lines = {line[:50].strip(): line.split()[-1] for line in printed.splitlines()}
    assert lines["Gram matrix over arccos and product"] == lines["prediction at new points over arccos"] == "BROKEN"
    assert "Beyond a limit; measuring once more" in printed
    assert "git bisect" in printed


def test_five_times_slower_kernels_are_beyond_the_tolerance(check, monkeypatch):
    """By the times of two cores: every ratio but that to KernelRidge, whose Gram matrices are ours as well."""
    seconds = {benchmark.OURS: 36, benchmark.GRAM: 7.2, benchmark.SAME: 233, benchmark.CHOLESKY: 9.5, "prediction": 24}
    seconds |= {"batching": 44, "arccos": 0.8, "product": 0.4, "its arccos": 3.7}
    seconds |= {"arccos of batches": 1.6, "products of batches": 0.7, "factorisations of batches": 17}
    monkeypatch.setattr(check, "fastest", lambda jobs: seconds)
    stored = check.ratios()
    entries = {benchmark.OURS: 9.0, benchmark.GRAM: 7.2, "prediction": 20.0, benchmark.SAME: 30.0, "batching": 13.0}
    for name, milliseconds in entries.items():
        seconds[name] += 4 * milliseconds
    verdicts = [check.Line(name, ratio, stored[name]).verdict for name, ratio in check.ratios().items()]
    assert verdicts == ["BROKEN", "BROKEN", "kept", "BROKEN", "BROKEN"]


def test_one_slow_measurement_breaks_nothing(check, monkeypatch, capsys):
    measured = iter([{"a": 3.0, "b": 1.0}, {"a": 1.2, "b": 9.0}])
    monkeypatch.setattr(check, "ratios", lambda: next(measured))
    assert [line.verdict for line in check.compared({"a": 1.0, "b": 1.0})] == ["kept", "kept"]


def test_what_has_no_limit_is_named(check, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["check.py"])
    monkeypatch.setattr(check, "ratios", lambda: {"a": 1.0, "b": 1.0})
    check.BASELINE.write_text(json.dumps({"machine": {"processor": "another"}, "ratios": {"a": 1.0}}))
    assert check.main() == 1
    printed = capsys.readouterr().out
    assert "NOT STORED: nothing to compare with; on a quiet machine: python benchmarks/check.py --store" in printed
    assert "Stored on another machine" in printed


# The page


@pytest.fixture
def page(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("page")


def test_memory_has_a_column_with_dashes_where_it_is_not_known(page):
    figures = {"seconds": {"a": 0.002, "b": 0.001}, "ratios": {"a": 1.0, "b": 0.5}}
    figures["peak_added_bytes"] = {"a": 12_345_678, "b": None}
    head, _, *lines = page.peers_table(figures).splitlines()
    assert head == "|  | what is done | ms | ratio | MB |"
    assert lines == ["| b |  | 1 | 0.5 | – |", "| a |  | 2 | 1 | 12.3 |"]
    growth = {"rows": {"seconds": {"16": 0.002, "32": 0.004}, "peak_added_bytes": {"16": 1_000_000}, "exponent": 1.0}}
    assert "| 16 / 32 | 2 / 4 | 1 / – | 1.00 | 3 |" in page.growth_table(growth)


def test_the_page_names_what_was_left_out(page):
    figures = {"rows": 16, "machine": benchmark.machine(), "seconds": {}, "peak_bytes": 1e9, "left_out": {}}
    assert page.peers_conditions(figures).endswith(
        "peers included: 1.0 GB. MB: peak of memory during a job beyond what was there before."
    )
    assert page.peers_conditions(figures | {"left_out": {"MAPIE": "gone"}}).endswith(" Left out: MAPIE (gone).")


def test_the_page_refuses_figures_of_a_run_that_was_stopped(page, monkeypatch, tmp_path):
    (tmp_path / "peers.json").write_text(json.dumps({"complete": False}))
    monkeypatch.setattr(page, "HERE", tmp_path)
    with pytest.raises(SystemExit, match="stopped before its end"):
        page.figures("peers")
