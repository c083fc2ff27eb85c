"""The search against the experiment itself."""

import json
import sys

import numpy as np
from numpy.testing import assert_allclose

from unseed import Batching, GradientFlow, KernelEngine, PNCRegressor
from unseed_paper import budget_search
from unseed_paper.problems import Synthetic
from unseed_paper.protocols import PROTOCOLS, REGULARIZATION

SETTING = Synthetic("synthetic-2", 2, 128)
NETWORK = PROTOCOLS["authors-code"].network


def test_training_time_is_that_of_the_kernel_engine():
    from unseed.kernels import ntk

    data, points = SETTING.sample(0), SETTING.places().X[:5]
    counts = np.arange(128) % 3
    rows = np.repeat(np.arange(128), counts)
    times = (0.3, 40.0)
    found = budget_search.trained(
        ntk(data.X, network=NETWORK), ntk(points, data.X, network=NETWORK), counts, data.y[:, None], times
    )
    for index, time in enumerate(times):
        reg = PNCRegressor(
            interval=Batching(batches=2),
            engine=KernelEngine(training=GradientFlow(time=time)),
            network=NETWORK,
            regularization=REGULARIZATION,
            standardize=False,
            random_state=0,
        )
        reg.set_params(interval="sectioning").fit(data.X[rows], data.y[rows])
        assert_allclose(found[index, :, 0], reg.predict(points), rtol=0, atol=1e-10)


def test_what_is_found(tmp_path, monkeypatch):
    out = tmp_path / "found.json"
    monkeypatch.setattr(budget_search, "DIMENSIONS", (2,))
    arguments = [
        "search",
        "--out",
        str(out),
        "--repetitions",
        "10",
        "--error-repetitions",
        "1",
        "--sizes",
        "128",
        "--n-jobs",
        "1",
    ]
    monkeypatch.setattr(sys, "argv", arguments)
    budget_search.main()
    found = json.loads(out.read_text())
    batching, bootstrap = found["intervals"]
    assert 0.3 < batching["matching"]["time"] < 0.4  # well before the authors' 0.8
    assert abs(batching["matching"]["mp"] - batching["printed"]["mp"]) < 0.02 * batching["printed"]["mp"]
    assert batching["matching"]["cr95"] > batching["authors_budget"]["cr95"]
    assert bootstrap["matching"]["iw95"] > batching["matching"]["iw95"]
    errors = {row["table"]: row["time"] for row in found["errors"]}
    assert errors["table-2"] > 80  # 350 steps of the largest stable rate are 85
