"""``unseed fit``, ``predict``, ``report`` and ``diagnose`` as a user meets them."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import table_files as files
import unseed
from unseed import PNCRegressor
from unseed_app import __main__
from unseed_app.cli import app
from unseed_app.commands.console import Console

N = 36


def towns(n=N, seed=0):
    rng = np.random.default_rng(seed)
    size, city = rng.uniform(20, 120, n).round(1), rng.choice(["Bern", "Oslo", "Rome"], n)
    frame = pd.DataFrame({"size": size, "city": city, "day": [f"2024-03-{i % 28 + 1:02d}" for i in range(n)]})
    frame["rent"] = (10 * size + 200 * (city == "Oslo") + rng.normal(size=n)).round(2)
    frame["cost"] = (3 * size + rng.normal(size=n)).round(2)
    return frame


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("towns")
    towns().to_csv(folder / "towns.csv", index=False)
    arguments = [
        "fit",
        str(folder / "towns.csv"),
        "--target",
        "rent",
        "--drop",
        "cost",
        "--out",
        str(folder / "model"),
        "--quiet",
    ]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    assert result.output == ""
    return folder / "model"


def new_rows(**changes):
    return towns(8).drop(columns=["rent", "cost"]).assign(**changes)


def invoke(*arguments):
    result = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def refused(monkeypatch, capsys, *arguments):
    """Standard error of a command that ends with code 1 and one line."""
    monkeypatch.setattr(sys, "argv", ["unseed", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        __main__.main()
    said = capsys.readouterr().err
    assert stopped.value.code == 1
    assert said.startswith("unseed: ")
    assert said.count("\n") == 1
    return said


def test_fit_says_what_it_does(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    towns().to_csv("towns.csv", index=False, sep=";")
    said = invoke("fit", "towns.csv", "--target", "rent,cost")
    assert "Note: the delimiter is ';'." in said
    assert "36 rows, 3 columns: size number, city category (3 levels), day date → days since 2024-03-01" in said
    assert "target 'rent', 'cost'." in said
    assert "Left-out rows (36): 'rent' is predicted with an error of" in said
    assert "Left-out rows (36): 'cost'" in said
    assert "Model: towns-model. Everything took" in said
    about = json.loads(Path("towns-model/table.json").read_text())
    assert about["source"] == "towns.csv"
    assert about["rows"] == 36
    assert about["targets"] == ["rent", "cost"]
    estimator = PNCRegressor.load("towns-model")
    cities = ["city = Bern", "city = Oslo", "city = Rome"]
    assert list(estimator.feature_names_in_) == ["size", *cities, "day (days since 2024-03-01)"]


def test_a_table_from_a_german_spreadsheet(tmp_path):
    frame = towns().drop(columns="cost")
    frame.to_csv(tmp_path / "t.csv", index=False, sep=";", decimal=",", encoding="utf-8-sig")
    said = invoke("fit", tmp_path / "t.csv", "--target", "rent", "--out", tmp_path / "m", "--interval", "batching")
    assert [line for line in said.splitlines() if "Note" in line] == [
        "Note: a byte-order mark at the beginning was skipped.",
        "Note: the delimiter is ';'.",
        "Note: decimal commas were read as points: 'size'.",
        "Note: decimal commas were read as points: 'rent'.",
    ]
    invoke("predict", tmp_path / "m", tmp_path / "t.csv", "--out", tmp_path / "out.csv")
    assert np.corrcoef(pd.read_csv(tmp_path / "out.csv")["rent_mean"], frame["rent"])[0, 1] > 0.9


def test_predict_keeps_the_table_and_adds_columns(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = Path("new.csv")
    path.write_text('size,city,day,comment\n50.50,Rome,2024-03-05,"a, b"\n 070,Oslo,2024-03-06,\n')
    said = invoke("predict", model, path, "--level", "0.9")
    assert "Note: not used, because the model does not know it: 'comment'." in said
    assert "'rent': 90 % intervals for the function, and for one new observation" in said
    assert "Intervals: new-intervals.csv (2 rows, 6 columns added)." in said
    written = pd.read_csv("new-intervals.csv", dtype=str, keep_default_na=False)
    assert written["size"].tolist() == ["50.50", " 070"]  # as they stood
    assert written["comment"].tolist() == ["a, b", ""]
    assert list(written.columns[4:]) == [
        *("rent_mean", "rent_mean_se", "rent_mean_ci_lower", "rent_mean_ci_upper", "rent_obs_ci_lower", "rent_obs_ci_upper")
    ]
    X = np.array([[50.5, 0, 0, 1, 4], [70, 0, 1, 0, 5]])
    estimator = PNCRegressor.load(model)
    X = pd.DataFrame(X, columns=estimator.feature_names_in_)
    expected = estimator.get_prediction(X).summary_frame(0.9)
    np.testing.assert_allclose(written.iloc[:, 4:].astype(float), expected, rtol=1e-9)


def test_the_same_rows_from_every_format_have_the_same_intervals(model, tmp_path):
    frame = new_rows()
    frame.to_csv(tmp_path / "new.csv", index=False)
    frame.assign(day=pd.to_datetime(frame["day"])).to_parquet(tmp_path / "new.parquet")
    frame.assign(day=pd.to_datetime(frame["day"])).to_excel(tmp_path / "new.xlsx", index=False)
    frame[["day", "city", "size"]].to_csv(tmp_path / "new.tsv", index=False, sep="\t")
    outputs = []
    for name in ("new.csv", "new.parquet", "new.xlsx", "new.tsv"):
        out = tmp_path / f"{name}.parquet"
        said = invoke("predict", model, tmp_path / name, "--out", out)
        assert ("in another order" in said) == (name == "new.tsv")
        written = pd.read_parquet(out)
        assert written["size"].tolist() == frame["size"].tolist()
        outputs.append(written.filter(like="rent_").to_numpy())
    for other in outputs[1:]:
        np.testing.assert_array_equal(other, outputs[0])


def test_several_targets_have_a_set_of_columns_each(tmp_path):
    towns().to_csv(tmp_path / "towns.csv", index=False)
    invoke("fit", tmp_path / "towns.csv", "--target", "rent,cost", "--out", tmp_path / "m", "--quiet", "--interval", "batching")
    said = invoke("predict", tmp_path / "m", tmp_path / "towns.csv", "--out", tmp_path / "out.csv")
    written = pd.read_csv(tmp_path / "out.csv")
    assert len(written.columns) == 5 + 12
    assert "'rent': 95 %" in said
    assert "'cost': 95 %" in said
    for target in ("rent", "cost"):
        assert (written[f"{target}_obs_ci_lower"] <= written[f"{target}_mean_ci_lower"]).all()
        assert np.corrcoef(written[f"{target}_mean"], written[target])[0, 1] > 0.9


def test_json_and_quiet(model, tmp_path):
    new_rows().to_csv(tmp_path / "new.csv", index=False)
    towns().to_csv(tmp_path / "towns.csv", index=False)
    fitted = json.loads(invoke("fit", tmp_path / "towns.csv", "--target", "rent", "--out", tmp_path / "m", "--json"))
    assert fitted["rows"] == N
    assert fitted["leave_one_out"]["rent"]["r_squared"] > 0.9
    assert [column["kind"] for column in fitted["columns"]] == ["number", "category", "date", "number"]
    predicted = json.loads(invoke("predict", model, tmp_path / "new.csv", "--out", tmp_path / "out.csv", "--json"))
    assert predicted["rows"] == 8
    assert predicted["added"][0] == "rent_mean"
    diagnosed = json.loads(invoke("diagnose", model, tmp_path / "new.csv", "--json"))
    assert diagnosed["far_rows"] == []
    assert all(finding["holds"] == (finding["value"] < finding["limit"]) for finding in diagnosed["findings"])
    assert invoke("predict", model, tmp_path / "new.csv", "--out", tmp_path / "out.csv", "--quiet") == ""
    assert invoke("diagnose", model, "--quiet") == ""


def test_diagnose_names_rows_that_are_far(model, tmp_path):
    assert "ok    condition number" in invoke("diagnose", model)
    path = tmp_path / "new.csv"
    new_rows(size=[50.0] * 7 + [5000.0]).to_csv(path, index=False)
    assert f"Far from the training rows: row 8 of {path}." in invoke("diagnose", model, path)


def test_report_says_how_sure_it_is(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    towns(12, seed=1).drop(columns="cost").assign(name=[f"house {i}" for i in range(12)]).to_csv("new.csv", index=False)
    said = invoke("report", model, "new.csv", "--level", "0.9", "--label", "name")
    assert "rent: RMSE" in said
    assert "of 12 observed values are inside their 90 % prediction intervals." in said
    assert "Report: new-report.html (12 rows, 0." in said
    page = Path("new-report.html").read_text(encoding="utf-8")
    assert "house 11" in page
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert sorted(data["features"]) == ["city", "day (days since 2024-03-01)", "size"]
    city = data["features"].index("city")
    assert data["levels"][city] == ["Bern", "Oslo", "Rome"]
    assert [data["levels"][city][code] for code in data["x"][city]] == towns(12, seed=1)["city"].tolist()
    assert f"unseed report {model} new.csv --level 0.9 --label name" in page
    assert "model fitted to towns.csv (36 rows)" in page
    assert "36 rows, 3 features" in page  # a loaded model knows what it was trained on


def test_report_without_the_target_has_no_accuracy(model, tmp_path):
    new_rows().to_csv(tmp_path / "new.csv", index=False)
    new_rows(rent="").to_csv(tmp_path / "empty.csv", index=False)
    for name in ("new.csv", "empty.csv"):
        out = tmp_path / "r.html"
        said = invoke("report", model, tmp_path / name, "--out", out)
        assert "Note: no values of 'rent' in the table, so the page has no accuracy and no calibration." in said
        assert "RMSE" not in said
        assert "no observed values were given" in out.read_text(encoding="utf-8")
        assert '"labels":["1","2",' in out.read_text(encoding="utf-8")  # rows count from 1, as in every message


def test_report_of_one_row_and_of_observed_values_that_do_not_vary(model, tmp_path):
    towns(1, seed=1).to_csv(tmp_path / "one.csv", index=False)
    found = json.loads(invoke("report", model, tmp_path / "one.csv", "--out", tmp_path / "r.html", "--json"))
    assert found["rows"] == found["accuracy"]["rent"]["n_rows"] == 1
    assert found["accuracy"]["rent"]["r_squared"] is None
    assert found["far_rows"] == []


def test_report_knows_the_training_table(model, tmp_path):
    towns().to_csv(tmp_path / "towns.csv", index=False)
    out = tmp_path / "r.html"
    assert "look like the rows that the model was trained on" in invoke("report", model, tmp_path / "towns.csv", "--out", out)
    assert "look like the rows that the model was trained on" in out.read_text(encoding="utf-8")
    assert invoke("report", model, tmp_path / "towns.csv", "--out", out, "--quiet") == ""


@pytest.mark.parametrize("most_rows", [100, 10_000])
def test_report_of_several_targets(most_rows, tmp_path, monkeypatch):
    monkeypatch.setattr("unseed.engines._solver._EXACT_ROWS", most_rows)
    towns(160).to_csv(tmp_path / "towns.csv", index=False)
    invoke("fit", tmp_path / "towns.csv", "--target", "rent,cost", "--out", tmp_path / "m", "--quiet")
    towns(20).to_csv(tmp_path / "new.csv", index=False)
    said = invoke("report", tmp_path / "m", tmp_path / "new.csv", "--out", tmp_path / "r.html")
    assert "rent: RMSE" in said
    assert "cost: RMSE" in said
    towns(20).drop(columns="cost").to_csv(tmp_path / "new.csv", index=False)
    said = invoke("report", tmp_path / "m", tmp_path / "new.csv", "--out", tmp_path / "r.html")
    assert "no values of 'cost' in the table" in said


def test_missing_values_are_imputed_when_asked_for(model, tmp_path, monkeypatch, capsys):
    path = tmp_path / "new.csv"
    new_rows(size=[""] + ["50"] * 7).to_csv(path, index=False)
    said = refused(monkeypatch, capsys, "predict", model, path, "--out", tmp_path / "out.csv")
    assert "row 1 (line 2), column 'size': the value is missing; fill it in, or add --impute median" in said
    said = invoke("predict", model, path, "--out", tmp_path / "out.csv", "--impute", "median")
    assert "Note: 1 missing value filled with the training median or most frequent text: 'size'." in said
    assert pd.read_csv(tmp_path / "out.csv")["size"].isna()[0]  # the input's own cell stays as it was


def test_a_model_that_imputes_remembers_it(tmp_path):
    frame = towns()
    frame.loc[3, "size"] = np.nan
    frame.to_csv(tmp_path / "towns.csv", index=False)
    arguments = ("--target", "rent", "--drop", "cost", "--impute", "median", "--out", tmp_path / "m", "--interval", "batching")
    assert "1 missing value filled" in invoke("fit", tmp_path / "towns.csv", *arguments)
    assert "1 missing value filled" in invoke("predict", tmp_path / "m", tmp_path / "towns.csv", "--out", tmp_path / "o.csv")


NEW_FAULTS = {
    "a column missing": (lambda: new_rows().drop(columns="city"), "has no column 'city', which the model needs; it has 'size'"),
    "an unknown category": (
        lambda: new_rows(city=["Rome"] * 7 + ["Paris"]),
        "row 8 (line 9), column 'city': the category 'Paris' was not in the training rows; known are 'Bern', 'Oslo', 'Rome'",
    ),
    "a date that is none": (lambda: new_rows(day="2023-02-29"), "row 1 (line 2), column 'day': '2023-02-29' is not a date"),
    "text in a number": (lambda: new_rows(size="large"), "row 1 (line 2), column 'size': 'large' is not a number"),
    "an output of predict": (lambda: new_rows(rent_mean=1.0), "has a column 'rent_mean' already, which would be added"),
}


@pytest.mark.parametrize("name", NEW_FAULTS)
def test_new_rows_that_do_not_fit_are_refused_and_nothing_is_lost(name, model, tmp_path, monkeypatch, capsys):
    make, sentence = NEW_FAULTS[name]
    out = tmp_path / "out.csv"
    out.write_text("precious")
    make().to_csv(tmp_path / "new.csv", index=False)
    assert sentence in refused(monkeypatch, capsys, "predict", model, tmp_path / "new.csv", "--out", out)
    assert sentence in refused(monkeypatch, capsys, "predict", model, tmp_path / "new.csv", "--out", out, "--json")
    if name != "an output of predict":
        page = tmp_path / "out.html"
        assert sentence in refused(monkeypatch, capsys, "report", model, tmp_path / "new.csv", "--out", page)
    assert out.read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.csv", "out.csv"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["predict", "MODEL", "NEW", "--out", "NEW"], "is the input itself, which would be lost"),
        (["predict", "MODEL", "NEW", "--out", "/proc/out.csv"], "out='/proc/out.csv' cannot be written"),
        (["predict", "MODEL", "NEW", "--out", "out.xlsx"], "out='out.xlsx' must end in .csv or .tsv or .parquet or .pq"),
        (["predict", "MODEL", "NEW", "--level", "95"], "level=95.0 is not a confidence level"),
        (["predict", "MODEL", "absent.csv"], "absent.csv could not be read: No such file or directory"),
        (["predict", "absent", "NEW"], "absent does not exist"),
        (["predict", "NEW", "NEW"], "new.csv is a file"),
        (["diagnose", "."], "model.json"),
        (["report", "MODEL", "NEW", "--out", "NEW"], "must end in .html or .htm"),
        (["report", "MODEL", "NEW", "--out", "/proc/r.html"], "out='/proc/r.html' cannot be written"),
        (["report", "MODEL", "NEW", "--level", "95"], "level=95.0 is not a confidence level"),
        (["report", "MODEL", "NEW", "--label", "nme"], "label 'nme' is not a column of new.csv"),
        (["report", "MODEL", "NEW", "--label", "size,city"], "names 2 columns; rows are called after one"),
        (["report", "absent", "NEW"], "absent does not exist"),
        (["fit", "NEW", "--target", "size", "--interval", "magic"], "interval='magic' is not known"),
        (["fit", "NEW", "--target", "size", "--device", "abacus"], "device='abacus' is not known"),
        (["fit", "NEW", "--target", "size", "--jobs", "0"], "jobs=0 runs nothing"),
        (["fit", "NEW", "--target", "size", "--drop", "colour"], "drop 'colour' is not a column of"),
        (["fit", "NEW", "--target", "Sizes"], "target 'Sizes' is not a column of new.csv; did you mean 'size'?"),
        (["fit", "NEW", "--target", "size,size"], "target names 'size' twice"),
        (["fit", "NEW", "--target", "size", "--out", "NEW"], "new.csv is a file"),
        (["fit", "NEW", "--target", "size", "--out", "."], "holds no unseed model"),
        (["fit", "NEW", "--target", "size", "--out", "no/where"], "the folder 'no' does not exist"),
    ],
)
def test_what_the_command_line_asks_for_in_vain(arguments, sentence, model, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    new_rows().to_csv("new.csv", index=False)
    before = Path("new.csv").read_text()
    places = {"MODEL": model, "NEW": "new.csv"}
    assert sentence in refused(monkeypatch, capsys, *(places.get(word, word) for word in arguments))
    assert Path("new.csv").read_text() == before


def test_a_model_survives_a_fit_that_fails(model, tmp_path, monkeypatch, capsys):
    copy = tmp_path / "model"
    shutil.copytree(model, copy)
    path = files.with_line(4, "3,x,1")(tmp_path)
    before = {file.name: file.read_bytes() for file in copy.iterdir()}
    refused(monkeypatch, capsys, "fit", path, "--target", "y", "--out", copy)
    assert {file.name: file.read_bytes() for file in copy.iterdir()} == before
    new_rows().to_csv(tmp_path / "new.csv", index=False)
    invoke("predict", copy, tmp_path / "new.csv", "--out", tmp_path / "out.csv", "--quiet")


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-20],
        lambda text: text.replace('"number"', '"magic"'),
        lambda text: text.replace('"YYYY-MM-DD"', '"soon"'),
        lambda text: "[]",
    ],
)
def test_a_damaged_model_is_refused(damage, model, tmp_path, monkeypatch, capsys):
    copy = tmp_path / "model"
    shutil.copytree(model, copy)
    (copy / "table.json").write_text(damage((copy / "table.json").read_text()))
    new_rows().to_csv(tmp_path / "new.csv", index=False)
    assert "table.json" in refused(monkeypatch, capsys, "predict", copy, tmp_path / "new.csv", "--out", tmp_path / "out.csv")


def test_many_rows_are_summed_up(tmp_path, monkeypatch):
    monkeypatch.setattr("unseed.engines._solver._EXACT_ROWS", 100)
    monkeypatch.setattr("unseed.engines._solver._ALL_ROWS", 150)
    towns(160).to_csv(tmp_path / "towns.csv", index=False)
    invoke("fit", tmp_path / "towns.csv", "--target", "rent", "--drop", "cost", "--out", tmp_path / "m")
    assert isinstance(PNCRegressor.load(tmp_path / "m").solver_, unseed.Landmarks)
    invoke("predict", tmp_path / "m", tmp_path / "towns.csv", "--out", tmp_path / "out.csv")
    written = pd.read_csv(tmp_path / "out.csv")
    assert (written["rent_mean_ci_lower"] < written["rent_mean_ci_upper"]).all()
    assert "landmarks" in invoke("diagnose", tmp_path / "m")


def test_a_fit_that_is_interrupted_leaves_nothing(tmp_path):
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.normal(size=(2000, 6)), columns=list("abcdey")).to_csv(tmp_path / "t.csv", index=False)
    environment = os.environ | {"PYTHONPATH": str(Path(unseed.__file__).parents[1])}
    command = [sys.executable, "-m", "unseed", "fit", "t.csv", "--target", "y"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        begun = b""
        while b"choosing the network" not in begun:
            begun += process.stderr.read(1)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in said
    assert os.listdir(tmp_path) == ["t.csv"]


def test_names_with_spaces_can_be_copied_from_what_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    towns().to_csv("my töwns.csv", index=False)
    said = invoke("fit", "my töwns.csv", "--target", "rent", "--interval", "batching")
    assert "Next: unseed predict 'my töwns-model' new.csv" in said
    invoke("report", "my töwns-model", "my töwns.csv")
    assert Path("my töwns-report.html").is_file()


def test_intervals_without_an_end_have_no_page(tmp_path, monkeypatch, capsys):
    towns(12).filter(["size", "rent"]).to_csv(tmp_path / "all.csv", index=False)
    towns(2).filter(["size", "rent"]).to_csv(tmp_path / "two.csv", index=False)
    invoke("fit", tmp_path / "two.csv", "--target", "rent", "--out", tmp_path / "m", "--quiet")
    said = refused(monkeypatch, capsys, "report", tmp_path / "m", tmp_path / "all.csv", "--out", tmp_path / "r.html")
    assert "the interval of row 1 has no end (and 11 more have none): it is too far from the training rows, or these" in said
    assert not (tmp_path / "r.html").exists()


def test_what_numpy_warns_of_is_said_in_words(capsys):
    console = Console()
    with console.working():
        np.float64(1e200) ** 2
    said = "Note: the arithmetic came to its limits (overflow encountered in scalar power)"
    assert capsys.readouterr().out.startswith(said)


def test_a_link_to_nowhere_is_not_followed(model, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    towns().to_csv("towns.csv", index=False)
    Path("link").symlink_to(tmp_path / "no" / "where")
    said = refused(monkeypatch, capsys, "fit", "towns.csv", "--target", "rent", "--out", "link")
    assert "out='link' is a link to" in said
    assert not Path("no").exists()


@pytest.mark.parametrize("command", ["fit", "predict", "diagnose", "report"])
def test_help_and_usage(command):
    assert "--quiet" in invoke(command, "--help")
    assert CliRunner().invoke(app, [command]).exit_code == 2
    assert CliRunner().invoke(app, [command, "a", "b", "--impute", "mean"]).exit_code == 2


def test_the_help_of_fit_states_the_rules():
    said = " ".join(invoke("fit", "--help").split())
    for rule in (
        "become days since",
        "one column of 0 and 1 for each value",
        "is refused with its row and column",
        "20,000 rows",
    ):
        assert rule in said


DATA = Path(os.environ.get("UNSEED_DATA", "absent")).resolve()


@pytest.mark.skipif(not (DATA / "concrete.csv").is_file(), reason="UNSEED_DATA names no folder with concrete.csv")
def test_concrete_works_at_the_first_try_in_half_a_minute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = DATA / "concrete.csv"
    for arguments in (("fit", data, "--target", "strength"), ("predict", "concrete-model", data)):
        start = time.perf_counter()
        invoke(*arguments)
        assert time.perf_counter() - start < 30
    written = pd.read_csv(tmp_path / "concrete-intervals.csv")
    inside = (written["strength_obs_ci_lower"] <= written["strength"]) & (
        written["strength"] <= written["strength_obs_ci_upper"]
    )
    assert inside.mean() > 0.93
