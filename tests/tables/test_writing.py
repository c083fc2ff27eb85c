"""Outputs appear whole or not at all."""

from pathlib import Path

import pandas as pd
import pytest

import table_files as files
from unseed.errors import InvalidInputError
from unseed_app.tables import check_output, read_table, write_table

FRAME = pd.DataFrame({"name": ['a "quoted", one', "two\nlines", ""], "value": [0.1, float("nan"), 1e-300]})


def test_text_comes_back_as_it_was(tmp_path):
    for name in ("out.csv", "out.tsv"):
        write_table(FRAME, tmp_path / name)
        back = read_table(tmp_path / name)
        assert back.frame["name"].tolist() == FRAME["name"].tolist()
        assert back.frame["value"].tolist() == ["0.1", "", "1e-300"]


def test_types_of_parquet_are_kept(tmp_path):
    source = files.parquet(i=[1, None], t=["x", None], d=pd.to_datetime(["2024-01-01", None]))(tmp_path)
    table = read_table(source)
    write_table(table.frame.assign(new=[1.0, 2.0]), tmp_path / "out.parquet")
    before, after = (pd.read_parquet(path, dtype_backend="pyarrow") for path in (source, tmp_path / "out.parquet"))
    pd.testing.assert_frame_equal(after[["i", "t", "d"]], before)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("table.xlsx", "must end in .csv or .parquet"),
        ("nowhere/out.csv", "the folder '.*nowhere' does not exist; make it first"),
        ("table.csv", "is the input itself, which would be lost"),
        ("link.csv", "is the input itself, which would be lost"),
        ("folder.csv", "is a folder; name a file"),
    ],
)
def test_places_that_are_refused_before_any_work(tmp_path, name, sentence):
    source = files.text(files.GOOD)(tmp_path)
    (tmp_path / "link.csv").symlink_to(source)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InvalidInputError, match=sentence):
        check_output(tmp_path / name, inputs=(source,), extensions=(".csv", ".parquet"))


def test_a_place_that_nobody_can_write(tmp_path):
    with pytest.raises(InvalidInputError, match=r"out='/proc/out\.csv' cannot be written"):
        check_output(Path("/proc/out.csv"))
