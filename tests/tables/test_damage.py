"""Bytes changed at random: a table is read or refused in one line, and nothing else ever happens."""

import gzip
import random

import pandas as pd
import pytest

from unseed.errors import InvalidInputError
from unseed_app.tables import Schema, read_table

ROWS = 12
SCRAPS = (b'"', b",", b"\n", b"\r", b";", b"\t", b"nan", b"inf", b"1e999", b"\x00", b"\xff", b"%", b"-", b"2024-13-45", b"1,2")


def contents(folder):
    frame = pd.DataFrame(
        {
            "age": [i * 3 % 7 + 0.5 for i in range(ROWS)],
            "city": ["Rome", "Bern"] * 6,
            "day": pd.date_range("2024-01-01", periods=ROWS),
            "wet": [True, False, False] * 4,
            "y": [i * i for i in range(ROWS)],
        }
    )
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_parquet(folder / "t.parquet")
    frame.to_excel(folder / "t.xlsx", index=False)
    (folder / "t.csv.gz").write_bytes(gzip.compress((folder / "t.csv").read_bytes()))
    return {path: path.read_bytes() for path in sorted(folder.glob("t.*"))}


def damaged(content, rng):
    changed = bytearray(content)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(changed))
        if rng.random() < 0.5:
            changed[at:at] = rng.choice(SCRAPS)
        else:
            changed[at : at + rng.randint(0, 20)] = rng.randbytes(rng.randint(0, 5))
    return bytes(changed)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files_are_read_or_refused_in_one_line(seed, tmp_path):
    rng, sentences = random.Random(seed), []
    for path, content in contents(tmp_path).items():
        for _ in range(40):
            path.write_bytes(damaged(content, rng))
            try:
                table = read_table(path)
                schema = Schema.fit(table, table.names[-1:], impute=True)
                schema.labels(table)
                schema.remarks(schema.encode(table).X)
            except InvalidInputError as fault:
                sentences.append(str(fault))
    assert len(sentences) > 40
    assert all(str(tmp_path) in sentence and "\n" not in sentence for sentence in sentences)
