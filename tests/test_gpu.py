"""The same numbers on a GPU as on the CPU; run where there is one."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from unseed import (
    MLP,
    GradientDescent,
    KernelEngine,
    Landmarks,
    LinearizedEngine,
    NetworkEngine,
    PNCRegressor,
    Sectioning,
    predict_interval_many,
)
from unseed.costs import Job, Rates, forecast
from unseed.engines import _cohorts as cohorts
from unseed.kernels import PopulationKernel
from unseed.kernels import _fused as fused
from unseed.kernels import _gram as gram

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


@pytest.mark.parametrize("activation", ["relu", "erf", "sin"])
@pytest.mark.parametrize("bias", [{}, {"bias_scale": 0.7}, {"bias_scale": 0.7, "bias_init": "zero"}], ids=str)
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("is_fused", [True, False])
def test_kernels_agree_with_the_cpu(activation, bias, depth, is_fused, monkeypatch):
    if not is_fused:
        monkeypatch.setattr(fused, "_compiled", lambda dual, kind, device: None)
    x = X[0]
    special = np.stack([x, x, -x, 2 * x, np.zeros(5), x + 1e-7 * X[1], *X[1:6]])
    kernel = PopulationKernel(MLP(depth=depth, activation=activation, weight_std=1.3, **bias))
    for of_points in (kernel.ntk_gram, kernel.nngp_gram, lambda p: kernel.ntk_cross(p[slice(7, None)], p[slice(0, 7)])):
        for rows in (special, X[:20]):  # with nearly parallel pairs, and without
            here, there = (of_points(kernel.profile(torch.tensor(rows, device=device))).cpu() for device in ("cpu", "cuda"))
            assert_allclose(there, here, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("sizes", [(64, 64), (65, 127), (200, 1), (1, 300), (129, 640)])
@pytest.mark.parametrize("features", [1, 16, 17, 40])
def test_fused_kernels_at_the_edges_of_tiles(sizes, features):
    left, right = (RNG.normal(size=(n, features)) for n in sizes)
    kernel = PopulationKernel(MLP(depth=2, bias_scale=0.7, weight_std=1.3))
    found = {}
    for device in ("cpu", "cuda"):
        here, there = (kernel.profile(torch.tensor(rows, device=device)) for rows in (left, right))
        columns = torch.ones(len(right), 2, dtype=torch.float64, device=device)
        parts = kernel.ntk_cross(here, there), kernel.nngp_gram(here), kernel.ntk_product(here, there, columns)
        found[device] = [part.cpu() for part in (*parts, kernel.ntk_gram_product(there, columns))]
    for here, there in zip(found["cpu"], found["cuda"], strict=True):
        assert_allclose(there, here, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("activation", ["relu", "erf", "sin"])
def test_fused_kernels_are_in_use_and_exactly_symmetric(activation):
    kernel = PopulationKernel(MLP(activation=activation, depth=3, bias_scale=1.0))
    points = kernel.profile(torch.tensor(RNG.normal(size=(300, 5)), device="cuda"))
    assert fused.can_fuse(kernel.network, points, "ntk")
    assert fused.can_fuse(kernel.network, points, "nngp")
    matrix = kernel.ntk_gram(points)
    assert torch.equal(matrix, matrix.T)
    assert torch.equal(matrix.diagonal(), points.diagonal.ntk)


@pytest.mark.parametrize("depth", [1, 3])
def test_stacks_are_the_matrices_of_each_set(depth):
    kernel = PopulationKernel(MLP(bias_scale=1.0, depth=depth))
    X, X_new = (torch.tensor(RNG.normal(size=(3, n, 5)), device="cuda") for n in (70, 130))
    points, others = kernel.profile(X), kernel.profile(X_new)
    for i, cross in enumerate(kernel.ntk_cross(others, points)):
        here, there = (kernel.profile(part[i].cpu()) for part in (X_new, X))
        assert_allclose(cross.cpu(), kernel.ntk_cross(here, there), rtol=1e-12, atol=1e-12)
    grams, crosses = kernel.ntk_gram(points), kernel.ntk_cross(points, points)
    for own, gram_of_own, cross in zip(X, grams, crosses, strict=True):
        assert_allclose(gram_of_own.cpu(), kernel.ntk_gram(kernel.profile(own)).cpu(), rtol=1e-13)
        assert_allclose(cross.cpu(), gram_of_own.cpu(), rtol=1e-7)  # a point with itself, without knowing that it is


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize(("is_fused", "budget"), [(True, 4 << 20), (False, gram.GPU_TEMPORARY_BYTES)])
def test_temporaries_stay_within_their_budget(depth, is_fused, budget, monkeypatch):
    if not is_fused:
        monkeypatch.setattr(fused, "_compiled", lambda dual, kind, device: None)
    kernel = PopulationKernel(MLP(depth=depth, bias_scale=1.0))
    points = kernel.profile(torch.randn(9000, 5, dtype=torch.float64, device="cuda"))
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    matrix = kernel.ntk_gram(points)
    assert torch.cuda.max_memory_allocated() - before - matrix.numel() * 8 < budget


@pytest.mark.parametrize("interval", ["cheap_bootstrap", "batching"])
def test_many_data_sets(interval):
    sets, labels = np.stack([X, 2 * X]), np.stack([Y, -Y])
    options = {"network": NETWORK, "regularization": 0.01, "interval": interval}
    here, there = (predict_interval_many(sets, labels, X_NEW, device=device, **options) for device in ("cpu", "cuda"))
    assert_allclose(there[0], here[0], rtol=1e-9)
    assert_allclose(there[1], here[1], rtol=1e-8)


@pytest.mark.parametrize(
    "engine", [KernelEngine(), KernelEngine(precision="mixed"), LinearizedEngine(width=64), NetworkEngine(width=64)], ids=str
)
def test_a_forecast_is_made_of_rates_of_the_gpu(engine):
    here, there = (
        Job(300, 5, points=20, interval=Sectioning(), engine=engine, network=NETWORK, device=torch.device(device))
        for device in ("cpu", "cuda")
    )
    found = forecast(there, Rates.for_job(there))
    assert 0 < found.seconds < 60
    assert found.bytes >= here.cost.memory.needed()


MANY = RNG.uniform(-1, 1, size=(20_000, 5))
LABELS = np.sin(3 * MANY[:, 0]) + MANY[:, 1] * MANY[:, 2] + 0.3 * RNG.normal(size=20_000)


def summed_up(device, **options):
    return PNCRegressor(network=NETWORK, solver=Landmarks(count=512), random_state=0, device=device, **options)


def answers(fitted):
    found = fitted.get_prediction(MANY[:500] + 0.01)
    return np.stack([found.mean, found.standard_error])


@pytest.mark.parametrize("regularization", ["auto", 1e-3])
def test_rows_are_summed_up_as_on_the_cpu(regularization):
    here, there = (summed_up(device, regularization=regularization).fit(MANY, LABELS) for device in ("cpu", "cuda"))
    assert (here._replicates.device.type, there._replicates.device.type) == ("cpu", "cuda")
    landmarks = [fitted._replicates.trained.spaces.spaces[0].landmarks.cpu().numpy() for fitted in (here, there)]
    assert_allclose(*landmarks, rtol=1e-12)  # the same rows, in the same order
    assert_allclose(answers(there), answers(here), rtol=0, atol=1e-6 * LABELS.std())


def test_a_model_that_was_begun_on_the_cpu_takes_rows_on_the_gpu(tmp_path):
    begun = summed_up("cpu").fit(MANY[:12_000], LABELS[:12_000])
    begun.save(tmp_path / "model")
    found = []
    for device in ("cpu", "cuda"):
        model = PNCRegressor.load(tmp_path / "model", device=device).partial_fit(MANY[12_000:], LABELS[12_000:])
        assert model._replicates.device.type == device
        found.append(answers(model))
    assert_allclose(found[1], found[0], rtol=0, atol=1e-6 * LABELS.std())
    assert_allclose(found[0], answers(summed_up("cpu").fit(MANY, LABELS)), rtol=0, atol=1e-6 * LABELS.std())
