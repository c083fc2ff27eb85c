"""Many processes through joblib: a real Dask cluster gives the same numbers, also when a worker dies."""

import os
import signal
import threading
import time
import warnings

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose

from unseed import MLP, BlockwisePNCRegressor
from unseed_paper import Experiment, reproduce

distributed = pytest.importorskip("distributed")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3200, 4))
Y = np.sin(X).sum(axis=1) + 0.1 * RNG.normal(size=3200)
REGRESSOR = BlockwisePNCRegressor(block_size=200, network=MLP(bias_scale=1.0), regularization=1e-3, random_state=0)


@pytest.fixture(scope="module")
def cluster():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
        with distributed.LocalCluster(**options) as local, distributed.Client(local) as client:
            yield client


@pytest.mark.filterwarnings("ignore")
def test_blocks_on_two_processes(cluster):
    with joblib.parallel_config(backend="dask"):
        far = REGRESSOR.fit(X, Y).get_prediction(X[:5])
    near = REGRESSOR.fit(X, Y).get_prediction(X[:5])
    assert_allclose(far.mean, near.mean, rtol=1e-12)
    assert_allclose(far.standard_error, near.standard_error, rtol=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_repetitions_go_on_when_a_worker_is_killed(cluster, tmp_path):
    experiment = Experiment("table-1", "authors-code", repetitions=60, methods=("batching",), sizes=(128,), dimensions=(2,))
    whole = reproduce(experiment, tmp_path / "near", n_jobs=1, verbose=False)
    victim = next(iter(cluster.run(os.getpid).values()))
    records = tmp_path / "far" / f"records.{experiment.name}.jsonl"
    seen = []

    def kill_in_the_middle():
        while not records.exists() or not records.stat().st_size:
            time.sleep(0.005)
        os.kill(victim, signal.SIGKILL)
        seen.append(records.read_text().count("\n"))

    killer = threading.Thread(target=kill_in_the_middle)
    killer.start()
    with joblib.parallel_config(backend="dask"):
        far = reproduce(experiment, tmp_path / "far", n_jobs=-1, verbose=False)
    killer.join()
    assert seen[0] < 60
    assert far == whole
    assert records.read_text().count("\n") == 60  # none lost, none doubled
