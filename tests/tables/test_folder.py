"""`unseed fit` of a folder of Parquet files: in pieces, with the figures of the whole."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from unseed import MLP, Exact, Landmarks, PNCRegressor
from unseed._estimators import checkpoint
from unseed._estimators.summed import SummedRows
from unseed.errors import InvalidInputError, ModelFileError
from unseed_app.cli import app
from unseed_app.commands import fit as command
from unseed_app.commands.console import Console
from unseed_app.commands.fit import fit
from unseed_app.commands.inputs import TableFile, TableModel
from unseed_app.report.fitted import facts_of
from unseed_app.tables import ParquetFolder, Table

OPTIONS = {"dry_run": False, "cluster": None, "interval": "auto", "random_state": 0, "device": "cpu", "n_jobs": None}


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.uniform(-1, 1, n), "colour": rng.choice(["red", "blue"], n)})
    frame["y"] = np.sin(3 * frame.a) + (frame.colour == "red") + 0.3 * rng.standard_normal(n)
    return frame


@pytest.fixture
def folder(tmp_path):
    frame = rows(900)
    path = tmp_path / "rows"
    path.mkdir()
    for number, start in enumerate(range(0, 900, 300)):
        frame[start : start + 300].to_parquet(path / f"part-{number}.parquet", row_group_size=130, index=False)
    (path / "README.txt").write_text("not a table")
    return path, frame


def quiet():
    return Console(quiet=True)


def test_a_folder_is_fitted_as_the_table_of_all_its_rows(folder, tmp_path):
    path, frame = folder
    frame.to_parquet(tmp_path / "all.parquet", index=False)
    for source, out in ((path, "of-folder"), (tmp_path / "all.parquet", "of-file")):
        fit(TableFile(source), "y", None, tmp_path / out, quiet(), **OPTIONS)
    one, other = (TableModel.load(tmp_path / out) for out in ("of-folder", "of-file"))
    assert one.rows == other.rows == 900
    assert one.schema == other.schema
    X = np.random.default_rng(1).uniform(0, 1, (20, len(one.schema.outputs)))
    X = pd.DataFrame(X, columns=one.schema.outputs)
    np.testing.assert_allclose(one.estimator.predict_interval(X)[1], other.estimator.predict_interval(X)[1], rtol=1e-9)


def test_row_groups_come_in_order_and_as_often_as_needed(folder):
    path, _ = folder
    tables = ParquetFolder(path)
    assert tables.n_rows == 900
    for _ in range(2):
        groups = list(tables)
        assert [len(table) for table in groups] == [130, 130, 40] * 3
    assert len(tables.first()) == 900


def test_many_rows_are_summed_up(tmp_path):
    path = tmp_path / "rows"
    path.mkdir()
    rows(10_500).drop(columns="colour").to_parquet(path / "rows.parquet", row_group_size=4000, index=False)
    fit(TableFile(path), "y", None, tmp_path / "model", quiet(), solver="landmarks", **OPTIONS)
    model = TableModel.load(tmp_path / "model")
    assert model.rows == model.estimator.n_rows_ == 10_500
    assert isinstance(model.estimator.solver_, Landmarks)


# How rows are handled, and a fit that goes on


@pytest.fixture
def given_network(monkeypatch):
    """A fit without the seconds in which it chooses a network."""
    options = {"network": MLP(bias_scale=1.0, scale_inputs=True), "regularization": 1e-3}
    monkeypatch.setattr(command, "PNCRegressor", partial(PNCRegressor, **options))


def invoked(*arguments):
    done = CliRunner().invoke(app, ["fit", *map(str, arguments), "--target", "y"], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_commands_say_how_rows_are_handled(folder, tmp_path, given_network):
    path, frame = folder
    frame.to_csv(tmp_path / "rows.csv", index=False)
    for solver, options, kind, words in (
        ("auto", (), Exact, "900 rows, all at once"),
        ("landmarks", ("--landmarks", 50), Landmarks, "900 rows, summed up in the space of 50 landmarks"),
        ("all_rows", ("--landmarks", 50), None, " iterations of conjugate gradients around 50 landmarks"),
    ):
        for source in (tmp_path / "rows.csv", path)[: 1 + (solver != "all_rows")]:
            said = invoked(source, "--out", tmp_path / "m", "--solver", solver, *options)
            assert f"{words}.\n" in said
            model = PNCRegressor.load(tmp_path / "m")
            assert kind is None or isinstance(model.solver_, kind)
            assert model.handling_ in said
            assert str(model.diagnose()).startswith(f"{model.handling_}.\n")
            assert dict(facts_of(model, 3))["Rows"] == model.handling_
            asked = CliRunner().invoke(app, ["diagnose", str(tmp_path / "m"), "--json"], catch_exceptions=False)
            assert json.loads(asked.stdout)["handling"] == model.handling_


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"solver": "guess"}, "solver='guess' is not known"),
        ({"solver": "landmarks", "landmarks": 1}, "landmarks=1 must be a whole number of at least 2"),
        ({"landmarks": 50}, r"landmarks=50 has no meaning for solver='auto': add --solver landmarks or --solver all_rows"),
        ({"solver": "exact", "landmarks": 50}, "landmarks=50 has no meaning for solver='exact'"),
        ({"solver": "all_rows"}, "passes over all rows many times, and a folder is read in pieces: use one file, or solver="),
        ({"solver": "exact", "checkpoint": "new"}, "would hold sums of rows, and solver='exact' makes none"),
        ({"checkpoint": "model"}, "is the folder of the model or of the table; name another"),
        ({"checkpoint": "nowhere/new"}, "checkpoint='.*nowhere/new': the folder .* does not exist"),
        ({"checkpoint": "letters"}, "letters.* exists and holds no unseed model; choose another folder"),
        ({"checkpoint": "other"}, r"is of another model \(network differs\): give the same arguments, or another folder"),
    ],
)
def test_what_cannot_be_is_said_before_a_row_is_read(folder, tmp_path, monkeypatch, options, words):
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "one.txt").write_text("dear")
    X = np.linspace(-1, 1, 10_500)[:, None]
    other = PNCRegressor(network=MLP(bias_scale=1.0), solver=Landmarks(5), regularization=1e-3, device="cpu")
    other.fit_stream([(X, X[:, 0])], tmp_path / "other")
    monkeypatch.setattr(ParquetFolder, "files", property(lambda self: pytest.fail("no row was to be looked at yet")))
    options = {name: tmp_path / value if name == "checkpoint" else value for name, value in options.items()}
    for dry_run in (False, True):
        with pytest.raises((InvalidInputError, ModelFileError), match=words) as caught:
            fit(TableFile(folder[0]), "y", None, tmp_path / "model", quiet(), **OPTIONS | {"dry_run": dry_run} | options)
        assert "\n" not in str(caught.value)


def test_a_checkpoint_is_for_a_folder(folder, tmp_path):
    folder[1].to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(InvalidInputError, match=r"is for a folder of Parquet files; .*rows.csv is none: leave it out"):
        fit(TableFile(tmp_path / "rows.csv"), "y", None, tmp_path / "m", quiet(), **OPTIONS, checkpoint=tmp_path / "new")


def test_a_fit_of_a_folder_goes_on_where_it_was_interrupted(tmp_path, monkeypatch, given_network):
    path, added, plus = tmp_path / "rows", [], SummedRows.plus
    path.mkdir()
    rows(12_000).to_parquet(path / "rows.parquet", row_group_size=1500, index=False)
    arguments = (path, "--solver", "landmarks", "--landmarks", 40, "--out")
    assert "summed up in the space of 40 landmarks" in invoked(*arguments, tmp_path / "whole")
    read, passes = ParquetFolder.__iter__, []

    def interrupted(self):
        passes.append(1)
        for number, table in enumerate(read(self)):
            if len(passes) == 2 and number == 5:
                raise KeyboardInterrupt
            yield table

    def counted(self, X, y, *others):
        added.append(len(X))
        return plus(self, X, y, *others)

    monkeypatch.setattr(checkpoint, "_SHARE", float("inf"))  # after every piece
    monkeypatch.setattr(SummedRows, "plus", counted)
    monkeypatch.setattr(ParquetFolder, "__iter__", interrupted)
    in_pieces = (*arguments, tmp_path / "pieces", "--checkpoint", tmp_path / "so-far")
    stopped = CliRunner().invoke(app, ["fit", *map(str, in_pieces), "--target", "y"])
    assert stopped.exit_code != 0
    assert not (tmp_path / "pieces").exists()
    before = (tmp_path / "so-far" / "model.json").read_bytes()
    dry = invoked(*in_pieces, "--dry-run")
    assert "there is a checkpoint in " in dry
    assert "Nothing was written" in dry
    assert (tmp_path / "so-far" / "model.json").read_bytes() == before
    added.clear()
    assert "12,000 rows, summed up in the space of 40 landmarks" in invoked(*in_pieces)
    assert added == [1500, 1500, 1500]  # five were there
    frame = pd.DataFrame(rows(30, seed=1))
    whole, pieces = (TableModel.load(tmp_path / name) for name in ("whole", "pieces"))
    X = whole.schema.encode(Table.of(frame, list(frame), "new")).X
    np.testing.assert_allclose(pieces.estimator.predict_interval(X)[1], whole.estimator.predict_interval(X)[1], atol=1e-9)
