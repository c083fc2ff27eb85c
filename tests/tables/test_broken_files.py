"""Every broken file that we could think of: exit code 1 and one line with the fault and its place."""

import os
import sys
from datetime import date

import pyarrow as pa
import pytest

import table_files as files
from unseed_app import __main__

FAULTS = {
    # the file itself
    "absent": (files.absent, "could not be read: No such file or directory"),
    "a pipe": (files.pipe, "table.csv is a pipe or a device; write what it gives to a file"),
    "a folder": (files.folder, "is a folder without Parquet files; name a file, or another folder"),
    "empty": (files.text(""), "is empty"),
    "only line ends": (files.text("\n\n\r\n"), "is empty"),
    "an extension of its own": (files.text(files.GOOD, "table.dat"), "the extension '.dat' is not known; use one of .csv"),
    "binary junk": (files.binary(bytes(range(256)) * 20), "line 1: a NUL byte"),
    "junk without NUL": (files.binary(b"\x93\xfa\x96{" * 50), "line 1: byte 0x93 is not UTF-8"),
    "NUL bytes in a line": (files.with_line(3, "2,\x00,4"), "line 3: a NUL byte; the file is damaged"),
    "Latin-1": (files.text(files.GOOD.replace("4.5", "caf\xe9"), encoding="latin-1"), "line 3: byte 0xe9 is not UTF-8"),
    "a picture": (files.binary(b"\x89PNG\r\n\x1a\n"), "is a picture, not what its extension .csv says"),
    "a web page": (files.text("<!DOCTYPE html><p>Log in</p>"), "is a web page, not what its extension .csv says"),
    "damaged gzip": (files.binary(files.ZIPPED[:-12], "table.csv.gz"), "is gzip-compressed and damaged"),
    "gzip by name only": (files.text(files.GOOD, "table.csv.gz"), "is not gzip-compressed, whatever its name says"),
    # the shape
    "header only": (files.text("a,b,y\n"), "has a header and no rows under it"),
    "one row": (files.text("a,b,y\n1,2,3\n"), "has 1 row; at least two are needed"),
    "only delimiters": (files.text(",,\n,,\n"), "line 1: there are no column names"),
    "a row too short": (files.with_line(4, "3,5"), "row 3 (line 4): 2 fields, and the header has 3"),
    "a row too long": (files.with_line(4, "3,5,1,9"), "row 3 (line 4): 4 fields, and the header has 3"),
    "a quote never closed": (files.with_line(5, '4,"1,0.5'), "line 5: a quote is opened here and never closed"),
    "a quote within a quote": (files.with_line(5, '4,"1"x,0.5'), "line 5: a quote stands inside a quoted field"),
    "the header once more": (files.with_line(4, "a,b,y"), "row 3 (line 4): the header once more"),
    "a name twice": (files.with_line(1, "a,a,y"), "header: the name 'a' is there twice, for columns 1 and 2"),
    "the target twice": (files.with_line(1, "y,b,y"), "header: the name 'y' is there twice, for columns 1 and 3"),
    "a name missing": (files.with_line(1, "a,,y"), "header: column 2 has no name"),
    "no header": (files.text("1,2,3\n4,5,7\n"), "is the first line of the file a header?"),
    "nothing but the target": (files.text("y\n1\n2\n"), "has no column left to predict 'y' from; is the delimiter right?"),
    # the target
    "target absent": (files.with_line(1, "a,b,z"), "target 'y' is not a column of"),
    "target constant": (files.text("a,y\n1,3\n2,3\n3,3\n"), "column 'y': the target is 3 in every row"),
    "target text": (files.text("a,y\n1,low\n2,high\n"), "row 1 (line 2), column 'y': 'low' is not a number"),
    "target a date": (files.parquet(a=[1.0, 2.0], y=[date(2024, 1, d) for d in (1, 2)]), "is a date"),
    "target missing in a row": (files.with_line(4, "3,5,"), "row 3 (line 4), column 'y': the target is missing"),
    "target too large": (files.with_line(4, "3,5,1e400"), "row 3 (line 4), column 'y': '1e400' is too large a number"),
    # the cells
    "empty cell": (files.with_line(4, "3,,1"), "row 3 (line 4), column 'b': the value is missing; fill it in, or add --impute"),
    "NaN": (files.with_line(4, "3,NaN,1"), "row 3 (line 4), column 'b': the value is missing"),
    "several missing": (files.with_line(4, "NA,?,1"), "column 'a': the value is missing (and 1 other cell, in 2 columns)"),
    "inf": (files.with_line(4, "3,-inf,1"), "row 3 (line 4), column 'b': '-inf' is not a finite number"),
    "too large": (files.with_line(4, "3,1e309,1"), "row 3 (line 4), column 'b': '1e309' is too large a number"),
    "a word among numbers": (files.with_line(4, "3,five,1"), "row 3 (line 4), column 'b': 'five' is not a number"),
    "thousands separators": (files.with_line(4, '3,"1,234",1'), "column 'b': '1,234' has a thousands separator"),
    "percent signs": (files.with_line(4, "3,12%,1"), "column 'b': '12%' has a percent sign; write the number alone"),
    "currency": (files.with_line(4, "3,€ 12.50,1"), "column 'b': '€ 12.50' has a currency sign"),
    "a decimal comma among points": (files.with_column("c", ["1.5", '"1,5"', "2", "3", "4", "5"]), "'1,5' has a decimal comma"),
    "every cell missing": (files.with_column("c", [""] * 6), "column 'c': the value is missing (and 5 other cells"),
    "text with many values": (files.with_column("c", "pqrstu"), "column 'c': text with 6 different values in 6 rows"),
    "a date that is none": (
        files.with_column("day", ["2024-02-28", "2024-02-30", *["2024-03-01"] * 4]),
        "row 2 (line 3), column 'day': '2024-02-30' is not a date of the form YYYY-MM-DD",
    ),
    "day or month": (files.with_column("day", ["1/2/2024"] * 6), "'1/2/2024' can be day/month or month/day"),
    # Parquet and Excel
    "Parquet that claims 2 GB": (files.parquet_that_claims(2**31 - 1), "is a damaged Parquet file"),
    "Parquet cut off": (files.parquet_cut_off, "is a damaged Parquet file"),
    "Parquet with a damaged page": (files.parquet_with_a_damaged_page, "is a damaged Parquet file"),
    "Parquet by name only": (files.text(files.GOOD, "table.parquet"), "is not a Parquet file, whatever its name says"),
    "Parquet with lists": (files.parquet(a=[[1.0], [2.0]], y=[1.0, 2.0]), "column 'a': the type list<"),
    "Parquet without rows": (files.parquet(a=pa.array([], "f8"), y=[]), "has columns and no rows"),
    "Parquet with nulls": (files.parquet(a=[1.0, None, 2.0], y=[1.0, 2.0, 3.0]), "row 2, column 'a': the value is missing"),
    "Parquet with text and nulls": (
        files.parquet(a=["x", None, "x"], y=[1.0, 2.0, 3.0]),
        "row 2, column 'a': the value is missing",
    ),
    "a workbook by name only": (files.text(files.GOOD, "table.xlsx"), "is not an Excel workbook, whatever its name says"),
    "a workbook named .csv": (files.binary(b"PK\x03\x04...."), "is an Excel workbook or another zip archive"),
    "a password": (
        files.binary(b"\xd0\xcf\x11\xe0\xa1\xb1", "table.xlsx"),
        "an old Excel workbook (.xls), or one with a password",
    ),
    "old Excel": (files.binary(b"\xd0\xcf\x11\xe0", "table.xls"), "the old Excel format .xls is not read"),
    "a zip archive": (files.archive, "is a zip archive without a workbook in it"),
    "a damaged workbook": (files.damaged_workbook, "is not an Excel workbook that can be read"),
    "an empty sheet": (files.workbook([]), "sheet 'first' is empty"),
    "a sheet with a header": (files.workbook([["a", "y"]]), "sheet 'first' has a header and no rows"),
    "an empty cell in a sheet": (
        files.workbook([["a", "y"], [1, 2], [None, 3]]),
        "sheet 'first', row 2 (sheet row 3), column 'a': the value is missing",
    ),
    "cells beside the header": (
        files.workbook([["a", "y"], [1, 2, 3]]),
        "row 2: there are cells to the right of the header's 2",
    ),
}


