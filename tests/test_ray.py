"""The same numbers on a real Ray, whose joblib backend returns lists only."""

from unittest.mock import patch

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose

from unseed import MLP, PNCRegressor
from unseed_paper import Experiment, reproduce

ray = pytest.importorskip("ray", reason="Ray is not installed; make test-slow installs it")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
Y = np.sin(X).sum(axis=1) + 0.1 * RNG.normal(size=200)
OPTIONS = {"network": MLP(bias_scale=1.0), "regularization": 1e-3, "random_state": 0}

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def local_ray():
    from ray.util.joblib import register_ray

    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("RAY_USAGE_STATS_ENABLED", "0")
        environment.setenv("RAY_worker_niceness", "0")  # at 15, its default, workers starve where cores are busy
        ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
        register_ray()
        yield
        ray.shutdown()


@pytest.fixture
def on_ray(local_ray):
    from ray.util.joblib.ray_backend import RayBackend

    def run(work):
        with patch.object(RayBackend, "submit", autospec=True, side_effect=RayBackend.submit) as sent:
            with joblib.parallel_config(backend="ray"):
                result = work()
            assert sent.called
            return result

    return run


def test_replicates(on_ray):
    def work():
        return PNCRegressor(n_jobs=2, **OPTIONS).fit(X, Y).predict_interval(X[:5])

    for far, near in zip(on_ray(work), work(), strict=True):
        assert_allclose(far, near, rtol=1e-9)


def test_repetitions_of_the_paper(on_ray, tmp_path):
    experiment = Experiment("table-1", "authors-code", repetitions=10, methods=("batching",), sizes=(128,), dimensions=(2,))
    far = on_ray(lambda: reproduce(experiment, tmp_path / "far", n_jobs=-1, verbose=False))
    near = reproduce(experiment, tmp_path / "near", n_jobs=1, verbose=False)
    assert far == near
