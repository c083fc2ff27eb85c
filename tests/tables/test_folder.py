"""`unseed fit` of a folder of Parquet files: in pieces, with the figures of the whole."""

import numpy as np
import pandas as pd
import pytest

from unseed import Landmarks
from unseed.errors import InvalidInputError
from unseed_app.commands.console import Console
from unseed_app.commands.fit import fit
from unseed_app.commands.inputs import TableFile, TableModel
from unseed_app.tables import ParquetFolder

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
    fit(TableFile(path), "y", None, tmp_path / "model", quiet(), **OPTIONS)
    model = TableModel.load(tmp_path / "model")
    assert model.rows == model.estimator.n_rows_ == 10_500
    assert isinstance(model.estimator.solver_, Landmarks)


def test_files_that_differ_or_are_broken_are_named(folder, tmp_path):
    path, frame = folder
    frame.drop(columns="colour").to_parquet(path / "part-7.parquet", index=False)
    with pytest.raises(InvalidInputError, match=r"part-7.parquet has the columns \['a', 'y'\], and part-0.parquet has"):
        fit(TableFile(path), "y", None, tmp_path / "model", quiet(), **OPTIONS)
    (path / "part-7.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(InvalidInputError, match=r"part-7.parquet is a damaged Parquet file"):
        fit(TableFile(path), "y", None, tmp_path / "model", quiet(), **OPTIONS)
    assert not (tmp_path / "model").exists()
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InvalidInputError, match="is a folder without Parquet files"):
        fit(TableFile(empty), "y", None, tmp_path / "model", quiet(), **OPTIONS)
