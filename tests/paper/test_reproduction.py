"""Running, killing and resuming; what the command says and writes."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

from unseed import PNCRegressor
from unseed.errors import InvalidInputError
from unseed_app.cli import app
from unseed_paper import Experiment, preparation, records, reproduce
from unseed_paper.preparation import prepare
from unseed_paper.problems import Simulated, Split, Synthetic, load
from unseed_paper.records import RecordFile
from unseed_paper.reproduction import missing_jobs
from unseed_paper.trials import Trial

PINNED = [0.15900991751541965, 0.06482347984212225, 0.029242621907133004]
SMALL = {"sizes": (128,), "dimensions": (2,)}


def run_small(out, repetitions=2, table="table-1", protocol="authors-code", **options):
    experiment = Experiment(table, protocol, repetitions=repetitions, **(SMALL | options))
    return reproduce(experiment, out, n_jobs=1, verbose=False, resume=True)


@pytest.fixture
def small_population(monkeypatch):
    """h* from fewer rows, in this process: it takes most of a short run, and only records of targets depend on it."""
    monkeypatch.setattr(preparation, "POPULATION_ROWS", 256)


class TestRecords:
    def test_unfinished_line_is_cut_off_and_nothing_else_lost(self, tmp_path):
        file = RecordFile(tmp_path / "r.jsonl")
        first, second = ({"setting": "s", "repetition": r, "method": "m"} for r in (0, 1))
        file.append([first])
        with file.path.open("a") as stream:
            stream.write('{"setting": "s", "repet')
        assert list(file.read().values()) == [first]
        file.append([second])
        assert list(file.read().values()) == [first, second]
        assert file.path.read_text().count("\n") == 2

    def test_the_first_of_doubled_records_counts(self, tmp_path):
        file = RecordFile(tmp_path / "r.jsonl")
        file.append([{"setting": "s", "repetition": 0, "method": "m", "value": v} for v in (1, 2)])
        (record,) = file.read().values()
        assert record["value"] == 1

    def test_many_processes_write_whole_lines(self, tmp_path):
        path = tmp_path / "r.jsonl"
        code = (
            "import runpy, sys; from pathlib import Path; RecordFile = runpy.run_path(sys.argv[3])['RecordFile']\n"
            "for r in range(50): RecordFile(Path(sys.argv[1])).append("
            "[{'setting': sys.argv[2], 'repetition': r, 'method': 'm', 'filler': 'x' * 5000}])"
        )  # the module alone: the package would import torch
        writers = [subprocess.Popen([sys.executable, "-c", code, str(path), name, records.__file__]) for name in "abc"]
        assert [writer.wait() for writer in writers] == [0, 0, 0]
        assert len(RecordFile(path).read()) == 150


@pytest.mark.usefixtures("small_population")
class TestRuns:
    def test_only_what_is_missing_runs(self, tmp_path):
        run_small(tmp_path, repetitions=1, methods=("batching",))
        file = RecordFile(tmp_path / "records.table-1.authors-code.kernel.jsonl")
        before = file.read()
        more = Experiment("table-1", "authors-code", repetitions=2, methods=("batching", "sectioning"), **SMALL)
        jobs = [(job.repetition, job.methods) for job in missing_jobs(more, before)]
        assert jobs == [(0, ("sectioning",)), (1, ("pnc_batching", "sectioning"))]
        run_small(tmp_path, repetitions=2, methods=("batching", "sectioning"))
        assert len(file.read()) == 4
        assert file.read()["synthetic-1 d=2 n=128", 0, "pnc_batching"] == before["synthetic-1 d=2 n=128", 0, "pnc_batching"]

    def test_a_second_run_at_the_same_time_is_refused(self, tmp_path):
        experiment = Experiment("table-1", "authors-code", repetitions=1, methods=("batching",), **SMALL)
        file = RecordFile(tmp_path / f"records.{experiment.name}.jsonl")
        with file.claimed(), pytest.raises(InvalidInputError, match="another run is writing"):
            reproduce(experiment, tmp_path, n_jobs=1, verbose=False)
        assert reproduce(experiment, tmp_path, n_jobs=1, verbose=False)["rows"]

    def test_records_of_another_training_are_not_mixed(self, tmp_path):
        run_small(tmp_path, 1, methods=("batching",))
        path = tmp_path / "records.table-1.authors-code.kernel.jsonl"
        path.write_text(path.read_text().replace('"steps": 80', '"steps": 79'))
        with pytest.raises(InvalidInputError, match=r"was trained by \{'steps': 79.*would now be by \{'steps': 80"):
            run_small(tmp_path, 2, methods=("batching",))

    def test_the_jackknife_is_judged_by_the_target_of_long_training(self):
        experiment = Experiment("table-3", "authors-code", repetitions=1, methods=("jackknife", "batching"), **SMALL)
        setting = experiment.settings[0]
        preparation = prepare(experiment, setting)
        jackknife, batching = Trial(experiment, setting, preparation, 0).records(experiment.methods)
        assert jackknife["training"] == "converged"
        assert batching["training"] == {"steps": 80, "rate": 0.01}
        assert jackknife["target"] == [preparation.converged_target[0]]
        assert batching["target"] == [preparation.target[0]]
        assert abs(jackknife["target"][0] - batching["target"][0]) > 1e-4

    def test_earlier_records_are_not_run_over(self, tmp_path):
        run_small(tmp_path, methods=("batching",))
        with pytest.raises(InvalidInputError, match="add --resume to go on"):
            reproduce(Experiment("table-1", "authors-code", **SMALL), tmp_path, n_jobs=1)

    def test_every_interval_method_has_a_record(self, tmp_path):
        summary = run_small(tmp_path, repetitions=2)
        assert {row["method"] for row in summary["rows"]} == {
            "pnc_batching",
            "pnc_cheap_bootstrap",
            "algorithm_3",
            "pnc_jackknife",
            "sectioning",
            "half_sampling",
            "dropout_uq",
        }
        for row in summary["rows"]:
            assert row["ours"]["iw95"] > row["ours"]["iw90"] > 0
        widths = {row["method"]: row["ours"]["iw95"] for row in summary["rows"]}
        assert widths["algorithm_3"] < widths["pnc_cheap_bootstrap"]  # separate resamples let the seed's noise in

    def test_default_protocol_is_the_default_regressor(self):
        experiment = Experiment("table-1", "default", repetitions=1, methods=("auto", "sectioning"), **SMALL)
        setting = experiment.settings[0]
        trial = Trial(experiment, setting, prepare(experiment, setting), 0)
        auto, sectioning = trial.records(experiment.methods)
        data, places = setting.sample(0), setting.places()
        reg = PNCRegressor(random_state=trial.seed).fit(data.X, data.y)
        centre, bounds = reg.predict_interval(places.X[:1], 0.95)
        assert auto["centre"] == pytest.approx(centre.tolist(), rel=1e-12)
        assert 2 * auto["half_width_95"][0] == pytest.approx(bounds[0, 1, 0] - bounds[0, 0, 0], rel=1e-9)
        assert auto["target"] is None
        assert sectioning["centre"] == pytest.approx(auto["centre"], rel=1e-9)  # the same network on all rows

    @pytest.mark.parametrize("protocol", ["paper", "authors-code", "default"])
    def test_errors_over_all_seeds_are_what_drawn_networks_have(self, protocol):
        """One data set, 400 drawn networks against the closed form; their mean error has a standard error of its own."""
        experiment = Experiment("table-2", protocol, repetitions=1, **SMALL)
        setting = experiment.settings[0]
        trial = Trial(experiment, setting, prepare(experiment, setting), 0)
        errors = {record["method"]: record for record in trial.records(experiment.methods)}
        drawn = trial._pnc.sample_networks(trial.data.X_test, 400, random_state=1)
        for method, members in (("base_network", 1), ("deep_ensemble_2", 2), ("deep_ensemble_5", 5)):
            groups = drawn[: 400 // members * members].reshape(-1, members, drawn.shape[1]).mean(axis=1)
            squares = np.mean((groups - trial.data.y_test) ** 2, axis=1)
            error = squares.std(ddof=1) / np.sqrt(len(squares))
            assert abs(errors[method]["mse_over_seeds"] - squares.mean()) < 4 * error
            assert errors[method]["mse_over_seeds"] > errors["pnc"]["mse"]

    @pytest.mark.parametrize("engine", ["linearized", "network"])
    def test_finite_networks_are_near_the_kernel(self, engine):
        """One data set, width 4096, n = 128: a short training leaves little of what finite width does."""
        widths = {}
        for name in ("kernel", engine):
            experiment = Experiment("table-1", "authors-code", name, 1, ("batching", "sectioning"), **SMALL)
            setting = experiment.settings[0]
            trial = Trial(experiment, setting, prepare(experiment, setting), 0)
            widths[name] = [record["domain_width_95"] for record in trial.records(experiment.methods)]
        assert_allclose(widths[engine], widths["kernel"], rtol=0.1)

    def test_pairs_of_networks_are_pnc(self):
        """The same rows for both: base minus auxiliary is what PNCRegressor predicts from the same start."""
        experiment = Experiment("table-1", "authors-code", "linearized", 1, ("bootstrap",), **SMALL)
        setting = experiment.settings[0]
        trial = Trial(experiment, setting, prepare(experiment, setting), 0)
        everything = np.ones(128, dtype=np.int64)
        pair = trial._pair(everything, everything, 0)
        options = trial._network_options() | {"engine": trial._engine(trial._budget), "interval": "sectioning"}
        from unseed_paper.problems import seed_of

        reg = PNCRegressor(**(options | {"random_state": seed_of(trial.seed, "start", 0)}))
        assert_allclose(pair, reg.fit(trial.data.X, trial.data.y).predict(trial.places.X), rtol=0, atol=1e-10)

    def test_trained_networks_record_every_method_of_the_table(self):
        experiment = Experiment("table-2", "authors-code", "linearized", 1, **SMALL)
        setting = experiment.settings[0]
        preparation = prepare(experiment, setting)
        first, *others = (Trial(experiment, setting, preparation, repetition) for repetition in range(3))
        found = list(first.records(experiment.methods))
        assert [record["method"] for record in found] == list(experiment.methods)
        found += [record for trial in others for record in trial.records(("pnc", "base_network"))]
        errors = {method: np.mean([r["mse"] for r in found if r["method"] == method]) for method in ("pnc", "base_network")}
        assert errors["pnc"] < errors["base_network"]


def test_workers_change_nothing(tmp_path):
    experiment = Experiment("table-1", "paper", repetitions=3, **SMALL)
    one = reproduce(experiment, tmp_path / "one", n_jobs=1, verbose=False)
    two = reproduce(experiment, tmp_path / "two", n_jobs=2, verbose=False)
    assert one == two


@pytest.mark.parametrize(("n_kills", "n_jobs", "dimensions"), [(2, 1, "2"), pytest.param(10, 2, "2,4", marks=pytest.mark.slow)])
def test_a_killed_run_goes_on_to_the_same_bytes(tmp_path, n_kills, n_jobs, dimensions):
    arguments = ["reproduce", "table-1", "--repetitions", str(8 * n_kills), "--sizes", "128", "--dimensions", dimensions]
    arguments += ["--methods", "batching,sectioning", "--n-jobs", str(n_jobs), "--resume", "--out"]
    command = [sys.executable, "-m", "unseed", *arguments, str(tmp_path / "killed")]
    rng = random.Random(0)
    killed = 0
    for kill in range(n_kills):
        process = subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, stderr=subprocess.DEVNULL)
        path = tmp_path / "killed" / "records.table-1.paper.kernel.jsonl"
        before = path.stat().st_size if path.exists() else 0
        is_any_time = kill % 3 == 2  # two of three kills come when something has been written
        while not is_any_time and process.poll() is None and (not path.exists() or path.stat().st_size == before):
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 8 if is_any_time else 0.1))
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            killed += 1
        process.wait()
    assert killed
    for folder in ("killed", "whole"):
        assert CliRunner().invoke(app, [*arguments, str(tmp_path / folder)]).exit_code == 0
    name = "summary.table-1.paper.kernel.json"
    assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    lines = (tmp_path / "killed" / "records.table-1.paper.kernel.jsonl").read_text().splitlines()
    assert len(lines) == len(dimensions.split(",")) * 8 * n_kills * 2  # settings, two methods: none lost, none doubled


@pytest.mark.usefixtures("small_population")
class TestCommand:
    def test_writes_records_summary_and_reports(self, tmp_path):
        arguments = ["reproduce", "table-1", "--repetitions", "2", "--sizes", "128", "--dimensions", "2", "--n-jobs", "1"]
        result = CliRunner().invoke(app, [*arguments, "--methods", "batching,bootstrap", "--out", str(tmp_path)])
        assert result.exit_code == 0, result.output
        name = "table-1.paper.kernel"
        files = {f"records.{name}.jsonl", f"summary.{name}.json", f"report.{name}.md", f"report.{name}.html"}
        files |= {f"records.{name}.lock"}
        assert {path.name for path in tmp_path.iterdir()} == files
        page = (tmp_path / f"report.{name}.html").read_text()
        assert page.count("data:image/png") == 3
        assert "http" not in page.replace("http-equiv", "")
        summary = json.loads((tmp_path / f"summary.{name}.json").read_text())
        assert summary["command"].startswith("unseed reproduce table-1 --protocol paper --engine kernel --repetitions 2")

    def test_table_7_needs_no_run(self, tmp_path):
        result = CliRunner().invoke(app, ["reproduce", "table-7", "--out", str(tmp_path)])
        assert result.exit_code == 0
        assert "0.887" in (tmp_path / "report.table-7.md").read_text()

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["table-8"], "table='table-8' is not known; use table-1"),
            (["table-1", "--protocol", "mine"], "protocol='mine' is not known; use paper, authors-code, default"),
            (["table-1", "--engine", "gpu"], "engine='gpu' is not known"),
            (["table-1", "--methods", "magic"], "methods='magic' is not known for table-1"),
            (["table-1", "--methods", "auto"], "methods='auto' is not known for table-1 under protocol 'paper'"),
            (["table-2", "--methods", "batching"], "methods='pnc_batching' is not known for table-2"),
            (["table-1", "--sizes", "100"], "sizes=100 is not known; use 128, 256, 512, 1024"),
            (["table-1", "--sizes", "many"], "sizes='many' must be whole numbers"),
            (["table-1", "--sizes", ","], "sizes=',' must be whole numbers"),
            (["table-1", "--methods", ","], "methods=',' is empty"),
            (["table-7", "--repetitions", "5"], "table-7 is a formula"),
            (["table-5", "--sizes", "128"], "table-5 has real data; sizes and dimensions are for tables 1 to 4"),
            (["all", "--methods", "magic"], "methods='magic': none of them is known"),
            (["table-1", "--repetitions", "0"], "repetitions=0 must be a whole number >= 1"),
            (["table-1", "--n-jobs", "0"], "n-jobs=0 runs nothing"),
            (["table-1", "--device", "abacus"], "device='abacus'"),
            (["table-1", "--out", "/dev/null/folder"], "is not a folder that can be written"),
        ],
    )
    def test_wrong_arguments_are_one_sentence(self, tmp_path, arguments, words):
        result = CliRunner().invoke(app, ["reproduce", "--out", str(tmp_path / "out"), *arguments])
        assert isinstance(result.exception, InvalidInputError)
        assert words in str(result.exception)
        assert not (tmp_path / "out").exists()

    def test_records_anywhere_stop_all_tables_before_the_first(self, tmp_path):
        (tmp_path / "records.table-4.paper.kernel.jsonl").write_text("")
        result = CliRunner().invoke(app, ["reproduce", "all", "--quick", "--out", str(tmp_path)])
        assert "has records of an earlier run" in str(result.exception)
        assert len(list(tmp_path.iterdir())) == 1

    def test_options_go_to_the_tables_they_are_for(self, tmp_path, monkeypatch):
        seen = []
        monkeypatch.setattr("unseed_paper.command.reproduce", lambda experiment, *_, **__: seen.append(experiment))
        monkeypatch.setattr("unseed_paper.command.load", lambda _: None)
        arguments = ["reproduce", "all", "--protocol", "all", "--methods", "batching,auto", "--sizes", "256,128,128"]
        result = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path)])
        assert result.exit_code == 0, result.output
        methods = {(e.table, e.protocol): e.methods for e in seen}
        assert set(methods) == {(f"table-{t}", p) for t in (1, 3, 5) for p in ("paper", "authors-code", "default")}
        assert methods["table-1", "default"] == ("pnc_batching", "auto")
        assert methods["table-1", "paper"] == ("pnc_batching",)
        assert {e.sizes for e in seen if e.table == "table-1"} == {(128, 256)}
        explicit = Experiment("table-1", quick=True, sizes=(512,))
        assert explicit.sizes == (512,)

    def test_a_missing_package_is_named_before_anything_runs(self, tmp_path, monkeypatch):
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        result = CliRunner().invoke(app, ["reproduce", "table-1", "--out", str(tmp_path / "out")])
        assert "reproducing tables needs matplotlib" in str(result.exception)

    def test_damaged_records_are_named(self, tmp_path):
        path = tmp_path / "records.table-1.paper.kernel.jsonl"
        path.write_text('{"setting": "x"}\n')
        with pytest.raises(InvalidInputError, match=r"kernel.jsonl, line 1, is not a record"):
            RecordFile(path).read()

    def test_without_data_the_real_tables_are_refused_or_left_out(self, tmp_path, monkeypatch):
        load.cache_clear()
        monkeypatch.setenv("UNSEED_DATA", str(tmp_path))
        runner = CliRunner()
        result = runner.invoke(app, ["reproduce", "table-5", "--out", str(tmp_path / "out")])
        assert "has no file boston.csv" in str(result.exception)
        arguments = ["reproduce", "all", "--repetitions", "1", "--sizes", "128", "--dimensions", "2", "--n-jobs", "1"]
        arguments += ["--methods", "batching,base"]
        result = runner.invoke(app, [*arguments, "--out", str(tmp_path / "out")])
        assert result.exit_code == 0, result.output
        assert "Tables 5 and 6 are left out" in result.output
        assert len(list((tmp_path / "out").glob("summary.*.json"))) == 4


class TestRealData:
    @pytest.fixture
    def folder(self, tmp_path, monkeypatch):
        """A small made-up stand-in for a data set."""
        rng = np.random.default_rng(0)
        table = rng.normal(size=(60, 9))
        table[:, 8] = table[:, 0] + 0.1 * table[:, 1] ** 2
        header = ",".join(f"c{i}" for i in range(9))
        for name in ("concrete", "energy"):
            np.savetxt(tmp_path / f"{name}.csv", table, delimiter=",", header=header, comments="")
        load.cache_clear()
        monkeypatch.setenv("UNSEED_DATA", str(tmp_path))
        yield tmp_path
        load.cache_clear()

    def test_only_noise_varies(self, folder):
        setting = Simulated("concrete", 1)
        first, second = setting.sample(0), setting.sample(1)
        assert_allclose(first.X, second.X)
        assert 0.05 < np.std(first.y - second.y) / np.sqrt(2) < 0.2  # 0.1, from 48 rows
        assert len(first.X) == setting.n == 48
        places = setting.places()
        assert (places.n_own, len(places.X)) == (5, 12)
        assert_allclose(places.X, first.X_test)  # none of them was trained on
        X, y = setting.population(2048)
        assert_allclose(X, first.X)
        assert np.std(y - first.y) < 0.2

    def test_splits_differ(self, folder):
        one, two = Split("energy", 1), Split("energy", 2)
        assert one.rows == [{"dataset": "energy", "test": 1}]
        assert (one.sample(0).X != two.sample(0).X).any()

    def test_tables_of_real_data(self, folder, monkeypatch):
        monkeypatch.setattr("unseed_paper.problems.DATASETS", ("concrete",))
        for table, n_rows in (("table-5", 5), ("table-6", 5)):
            methods = ("batching", "sectioning") if table == "table-5" else ()
            experiment = Experiment(table, "authors-code", repetitions=2, methods=methods)
            summary = reproduce(experiment, Path(folder) / table, n_jobs=1, verbose=False)
            assert len(summary["rows"]) == n_rows * len(experiment.methods)
            assert all(row["theirs"] for row in summary["rows"] if row["method"] != "sectioning")

    def test_openml_serves_where_no_folder_is_named(self, folder, monkeypatch):
        monkeypatch.delenv("UNSEED_DATA")
        asked = {}

        def fetch(**options):
            asked.update(options)
            return type("Bunch", (), {"data": np.arange(20.0 * 10).reshape(20, 10) ** 1.1})

        monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
        X, y = load("energy")
        assert asked["data_id"] == 1472
        assert (X.shape, y.shape) == ((20, 8), (20,))

        def fail(**options):
            raise OSError("no network")

        load.cache_clear()
        monkeypatch.setattr("sklearn.datasets.fetch_openml", fail)
        with pytest.raises(InvalidInputError, match=r"'energy' could not be fetched from OpenML \(OSError\); set UNSEED_DATA"):
            load("energy")

    def test_a_broken_file_is_named(self, folder):
        (folder / "boston.csv").write_text("a,b\n1,x\n")
        with pytest.raises(InvalidInputError, match=r"boston.csv is not a table of numbers"):
            load("boston")
        (folder / "boston.csv").write_text("a,b\n1,2\n")
        with pytest.raises(InvalidInputError, match="13 features and a target are needed"):
            load("boston")


def test_data_sets_are_the_same_everywhere():
    sample = Synthetic("synthetic-2", 2, 128).sample(0)
    assert_allclose([*sample.X[0], sample.y[0]], PINNED, rtol=1e-12)
    assert (sample.X[0] != Synthetic("synthetic-2", 2, 128).sample(1).X[0]).all()
