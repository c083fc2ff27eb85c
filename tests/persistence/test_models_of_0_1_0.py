"""Models that version 0.1.0 wrote still load, and answer as they did.

``kernel`` has two outputs, a network that was chosen and its rival; ``trained`` is a `NetworkEngine` of width 12; ``table`` is
what ``unseed fit`` made of a table with categories, dates and gaps. ``expected.json`` is what 0.1.0 answered after loading;
standard errors, intervals, noise and what follows from them (a bias in half widths) are those of the repairs after it.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

from same_numbers.quantities import answers, numbers_in
from unseed import PNCRegressor
from unseed_app.cli import app

MODELS = Path(__file__).parent / "models-0.1.0"
EXPECTED = json.loads((MODELS / "expected.json").read_text(encoding="utf-8"))
NEW = np.array([[2.14091993, -2.4556653], [0.51809865, -0.46777026], [0.5, -1.5], [8.0, 8.0]])


@pytest.mark.parametrize(("name", "tolerance"), [("kernel", 1e-10), ("trained", 1e-6)])
def test_a_model_answers_as_it_did(name, tolerance):
    found, expected = answers(PNCRegressor.load(MODELS / name), NEW), EXPECTED[name]
    assert expected.keys() <= found.keys()
    for question, values in expected.items():
        assert_as_before(found[question], np.asarray(values), tolerance, question)


def assert_as_before(found, expected, tolerance, question):
    assert found.shape == expected.shape, question
    if found.dtype.kind in "US":
        assert found.tolist() == expected.tolist(), question
        return
    largest = np.abs(expected[np.isfinite(expected)]).max(initial=0)
    assert_allclose(found, expected, rtol=tolerance, atol=1e-4 * tolerance * largest, err_msg=question)


@pytest.fixture
def new_rows(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text(EXPECTED["table"]["new"], encoding="utf-8")
    return path


def test_a_table_is_predicted_as_it_was(new_rows, tmp_path):
    out = tmp_path / "out.csv"
    called("predict", MODELS / "table", new_rows, "--out", out)
    header, *lines = (line.split(",") for line in out.read_text(encoding="utf-8").splitlines())
    found = dict(zip(header, zip(*lines, strict=True), strict=True))
    for column, expected in EXPECTED["table"]["columns"].items():
        assert_allclose([float(cell) for cell in found[column]], expected, rtol=1e-10, err_msg=column)


def test_a_table_is_diagnosed_as_it_was(new_rows):
    said, expected = json.loads(called("diagnose", MODELS / "table", new_rows, "--json")), EXPECTED["table"]
    found = {finding["name"]: [finding["value"], finding["limit"]] for finding in said["findings"]}
    assert found.keys() - expected["findings"].keys() == {"largest step in the errors along a feature, in standard errors"}
    for name, figures in expected["findings"].items():
        assert_allclose(found[name], figures, rtol=1e-10, err_msg=name)
    assert said["far_rows"] == expected["far_rows"] == [4]
    assert numbers_in(said["outlook"]) == numbers_in(expected["outlook"])


def called(command, *arguments):
    result = CliRunner().invoke(app, [command, *map(str, arguments), "--impute", "median"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output
