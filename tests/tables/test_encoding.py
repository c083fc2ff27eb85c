"""Rules for columns: found once, remembered as plain data, kept to at new rows."""

import datetime
import json

import numpy as np
import pandas as pd
import pytest

from unseed.errors import InvalidInputError
from unseed_app.tables import Schema, Table

N = 12


def table(**columns):
    columns = columns or {"a": [str(i) for i in range(N)]}
    return Table(pd.DataFrame({**columns, "y": np.arange(len(next(iter(columns.values()))), dtype=float)}), "t.csv")


def fitted(**columns):
    return Schema.fit(table(**columns), ["y"])


def encoded(schema, **columns):
    return schema.encode(table(**columns)).X.to_numpy()


MIXED = {
    "age": [f" {i}.50" for i in range(N)],
    "city": ["Rome", "Bern", "Rome", "Oslo"] * 3,
    "day": [f"2024-01-{i + 1:02d}" for i in range(N)],
    "wet": ["yes", "No"] * 6,
}


def test_every_kind_of_text_column():
    schema = fitted(**MIXED)
    assert schema.describe() == (
        "4 columns: age number, city category (3 levels), day date → days since 2024-01-01, the first in training, "
        "wet true or false → 1 or 0"
    )
    assert schema.outputs == ["age", "city = Bern", "city = Oslo", "city = Rome", "day (days since 2024-01-01)", "wet"]
    X = encoded(schema, **MIXED)
    np.testing.assert_array_equal(X[1], [1.5, 1, 0, 0, 1, 0])
    np.testing.assert_array_equal(X[2], [2.5, 0, 0, 1, 2, 1])


def test_the_schema_survives_json():
    schema = fitted(**MIXED)
    assert Schema.from_data(json.loads(json.dumps(schema.to_data()))) == schema


def test_typed_columns_are_encoded_like_their_text():
    typed = {
        "age": np.arange(N) + 0.5,
        "city": pd.Categorical(MIXED["city"]),
        "day": [datetime.datetime(2024, 1, i + 1) for i in range(N)],
        "wet": [True, False] * 6,
    }
    frame = pd.DataFrame(typed)
    arrow = frame.assign(city=MIXED["city"]).convert_dtypes(dtype_backend="pyarrow")
    expected = encoded(fitted(**MIXED), **MIXED)
    for columns in (dict(frame), dict(arrow)):
        schema = fitted(**columns)
        np.testing.assert_array_equal(encoded(schema, **columns), expected)
        np.testing.assert_array_equal(encoded(fitted(**MIXED), **columns), expected)  # text in training, types later
        np.testing.assert_array_equal(encoded(schema, **MIXED), expected)  # and the other way round


@pytest.mark.parametrize(
    ("cells", "days"),
    [
        (["2024-02-28", "2024-02-29", "2024-03-01"], [0, 1, 2]),
        (["2024/2/28", "2024/2/29", "2024/3/1"], [0, 1, 2]),
        (["28.02.2024", "29.2.2024", "01.03.2024"], [0, 1, 2]),
        (["28/02/2024", "29/02/2024", "01/03/2024"], [0, 1, 2]),
        (["02/28/2024", "02/29/2024", "03/01/2024"], [0, 1, 2]),
        (["2024-02-28 00:00", "2024-02-28T12:00:00", "2024-02-29 6:00"], [0, 0.5, 1.25]),
        (["2024-02-28T00:00:00Z", "2024-02-28T13:00:00+01:00", "2024-02-28 23:00-01:00"], [0, 0.5, 1]),
    ],
)
def test_dates_in_every_form(cells, days):
    np.testing.assert_allclose(encoded(fitted(day=cells), day=cells)[:, 0], days, atol=1e-9)


@pytest.mark.parametrize(
    ("kind", "old", "new", "sentence"),
    [
        ("number", ["1", "2", "3"], ["1", "x", "3"], "t.csv, row 2, column 'c': 'x' is not a number"),
        (
            "category",
            ["p", "q"] * 3,
            ["p", "r"],
            "column 'c': the category 'r' was not in the training rows; known are 'p', 'q'",
        ),
        ("date", ["2024-01-01", "2024-01-02"], ["2024-01-01", "soon"], "row 2, column 'c': 'soon' is not a date of the form"),
        ("date", ["13/1/2024", "14/1/2024"], ["1/13/2024"], "'1/13/2024' is not a date of the form DD/MM/YYYY"),
        ("boolean", ["yes", "no"], ["no", "maybe"], "row 2, column 'c': 'maybe' is not true or false"),
        ("number", ["1", "2"], ["1", ""], "row 2, column 'c': the value is missing"),
    ],
)
def test_new_cells_that_break_the_rule_are_refused(kind, old, new, sentence):
    schema = fitted(c=old)
    assert schema.to_data()["columns"][0]["kind"] == kind
    with pytest.raises(InvalidInputError) as refused:
        schema.encode(table(c=new))
    assert sentence in str(refused.value)


