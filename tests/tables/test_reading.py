"""What can be read safely is read, and a note says what was done."""

import gzip

import numpy as np
import pandas as pd
import pytest

import table_files as files
from unseed.errors import InvalidInputError
from unseed_app.tables import Schema, named_columns, read_table

NOTED = {
    "plain": (files.text(files.GOOD), []),
    "a byte-order mark": (files.text(files.GOOD, encoding="utf-8-sig"), ["a byte-order mark at the beginning was skipped"]),
    "UTF-16": (files.text(files.GOOD, encoding="utf-16"), ["the file is UTF-16"]),
    "UTF-32": (files.text(files.GOOD, encoding="utf-32"), ["the file is UTF-32"]),
    "semicolons": (files.text(files.GOOD.replace(",", ";")), ["the delimiter is ';'"]),
    "tabs": (files.text(files.GOOD.replace(",", "\t"), "table.tsv"), ["the delimiter is a tab"]),
    "bars": (files.text(files.GOOD.replace(",", "|"), "table.txt"), ["the delimiter is '|'"]),
    "Windows": (files.text(files.GOOD.replace("\n", "\r\n")), []),
    "an old Macintosh": (files.text(files.GOOD.replace("\n", "\r")), []),
    "mixed line ends": (
        files.text(files.GOOD.replace("\n", "\r\n", 2)),
        ["line ends of several kinds were all taken as line ends"],
    ),
    "no line end at the end": (files.text(files.GOOD.rstrip()), []),
    "blank lines": (files.text(files.GOOD.replace("\n", "\n\n")), []),
    "spaces around names": (files.with_line(1, " a , b,y"), ["spaces around 2 column names were taken away"]),
    "quotes": (files.text(files.GOOD.replace("a,b", '"a","b"').replace("4.5", '"4.5"')), []),
    "gzip": (files.binary(files.ZIPPED, "table.csv.gz"), ["the file is gzip-compressed and was unpacked"]),
    "gzip in disguise": (files.binary(files.ZIPPED), ["the file is gzip-compressed and was unpacked"]),
    "the index of pandas": (
        files.text(files.good_frame().to_csv()),
        ["column 1 has no name and is empty or counts the rows: left out"],
    ),
    "a delimiter at the end of lines": (
        files.text(files.GOOD.replace("\n", ",\n")),
        ["column 4 has no name and is empty or counts the rows: left out"],
    ),
    "Parquet": (files.parquet(**files.good_frame()), []),
    "a workbook": (files.workbook([["a", "b", "y"], *files.good_frame().to_numpy().tolist()]), []),
    "a workbook with more sheets": (
        files.workbook([["a", "b", "y"], *files.good_frame().to_numpy().tolist()], "second"),
        ["sheet 'first' was read, the first of 2"],
    ),
    "a workbook with empty rows": (
        files.workbook([["a", "b", "y"], [], *files.good_frame().to_numpy().tolist(), [], [None, " "]]),
        [],
    ),
}


@pytest.mark.parametrize("name", NOTED)
def test_what_can_be_read_safely_is_read_with_a_note(name, tmp_path):
    make, notes = NOTED[name]
    table = read_table(make(tmp_path))
    schema = Schema.fit(table, ["y"])
    assert list(table.notes) == notes
    assert table.names == ["a", "b", "y"]
    expected = files.good_frame()
    np.testing.assert_array_equal(schema.encode(table).X, expected[["a", "b"]])
    np.testing.assert_array_equal(schema.labels(table), expected["y"])


def test_lines_are_counted_with_line_ends_in_quotes(tmp_path):
    path = files.text('a,y\n"1\n2",1\n\n3,x\n4,4\n5,5\n')(tmp_path)
    table = read_table(path)
    assert table.place(1, "y") == f"{path}, row 2 (line 5), column 'y'"
    assert table.frame["a"].tolist() == ["1\n2", "3", "4", "5"]


