"""The experiment behind the paper's first table is understood: closed forms give its widths."""

import json
from pathlib import Path

import numpy as np
import pytest

from unseed_paper import Experiment, preparation, reproduce

RESULTS = Path(__file__).parents[2] / "results"
WITHIN = 0.15


def ratios(rows):
    """Our widths over the printed ones, and the relative standard error of the quotient: both are means of J widths."""
    for row in rows:
        ours, theirs = row["ours"], row["theirs"]
        spread = ours["iw95_se"] * np.sqrt(row["repetitions"]) / ours["iw95"]
        error = spread * np.sqrt(1 / row["repetitions"] + 1 / 100)  # the paper has J = 100
        yield (row["d"], row["n"], row["method"]), ours["iw95"] / theirs["iw95"], error


@pytest.mark.parametrize(
    ("sizes", "repetitions"), [((128,), 60), pytest.param((128, 256, 512, 1024), 100, marks=pytest.mark.slow)]
)
def test_widths_of_table_1(tmp_path, monkeypatch, sizes, repetitions):
    monkeypatch.setattr(preparation, "POPULATION_ROWS", 256)  # widths know nothing of h*
    methods = ("batching", "bootstrap")
    experiment = Experiment("table-1", "authors-code", repetitions=repetitions, methods=methods, sizes=sizes)
    summary = reproduce(experiment, tmp_path, n_jobs=1, verbose=False)
    for row, ratio, error in ratios(summary["rows"]):
        assert abs(ratio - 1) < WITHIN + 2 * error, row


def test_stored_widths_of_table_1():
    rows = json.loads((RESULTS / "summary.table-1.authors-code.kernel.json").read_text())["rows"]
    found = [ratio for row, ratio, _ in ratios([r for r in rows if r["method"] in ("pnc_batching", "pnc_cheap_bootstrap")])]
    assert len(found) == 32
    assert max(abs(ratio - 1) for ratio in found) < WITHIN


def test_stored_networks_agree_with_closed_forms():
    """Widths within a tenth, up to two standard errors of the mean width of trained networks."""
    kernel, network = (
        {
            (r["d"], r["n"], r["method"]): r["ours"]
            for r in json.loads((RESULTS / f"summary.table-1.authors-code.{engine}.json").read_text())["rows"]
        }
        for engine in ("kernel", "network")
    )
    for method in ("pnc_batching", "pnc_cheap_bootstrap"):
        for key in (key for key in network if key[2] == method):
            ratio = network[key]["iw95"] / kernel[key]["iw95"]
            error = network[key]["iw95_se"] / kernel[key]["iw95"]
            assert abs(ratio - 1) < 0.1 + 2 * error, key


@pytest.mark.parametrize("table", ["table-1", "table-3"])
def test_stored_default_intervals_cover(table):
    """Within the Clopper–Pearson bounds of every row, at both levels."""
    rows = json.loads((RESULTS / f"summary.{table}.default.kernel.json").read_text())["rows"]
    own = [row["ours"] for row in rows if row["method"] == "auto"]
    assert len(own) == 16
    assert all(ours["cr95_high"] >= 0.95 and ours["cr90_high"] >= 0.90 for ours in own)


@pytest.mark.parametrize("protocol", ["paper", "authors-code", "default"])
@pytest.mark.parametrize("table", ["table-2", "table-4", "table-6"])
def test_stored_errors_of_pnc_are_the_smallest(table, protocol):
    rows = json.loads((RESULTS / f"summary.{table}.{protocol}.kernel.json").read_text())["rows"]
    keys = [name for name in ("d", "n", "dataset", "test") if name in rows[0]]
    errors = {}
    for row in rows:
        errors.setdefault(tuple(row[key] for key in keys), {})[row["method"]] = row
    for found in errors.values():
        assert all(found["pnc"]["ours"]["mean"] < found[m]["ours"]["mean"] for m in found if m != "pnc")
        if protocol == "default" and table != "table-6":
            assert found["pnc"]["ours"]["mean"] <= found["pnc"]["theirs"]["mean"]
