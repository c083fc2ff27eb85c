"""Rows on a cluster: what `benchmarks/cluster.py` measures, and what the page makes of it."""

import json

import numpy as np
import pytest

import cluster_page
from unseed._estimators.partitions import waves


def invented():
    common = {
        "own_seconds": 2.0,
        "worker_sent_bytes": 3e6,
        "own_sent_bytes": 4e6,
        "worker_peak_bytes": 5e8,
        "difference": 6e-14,
    }
    runs = [
        {"rows": rows, "workers": workers, "landmarks": 512, "wall_seconds": 9.0, "worker_seconds": seconds, **common}
        for rows, workers, seconds in ((50_000, 1, 3.0), (200_000, 1, 7.5), (200_000, 2, 8.0))
    ]
    killed = {"workers": 2, "landmarks": 512, "wall_seconds": 12.0, "deaths_while_adding": 1, "difference": 7e-14}
    travels = {"512": {"sums_bytes": 9_000_000, "begun_bytes": 1_000_000}}
    return {"machine": {"cores": 2}, "features": 10, "partitions": 32, "runs": runs, "travels": travels, "killed": killed}


def test_the_page_says_what_was_measured_and_multiplies_it(tmp_path):
    path = tmp_path / "cluster.json"
    assert cluster_page.block(path).startswith("Not measured yet")
    path.write_text(json.dumps(invented()))
    text = cluster_page.block(path)
    assert "| 2 | 9 | 8 | 2 | 3 | 4 | 0.5 | 6e-14 |" in text
    assert "| 1 | 9 | 7.5 | 2 | 3 | 4 | 0.5 | 6e-14 |" in text
    assert "| 2, one killed while it added up rows | 12 | – | – | – | – | – | 7e-14 |" in text
    assert "A row takes 30 µs with 512 landmarks" in text  # (7.5 − 3) s over 150,000 rows
    # 1,000 partitions of 64 workers: the busiest has 16, of 30 s each, and 2 s beside them; 20 sums come here
    assert [len(waves(n)) for n in (10, 100, 1000)] == [1, 7, 20]
    traffic = ((4 / 3 * 1000 + 20) * 9e6 + 64 * 1e6) / 1e9
    assert f"| 1,000,000,000 | 64 | 512 | 8.0 min | {cluster_page.number(traffic)} | 9 | 1 |" in text
    assert "not by a run" in text


def test_a_run_is_the_same_model_everywhere_and_counts_what_travels(tmp_path):
    pytest.importorskip("distributed")
    cluster = pytest.importorskip("cluster")
    many, few = cluster.block(3, 5), cluster.block(3, 5)
    np.testing.assert_array_equal(many, few)
    X, y = cluster.of_all(32 * 340)
    fitted = cluster.model(30).fit(X, y)
    travels = cluster.weighed(fitted)
    p, parts = 30, len(fitted._summed.sums.summands)
    assert 8 * parts * p**2 < travels["sums_bytes"] < 8 * parts * (p + 2) ** 2 + 8 * 4096 * 12 + 20_000
    there = cluster.model(30).fit(*cluster.partitions(32 * 340))  # on threads here: the blocks are the same rows
    assert cluster.difference(cluster.answers(there), cluster.answers(fitted)) < 1e-9


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_one_two_and_four_workers_and_one_that_is_killed(tmp_path):
    pytest.importorskip("distributed")
    cluster = pytest.importorskip("cluster")
    out = tmp_path / "cluster.json"
    assert cluster.main(["--rows", "100000", "--landmarks", "300", "--out", str(out)]) == 0
    found = json.loads(out.read_text())
    assert [(run["rows"], run["workers"]) for run in found["runs"]] == [(24_992, 1), (100_000, 1), (100_000, 2), (100_000, 4)]
    assert all(run["difference"] < 1e-9 for run in [*found["runs"], found["killed"]])
    assert found["killed"]["deaths_while_adding"] == 1
    assert all(run["worker_sent_bytes"] > found["travels"]["300"]["sums_bytes"] for run in found["runs"])