def test_a_delimiter_that_is_given_is_taken(tmp_path):
    path = files.text("a b;y\n1 2;3\n")(tmp_path)
    assert read_table(path, delimiter=" ").names == ["a", "b;y"]
    assert read_table(files.text("a,b\ty\n1,2\t3\n")(tmp_path), delimiter="tab").names == ["a,b", "y"]
    with pytest.raises(InvalidInputError, match="delimiter='::' must be one character"):
        read_table(path, delimiter="::")


def test_delimiters_in_quotes_do_not_count(tmp_path):
    rows = "".join(f'"a, b, c; d, e{i}";{i}\n' for i in range(3))
    assert read_table(files.text(f"name;y\n{rows}")(tmp_path)).names == ["name", "y"]


def test_options_that_do_not_fit_the_file_are_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="a sheet belongs to an Excel workbook"):
        read_table(files.text(files.GOOD)(tmp_path), sheet="first")
    with pytest.raises(InvalidInputError, match="a delimiter belongs to a text file"):
        read_table(files.parquet(a=[1], y=[2])(tmp_path), delimiter=";")


def test_sheets_by_name(tmp_path):
    path = files.workbook([["a", "y"], [1, 2]], "second")(tmp_path)
    assert read_table(path, sheet="first").names == ["a", "y"]
    with pytest.raises(InvalidInputError, match="has no sheet 'third'; there are 'first', 'second'"):
        read_table(path, sheet="third")
    with pytest.raises(InvalidInputError, match="sheet 'second' is empty"):
        read_table(path, sheet="second")


def test_many_rows_keep_their_order_and_places(tmp_path):
    n = 45_000  # more than two pieces
    path = files.text("a,y\n" + "".join(f"{i},{i % 7}\n" for i in range(n)))(tmp_path)
    table = read_table(path)
    assert table.frame["a"].tolist() == [str(i) for i in range(n)]
    assert table.place(n - 1).endswith(f"row {n} (line {n + 1})")
    path.write_text(path.read_text() + "1,2,3\n")
    with pytest.raises(InvalidInputError, match=r"row 45001 \(line 45002\): 3 fields"):
        read_table(path)


def test_thousands_of_columns(tmp_path):
    names = [f"x{i}" for i in range(5000)]
    frame = pd.DataFrame(np.arange(15_000.0).reshape(3, 5000) ** 0.5, columns=names)
    frame["y"] = [1.0, 2.0, 0.0]
    path = tmp_path / "wide.csv"
    frame.to_csv(path, index=False)
    table = read_table(path)
    schema = Schema.fit(table, ["y"])
    np.testing.assert_array_equal(schema.encode(table).X, frame[names])
    assert schema.describe() == "5,000 columns, all numbers"


def test_a_bomb_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr("unseed_app.tables.delimited._LARGEST_UNPACKED", 1000)
    path = files.binary(gzip.compress(b"a,y\n" + b"1,2\n" * 1000), "bomb.csv.gz")(tmp_path)
    with pytest.raises(InvalidInputError, match="unpacks to more than"):
        read_table(path)


def test_what_does_not_fit_the_memory_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr("unseed_app.tables.table.available_bytes", lambda device: 100)
    makers = (
        files.text(files.GOOD),
        files.parquet(a=np.arange(100.0), y=np.arange(100.0)),
        files.workbook([["a", "y"], [1, 2]]),
    )
    for make in makers:
        with pytest.raises(InvalidInputError, match="by its own account, more than this machine has memory for"):
            read_table(make(tmp_path))


def test_names_with_commas_can_be_named(tmp_path):
    table = read_table(files.text('"a,b",c,a\n1,2,3\n')(tmp_path))
    assert named_columns("drop", "a,b", table) == ["a,b"]
    assert named_columns("drop", "c, a", table) == ["c", "a"]
    with pytest.raises(InvalidInputError, match="drop names 'a' twice"):
        named_columns("drop", "a,a", table)
