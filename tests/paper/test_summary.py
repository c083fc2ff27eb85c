"""Figures of the tables from records made by hand."""

import json

import numpy as np
import pytest
from scipy import stats

from unseed_paper.experiment import Experiment
from unseed_paper.pages import tables_of
from unseed_paper.printed import ERROR_TABLES, INTERVAL_TABLES, TABLES, printed_figures, printed_rows
from unseed_paper.summary import clopper_pearson, summarise, times

EXPERIMENT = Experiment("table-1", repetitions=4, methods=("batching",), sizes=(128,), dimensions=(2,))


def record(repetition, centre, half_width, **changes):
    return {
        "setting": "synthetic-1 d=2 n=128",
        "repetition": repetition,
        "method": "pnc_batching",
        "seed": 0,
        "truth": [1.0],
        "centre": [centre],
        "half_width_95": [half_width],
        "half_width_90": [half_width / 2],
        "target": [1.5],
        "domain_covered_95": "0" * 10 + "1" * 190,
        "domain_covered_90": "0" * 200,
        "domain_target_95": "1" * 200,
        "domain_width_95": 0.5,
        "domain_width_90": 0.4,
        "training": {"steps": 80, "rate": 0.01},
        "device": "cpu",
        "seconds": float(repetition),
        "versions": {"unseed": "0"},
    } | changes


RECORDS = [record(0, 1.1, 0.3), record(1, 0.5, 0.1), record(2, 1.3, 0.4), record(3, 1.0, 0.2)]


def test_figures_of_an_interval_table():
    (row,) = summarise(EXPERIMENT, RECORDS)["rows"]
    ours = row["ours"]
    assert (row["d"], row["n"], row["method"], row["repetitions"]) == (2, 128, "pnc_batching", 4)
    assert ours["cr95"] == 0.75  # all but the second
    assert ours["cr90"] == 0.5  # 0.1 <= 0.15, 0.5 > 0.05, 0.3 > 0.2, 0 <= 0.1
    assert ours["iw95"] == pytest.approx(2 * np.mean([0.3, 0.1, 0.4, 0.2]))
    assert ours["mp"] == pytest.approx(np.mean([1.1, 0.5, 1.3, 1.0]))
    assert ours["cr95_target"] == 0.25  # |1.3 − 1.5| <= 0.4 alone
    assert (ours["cr95_target_low"], ours["cr95_target_high"]) == pytest.approx(clopper_pearson(1, 4), rel=1e-9)
    assert ours["domain_cr95"] == 0.95
    assert ours["domain_worst95"] == 0.0
    assert ours["domain_target95"] == 1.0
    assert (ours["cr95_low"], ours["cr95_high"]) == pytest.approx(clopper_pearson(3, 4), rel=1e-5)
    assert row["theirs"] == printed_rows("table-1")[0]["pnc_batching"]
    assert times(RECORDS) == {("synthetic-1 d=2 n=128", "pnc_batching"): 1.5}


def test_order_plays_no_part_and_all_records_count():
    reference = summarise(EXPERIMENT, RECORDS)
    assert json.dumps(summarise(EXPERIMENT, RECORDS[::-1])) == json.dumps(reference)
    smaller = Experiment("table-1", repetitions=1, methods=("sectioning",), sizes=(256,))
    assert summarise(smaller, RECORDS) == reference  # a smaller run does not take away what is known
    assert reference["command"] == EXPERIMENT.command
    more = summarise(EXPERIMENT, [*RECORDS, record(0, 1.0, 0.1, method="sectioning")])
    assert more["command"].count("unseed reproduce") == 2  # four repetitions of the one, one of the other
    assert [row["training"] for row in more["rows"]] == [{"steps": 80, "rate": 0.01}] * 2


def test_report_shows_ours_theirs_and_ratio():
    (table,) = tables_of(EXPERIMENT, summarise(EXPERIMENT, RECORDS), RECORDS)
    shown = dict(zip(table.columns[:9], table.rows[0], strict=False))
    assert shown["J"] == "4"
    assert shown["training"] == "80 × 0.01"
    assert shown["CR 95 %"].startswith("0.750 (0.194–")
    assert shown["ratio"] == f"{0.5 / 0.0437:.2f}"
    assert "| 2 | 128 | 4 |" in table.to_markdown()
    assert "<td>0.0437</td>" in table.to_html()


@pytest.mark.parametrize("hits", [0, 1, 50, 99, 100])
def test_clopper_pearson_inverts_binomial_tails(hits):
    low, high = clopper_pearson(hits, 100)
    if hits > 0:
        assert stats.binom.sf(hits - 1, 100, low) == pytest.approx(0.025)
    if hits < 100:
        assert stats.binom.cdf(hits, 100, high) == pytest.approx(0.025)
    assert (low == 0) == (hits == 0)
    assert (high == 1) == (hits == 100)


def test_table_7_is_the_printed_one():
    for row in summarise(Experiment("table-7"), [])["rows"]:
        for bound in ("low", "high"):
            assert row["ours"][bound] == pytest.approx(row["theirs"][bound], abs=6e-4)


def test_every_printed_row_has_its_setting():
    for table in TABLES[:-1]:
        rows = [row for setting in Experiment(table, methods=()).settings for row in _rows(setting)]
        assert len(rows) == len(printed_rows(table))
        method = "pnc_batching" if table in INTERVAL_TABLES else "pnc"
        assert all(printed_figures(table, row, method) for row in rows)
    assert set(TABLES) == {*INTERVAL_TABLES, *ERROR_TABLES, "table-7"}


def _rows(setting):
    return setting.rows
