"""The same numbers on a GPU as on the CPU; run where there is one."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from unseed import MLP, GradientDescent, KernelEngine, LinearizedEngine, NetworkEngine, PNCRegressor
from unseed.engines import cohorts

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
RNG = np.random.default_rng(0)
X, X_NEW = RNG.normal(size=(80, 5)), RNG.normal(size=(9, 5))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=80)
NETWORK = MLP(bias_scale=1.0, scale_inputs=True, width=256)


def intervals(device, **options):
    reg = PNCRegressor(network=NETWORK, regularization=0.01, random_state=0, device=device, **options).fit(X, Y)
    return reg.predict_interval(X_NEW)[1]


@pytest.mark.parametrize("interval", ["batching", "cheap_bootstrap", "sectioning", "half_sampling", "infinitesimal_jackknife"])
@pytest.mark.parametrize("engine", [KernelEngine(), LinearizedEngine()], ids=str)
def test_closed_forms_agree_with_the_cpu(engine, interval):
    options = {"engine": engine, "interval": interval}
    assert_allclose(intervals("cuda", **options), intervals("cpu", **options), rtol=1e-8)


def test_tanh_kernel_agrees_with_the_cpu():
    results = [
        PNCRegressor(network=MLP(activation="tanh", scale_inputs=True), random_state=0, device=device).fit(X, Y).predict(X_NEW)
        for device in ("cpu", "cuda")
    ]
    assert_allclose(*results, rtol=1e-8)


def test_same_seeds_give_the_same_start_and_training():
    engine = NetworkEngine(trainer=GradientDescent(steps=50, rate=0.05), dtype="float64")
    assert_allclose(intervals("cuda", engine=engine), intervals("cpu", engine=engine), rtol=1e-8)


def test_running_out_of_memory_splits_the_replicates(monkeypatch):
    real, sizes = cohorts._train, []

    def small_memory(trainer, objective, progress):
        sizes.append(len(objective.start))
        if len(objective.start) > 4:
            raise torch.OutOfMemoryError
        return real(trainer, objective, progress)

    expected = intervals("cuda", engine=NetworkEngine(dtype="float64"))
    monkeypatch.setattr(cohorts, "_train", small_memory)
    assert_allclose(intervals("cuda", engine=NetworkEngine(dtype="float64")), expected, rtol=1e-5)
    assert max(sizes) > 4


@pytest.mark.parametrize(
    "engine", [KernelEngine(), LinearizedEngine(), NetworkEngine(trainer=GradientDescent(steps=50))], ids=str
)
def test_a_model_saved_on_the_gpu_is_loaded_on_the_cpu(engine, tmp_path):
    reg = PNCRegressor(network=NETWORK, regularization=0.01, random_state=0, device="cuda", engine=engine).fit(X, Y)
    reg.save(tmp_path / "model")
    here, there = (PNCRegressor.load(tmp_path / "model", device=device) for device in ("cpu", None))
    assert (here._replicates.device.type, there._replicates.device.type) == ("cpu", "cuda")
    assert_allclose(here.predict_interval(X_NEW)[1], reg.predict_interval(X_NEW)[1], rtol=1e-7)
    assert_allclose(there.predict_interval(X_NEW)[1], reg.predict_interval(X_NEW)[1], rtol=1e-12)


@pytest.mark.parametrize("options", [{"dtype": "float32"}, {"anchors": 40}], ids=str)
def test_a_model_compressed_on_the_gpu_is_loaded_on_the_cpu(options, tmp_path):
    reg = PNCRegressor(network=NETWORK, regularization=0.01, random_state=0, device="cuda").fit(X, Y).compress(**options)
    reg.save(tmp_path / "model")
    here = PNCRegressor.load(tmp_path / "model", device="cpu")
    assert_allclose(here.predict_interval(X_NEW)[1], reg.predict_interval(X_NEW)[1], rtol=1e-6)
