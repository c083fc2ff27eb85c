"""Files as people have them, broken in one way each."""

import gzip
import os
import struct
import zipfile

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

GOOD = "a,b,y\n1,2,3\n2,1,4.5\n3,5,1\n4,1,0.5\n5,9,2\n6,2,7\n"


def text(content, name="table.csv", encoding="utf-8"):
    """A maker of a text file."""
    return binary(content.encode(encoding), name)


def binary(content, name="table.csv"):
    """A maker of a file with these bytes."""

    def make(folder):
        path = folder / name
        path.write_bytes(content)
        return path

    return make


def with_line(number, line):
    """The good table with another text in one of its lines, counted from 1."""
    lines = GOOD.splitlines()
    lines[number - 1] = line
    return text("\n".join(lines) + "\n")


def with_column(name, cells):
    """The good table with a column more."""
    header, *rows = GOOD.splitlines()
    return text("\n".join([f"{name},{header}", *(f"{cell},{row}" for cell, row in zip(cells, rows, strict=True))]) + "\n")


def folder(folder):
    path = folder / "table.csv"
    path.mkdir()
    return path


def pipe(folder):
    os.mkfifo(folder / "table.csv")
    return folder / "table.csv"


def absent(folder):
    return folder / "table.csv"


def parquet(**columns):
    def make(folder):
        pq.write_table(pa.table(columns), folder / "table.parquet")
        return folder / "table.parquet"

    return make


def parquet_that_claims(n_bytes):
    """A Parquet file whose last bytes say that its description is so long."""

    def make(folder):
        path = parquet(a=[1.0, 2.0], y=[1.0, 2.0])(folder)
        data = path.read_bytes()
        path.write_bytes(data[:-8] + struct.pack("<I", n_bytes) + b"PAR1")
        return path

    return make


def parquet_cut_off(folder):
    path = parquet(a=np.arange(1000.0), y=np.arange(1000.0))(folder)
    path.write_bytes(path.read_bytes()[:-500])
    return path


def parquet_with_a_damaged_page(folder):
    path = parquet(a=np.random.default_rng(0).normal(size=1000), y=np.arange(1000.0))(folder)
    data = bytearray(path.read_bytes())
    data[4:40] = bytes(36)
    path.write_bytes(bytes(data))
    return path


def workbook(rows, *more_sheets):
    def make(folder):
        book = openpyxl.Workbook()
        book.active.title = "first"
        for row in rows:
            book.active.append(row)
        for name in more_sheets:
            book.create_sheet(name)
        book.save(folder / "table.xlsx")
        return folder / "table.xlsx"

    return make


def archive(folder):
    with zipfile.ZipFile(folder / "table.xlsx", "w") as file:
        file.writestr("notes.txt", "not a workbook")
    return folder / "table.xlsx"


def damaged_workbook(folder):
    with zipfile.ZipFile(folder / "table.xlsx", "w") as file:
        file.writestr("xl/workbook.xml", "<workbook")
    return folder / "table.xlsx"


def good_frame():
    """The good table with numbers in it."""
    return pd.DataFrame({"a": [1, 2, 3, 4, 5, 6], "b": [2, 1, 5, 1, 9, 2], "y": [3, 4.5, 1, 0.5, 2, 7]})


ZIPPED = gzip.compress(GOOD.encode())
