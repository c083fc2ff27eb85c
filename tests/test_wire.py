"""What tasks for other processes are sent, and what they send back: rows and weights, no matrix and nobody else's rows."""

import pickle

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from unseed import MLP, GradientDescent, KernelEngine, LinearizedEngine, NetworkEngine, PNCRegressor
from unseed.engines import _cohorts as cohorts
from unseed.engines import _linearized as linearized
from unseed.engines import _systems as systems

RNG = np.random.default_rng(0)
N, D, WIDTH = 400, 30, 16
X, X_NEW = RNG.normal(size=(N, D)), RNG.normal(size=(50, D))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=N)
NETWORK = MLP(bias_scale=1.0, scale_inputs=True, width=WIDTH)
OPTIONS = {"network": NETWORK, "regularization": 1e-2, "random_state": 0}
ROW = 8 * (D + 1)
OVERHEAD = 6000  # names of classes and functions


class Wire:
    """Stands for other processes: whatever goes there or comes back is pickled, weighed and unpickled."""

    def __init__(self):
        self.sent, self.returned = [], []

    def __call__(self, tasks, n_jobs, **_):
        found = []
        for task in tasks:
            packed = pickle.dumps(task)
            function, arguments, options = pickle.loads(packed)
            result = pickle.dumps(function(*arguments, **options))
            self.sent.append(len(packed))
            self.returned.append(len(result))
            found.append(pickle.loads(result))
        return iter(found)


@pytest.fixture
def wire(monkeypatch):
    wire = Wire()
    for module in (systems, linearized, cohorts):
        monkeypatch.setattr(module, "shares_memory", lambda n_jobs: False)
    for module, name in ((systems, "begun"), (cohorts, "outcomes")):
        monkeypatch.setattr(module, name, wire)
    return wire


ENGINES = [KernelEngine(), LinearizedEngine(), NetworkEngine(trainer=GradientDescent(steps=3), dtype="float64")]


@pytest.mark.parametrize("interval", ["cheap_bootstrap", "sectioning", "batching"])
@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: type(engine).__name__)
def test_replicates_are_sent_their_rows(engine, interval, wire, monkeypatch):
    far = PNCRegressor(engine=engine, interval=interval, **OPTIONS).fit(X, Y).get_prediction(X_NEW)
    assert len(wire.sent) == 4 + (isinstance(engine, NetworkEngine) and interval != "batching")
    plan_rows = 0.7 * N if interval == "cheap_bootstrap" else N / 4
    rows = N if isinstance(engine, NetworkEngine) else plan_rows  # the network on all rows is trained elsewhere too
    parameters = 0 if isinstance(engine, KernelEngine) else 8 * WIDTH * (D + 3)
    groups = 2  # base and auxiliary network have labels, and rows of trained networks, of their own
    assert max(wire.sent) < 1.1 * (groups * rows * (ROW + 24) + groups * parameters) + OVERHEAD
    if interval != "batching" or isinstance(engine, NetworkEngine):  # batches send their factors back: noise needs them
        assert max(wire.returned) < 1.1 * (4 * 8 * rows + groups * parameters) + OVERHEAD
    monkeypatch.undo()
    near = PNCRegressor(engine=engine, interval=interval, **OPTIONS).fit(X, Y).get_prediction(X_NEW)
    assert_allclose(far.mean, near.mean, rtol=1e-8)
    assert_allclose(far.standard_error, near.standard_error, rtol=1e-7)


def test_a_view_would_be_sent_whole():
    """Why starts are cloned."""
    whole = torch.zeros(100, 100)
    assert len(pickle.dumps(whole[:1])) > 40_000 > len(pickle.dumps(whole[:1].clone()))
