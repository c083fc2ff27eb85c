"""The command line as a user meets it: in a process of its own."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

import table_files as files
from unseed import MLP, PNCRegressor, __version__
from unseed_app import __main__, demo
from unseed_app.cli import app


def test_demo_shows_a_table_and_saves_a_figure(tmp_path):
    figure = tmp_path / "figure.png"
    result = CliRunner().invoke(app, ["demo", "--out", str(figure), "--level", "0.9"], catch_exceptions=False)
    assert result.exit_code == 0
    assert "90 % confidence intervals" in result.output
    assert "patient  observed  predicted" in result.output
    assert "± seed" in result.output
    assert "Everything took" in result.output
    assert figure.stat().st_size > 10_000
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "How sure is it about" in page
    assert "unseed demo --level 0.9 --interval auto --seed 0" in page


@pytest.fixture
def given_network(monkeypatch):
    """The demonstration without the seconds in which it chooses a network."""
    options = {"network": MLP(bias_scale=1.0, scale_inputs=True), "regularization": 0.1}
    monkeypatch.setattr(demo, "PNCRegressor", partial(PNCRegressor, **options))


@pytest.mark.parametrize("interval", ["batching", "cheap_bootstrap", "half_sampling", "infinitesimal_jackknife"])
def test_demo_with_every_interval(tmp_path, interval, given_network):
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "f.png"), "--interval", interval])
    assert result.exit_code == 0


def test_version_and_help():
    assert CliRunner().invoke(app, ["--version"]).output == f"unseed {__version__}\n"
    assert "demo" in CliRunner().invoke(app, ["--help"]).output


def test_faulty_input_ends_with_one_line_and_code_1():
    command = [sys.executable, "-m", "unseed", "demo", "--level", "95"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("unseed: level=95.0 is not a confidence level")
    assert done.stderr.count("\n") == 1


@pytest.fixture
def main(monkeypatch, capsys):
    """The command in this process: what it says on standard error, its code being 1."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["unseed", *arguments])
        with pytest.raises(SystemExit) as stopped:
            __main__.main()
        assert stopped.value.code == 1
        return capsys.readouterr().err

    return run


def test_wrong_usage_is_code_2():
    assert CliRunner().invoke(app, ["demo", "--nonsense"]).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--level", "7"], "level=7.0 is not a confidence level"),
        (["--interval", "magic"], "interval='magic' is not known"),
        (["--out", "nowhere/f.png"], "out='nowhere/f.png': the folder 'nowhere' does not exist; make it first"),
        (["--out", "f.txt"], "out='f.txt' must be a file that ends in .png"),
        (["--out", "/proc/f.png"], "out='/proc/f.png' could not be written"),
        (
            ["--report", "no/such/folder/r.html"],
            "path='no/such/folder/r.html': the folder 'no/such/folder' does not exist; make it first",
        ),
    ],
)
def test_main_turns_faults_into_one_line(main, arguments, message, given_network):
    said = main("demo", *arguments)
    assert said.startswith(f"unseed: {message}")
    assert said.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no device that is always full")
def test_a_full_disk_behind_standard_output_is_one_line():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "unseed", "--version"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr == "unseed: standard output could not be written: No space left on device\n"


def test_other_faults_of_files_are_not_explained_away(monkeypatch):
    def fail():
        raise FileNotFoundError(2, "No such file or directory", "lost.txt")

    monkeypatch.setattr("unseed_app.cli.app", fail)
    with pytest.raises(FileNotFoundError):
        __main__.main()


def test_an_interrupt_while_modules_are_loaded_is_no_traceback(monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr("unseed_app.cli.app", interrupt)
    with pytest.raises(SystemExit) as stopped:
        __main__.main()
    assert stopped.value.code == 130


def test_what_is_not_installed_is_named_with_how_to_get_it(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "unseed_app.cli", None)
    with pytest.raises(ModuleNotFoundError):  # another missing module is not explained away
        __main__.main()
    monkeypatch.delitem(sys.modules, "unseed_app.cli")
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit):
        __main__.main()
    assert capsys.readouterr().err == (
        "unseed: the command line needs typer; install it with: pip install 'unseed[cli,plots]'\n"
    )


@pytest.mark.parametrize(
    ("package", "name", "sentence"),
    [
        ("pyarrow", "table.parquet", "Parquet files need pyarrow; install it with: pip install 'unseed[parquet]'"),
        ("openpyxl", "table.xlsx", "Excel workbooks need openpyxl; install it with: pip install 'unseed[excel]'"),
    ],
)
def test_packages_that_a_table_needs_are_asked_for(tmp_path, monkeypatch, main, package, name, sentence):
    files.binary({"table.parquet": b"PAR1", "table.xlsx": b"PK\x03\x04"}[name], name)(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    assert main("fit", str(tmp_path / name), "--target", "y") == f"unseed: {sentence}\n"


def test_without_pandas_the_command_says_what_to_install():
    code = "import sys; sys.modules['pandas'] = None; from unseed_app.__main__ import main; main()"
    command = [sys.executable, "-c", code, "fit", "table.csv", "--target", "y"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = "unseed: tables need pandas; install it with: pip install 'unseed[frames]'\n"
    assert (done.returncode, done.stderr) == (1, said)