def test_columns_in_another_order_more_of_them_and_fewer():
    schema = fitted(**MIXED)
    other = Table(table(**MIXED).frame[["wet", "day", "city", "age"]].assign(extra="1"), "new.csv")
    result = schema.encode(other)
    np.testing.assert_array_equal(result.X, encoded(schema, **MIXED))
    assert result.notes == (
        "the columns are in another order than in training; they were taken by name",
        "not used, because the model does not know it: 'extra'",
    )
    with pytest.raises(InvalidInputError, match=r"new\.csv has no column 'age', 'day', which the model needs"):
        schema.encode(Table(other.frame.drop(columns=["age", "day"]), "new.csv"))


def test_missing_values_are_filled_with_what_training_had():
    columns = {name: list(cells) for name, cells in MIXED.items()}
    for name in columns:
        columns[name][0] = "NA"
    with pytest.raises(
        InvalidInputError, match=r"row 1, column 'age': the value is missing \(and 3 other cells, in 4 columns\)"
    ):
        fitted(**columns)
    schema = Schema.fit(table(**columns), ["y"], impute=True)
    result = schema.encode(table(**columns))
    median = np.median([i + 0.5 for i in range(1, N)])
    np.testing.assert_array_equal(result.X.iloc[0], [median, 0, 0, 1, 5, 0])
    assert result.notes[0].startswith("4 missing values filled with the training median or most frequent text")
    plain = fitted(**MIXED)
    np.testing.assert_array_equal(
        plain.encode(table(**columns), impute=True).X.iloc[0, 0], 6.0
    )  # of training, not of these rows


def test_decimal_commas_are_read_where_they_can_be_nothing_else():
    schema = fitted(c=["1,5", "2,25", "1,234"])
    result = schema.encode(table(c=["1,5", "2,25", "1,234"]))
    np.testing.assert_array_equal(result.X["c"], [1.5, 2.25, 1.234])
    assert result.notes == ("decimal commas were read as points: 'c'",)
    with pytest.raises(InvalidInputError, match="'1,234' has a thousands separator, or a decimal comma"):
        fitted(c=["1,234", "2,345", "7"])


def test_remarks_on_columns_of_little_use():
    columns = {"same": ["4"] * N, "id": [str(100 + i) for i in range(N)], "x": [str(i % 5) for i in range(N)]}
    schema = fitted(**columns)
    constant, counting = schema.remarks(schema.encode(table(**columns)).X)
    assert constant == "the same in every row, so of no use: 'same'"
    assert counting == "counts the rows, like an identifier: 'id'; if it is one, leave it out with --drop"


def test_at_most_fifty_categories():
    cells = [f"k{i % 50}" for i in range(300)]
    assert fitted(c=cells).describe() == "1 column: c category (50 levels)"
    with pytest.raises(
        InvalidInputError, match=r"text with 51 different values in 300 rows, such as 'another', 'k0' and 49 more"
    ):
        fitted(c=[*cells, "another"][1:])


def test_several_targets_and_dropped_columns():
    both = Table(pd.DataFrame({"a": ["1", "2"], "b": ["x", "y"], "y": ["1", "2"], "z": ["4", "3"]}), "t.csv")
    schema = Schema.fit(both, ["z", "y"], ["b"])
    np.testing.assert_array_equal(schema.labels(both), [[4, 1], [3, 2]])
    assert schema.features == ["a"]
    assert schema.encode(both).notes == ()
    with pytest.raises(InvalidInputError, match="'y' is the target and cannot be dropped"):
        Schema.fit(both, ["y"], ["y"])


def test_names_are_never_more_than_data():
    names = ["=1+1", "__class__", "{0}", "%s", "\x1b[31mred", "a\nb", "'; DROP TABLE"]
    columns = {name: [str(i * k % 7) for i in range(N)] for k, name in enumerate(names, start=1)}
    schema = fitted(**columns)
    assert schema.outputs == names
    assert "\x1b" not in schema.describe()
    assert "\n" not in schema.describe()


def test_typed_cells_are_told_by_their_text_where_training_had_text():
    schema = fitted(c=["p", "q", "3"] * 3)
    np.testing.assert_array_equal(encoded(schema, c=[3, 3]), [[1, 0, 0]] * 2)
    with pytest.raises(InvalidInputError, match=r"row 2, column 'c': the category '4' was not in the training rows"):
        schema.encode(table(c=[3, 4]))
    with pytest.raises(InvalidInputError, match=r"row 2, column 'c': '0.5' is not true or false"):
        fitted(c=["yes", "no"]).encode(table(c=[1, 0.5]))