def run(monkeypatch, capsys, *arguments):
    """Exit code, standard output and standard error of a command."""
    monkeypatch.setattr(sys, "argv", ["unseed", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        __main__.main()
    said = capsys.readouterr()
    return stopped.value.code, said.out, said.err


@pytest.mark.parametrize("name", FAULTS)
def test_a_broken_file_ends_with_one_line_that_names_fault_and_place(name, tmp_path, monkeypatch, capsys):
    make, sentence = FAULTS[name]
    path, out = make(tmp_path), tmp_path / "model"
    code, _, said = run(monkeypatch, capsys, "fit", path, "--target", "y", "--out", out)
    assert code == 1
    assert said.startswith("unseed: ")
    assert said.count("\n") == 1
    assert sentence in said
    assert str(path) in said
    assert not out.exists()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can stop being root for a moment")
def test_a_file_without_permission(tmp_path, monkeypatch, capsys):
    path = files.text(files.GOOD)(tmp_path)
    path.chmod(0o600)
    run(monkeypatch, capsys, "fit", files.absent(tmp_path / "x"), "--target", "y", "--out", tmp_path / "m")  # imports are done
    os.seteuid(65534)
    try:
        code, _, said = run(monkeypatch, capsys, "fit", path, "--target", "y", "--out", "/tmp/unseed-never-written")
    finally:
        os.seteuid(0)
    assert code == 1
    assert said == f"unseed: {path} could not be read: Permission denied\n"
