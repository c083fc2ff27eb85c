"""A loaded model answers every question bit by bit as the one that was saved."""

import io
import pickle
import re
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_array_equal
from torch import nn

from unseed import (
    MLP,
    AutoNetwork,
    Batching,
    CheapBootstrap,
    DeepEnsembleRegressor,
    GradientDescent,
    GradientFlow,
    HalfSampling,
    KernelEngine,
    LinearizedEngine,
    MCDropoutRegressor,
    MonteCarloMean,
    NetworkEngine,
    PNCRegressor,
    SingleNetworkRegressor,
)
from unseed._persistence import kind_of
from unseed.errors import ModelFileError, NotAvailableError

RNG = np.random.default_rng(0)
X, X_NEW = RNG.normal(size=(70, 3)), RNG.normal(size=(9, 3))
Y = np.column_stack([np.sin(X[:, 0]) + 0.1 * RNG.normal(size=70), X[:, 1] * X[:, 2] + 0.1 * RNG.normal(size=70)])
NETWORK = MLP(bias_scale=1.0, scale_inputs=True, width=64)
OPTIONS = {"network": NETWORK, "regularization": 0.01, "random_state": 0}
INTERVALS = ["auto", "sectioning", "batching", "cheap_bootstrap", "half_sampling", "infinitesimal_jackknife"]
ENGINES = [
    KernelEngine(),
    LinearizedEngine(),
    NetworkEngine(dtype="float64", trainer=GradientDescent(steps=4000, tolerance=0.1)),
]


def make_module():
    return nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))


def make_other_module():
    return nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))


def make_larger_module():
    return nn.Sequential(nn.Linear(3, 17), nn.Tanh(), nn.Linear(17, 1))


def trend(X):
    return 3 * X[:, 0]


def fitted(y=Y[:, 0], **options):
    return PNCRegressor(**OPTIONS | options).fit(X, y)


def round_trip(reg, path, **given):
    reg.save(path)
    return type(reg).load(path, **given)


def assert_same_prediction(one, two):
    p, q = one.get_prediction(X_NEW), two.get_prediction(X_NEW)
    assert p.degrees_of_freedom == q.degrees_of_freedom
    for name in ("mean", "standard_error"):
        assert_array_equal(getattr(p, name), getattr(q, name))
    for name in ("data", "procedural", "noise"):
        assert_array_equal(getattr(p.components, name), getattr(q.components, name))
    assert p.components.parts.keys() == q.components.parts.keys()
    for ask in ("conf_int", "pred_int", "simultaneous"):
        assert_array_equal(getattr(p, ask)(0.9), getattr(q, ask)(0.9))


def answer(ask):
    """What a question gives, or that it is refused."""
    try:
        return ask()
    except NotAvailableError as error:
        return str(error)


def assert_same_answers(reg, loaded):
    assert_same_prediction(reg, loaded)
    assert loaded.n_rows_ == reg.n_rows_ == len(X)
    assert_array_equal(reg.predict(X_NEW), loaded.predict(X_NEW))
    assert str(reg.diagnose()) == str(loaded.diagnose())
    one, two = (r.get_contrast(X_NEW, X_NEW[::-1]) for r in (reg, loaded))
    assert_array_equal(one.conf_int(), two.conf_int())
    draws = [answer(lambda r=r: r.sample_networks(X_NEW, 5, random_state=1)) for r in (reg, loaded)]
    assert_array_equal(*draws)
    assert repr(reg.get_params()) == repr(loaded.get_params())
    assert [repr(getattr(reg, f"{n}_")) for n in ("interval", "engine", "network", "regularization", "selection")] == [
        repr(getattr(loaded, f"{n}_")) for n in ("interval", "engine", "network", "regularization", "selection")
    ]


@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: type(e).__name__)
def test_every_engine_and_interval(engine, interval, tmp_path):
    reg = fitted(engine=engine, interval=interval)
    assert_same_answers(reg, round_trip(reg, tmp_path / "model"))


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: type(e).__name__)
def test_several_outputs(engine, tmp_path):
    reg = fitted(Y, engine=engine)
    assert_same_answers(reg, round_trip(reg, tmp_path / "model"))


@pytest.mark.parametrize(
    "options",
    [
        {"engine": KernelEngine(training=GradientFlow(time=50.0))},
        {"engine": KernelEngine(training=GradientDescent(steps=20, rate=0.1)), "interval": Batching(batches=3)},
        {"engine": LinearizedEngine(width=32, training=GradientFlow(time=50.0)), "interval": HalfSampling(replications=2)},
        {"engine": NetworkEngine(width=32, trainer=GradientDescent(steps=30))},
        {"initial_mean": MonteCarloMean(draws=5)},
        {"interval": CheapBootstrap(replications=8), "standardize": False, "noise": "constant", "calibration": "normal"},
        {"network": MLP(depth=2, activation="tanh", bias_scale=0.5, bias_init="zero", input_scale=[1.0, 0.5, 2.0])},
        {"device": torch.device("cpu"), "regularization": np.float64(0.1), "random_state": np.int64(3), "n_jobs": 1},
    ],
    ids=lambda options: next(iter(options)) + type(next(iter(options.values()))).__name__,
)
def test_options(options, tmp_path):
    reg = fitted(**options)
    loaded = round_trip(reg, tmp_path / "model")
    assert_same_prediction(reg, loaded)
    assert loaded.get_params() == reg.get_params()


def test_a_network_that_was_chosen_and_its_rival(tmp_path):
    x = np.linspace(-2, 2, 60)[:, None]
    reg = PNCRegressor(network=AutoNetwork(relevance=False, max_rows=40), random_state=0).fit(x, np.abs(x[:, 0]))
    reg.save(tmp_path / "model")
    loaded = PNCRegressor.load(tmp_path / "model")
    assert loaded.selection_ == reg.selection_
    assert (loaded._replicates.rival is None) == (reg._replicates.rival is None)
    one, two = (r.get_prediction(x + 0.01) for r in (reg, loaded))
    assert_array_equal(one.standard_error, two.standard_error)
    assert_array_equal(one.components.parts["rival"], two.components.parts["rival"])


def test_a_rival_is_kept(tmp_path):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(40, 2))
    reg = PNCRegressor(random_state=0).fit(x, x[:, 0] + 0.5 * rng.normal(size=40))
    assert reg._replicates.rival is not None  # otherwise this test says nothing
    loaded = round_trip(reg, tmp_path / "model")
    one, two = (r.get_prediction(x + 0.1).components.parts["rival"] for r in (reg, loaded))
    assert_array_equal(one, two)
    assert one.max() > 0


def test_another_process_says_the_same(tmp_path):
    reg = fitted()
    reg.save(tmp_path / "model")
    np.save(tmp_path / "new.npy", X_NEW)
    code = (
        "import sys, numpy as np; from unseed import PNCRegressor; folder = sys.argv[1];"
        "reg = PNCRegressor.load(folder + '/model'); new = np.load(folder + '/new.npy');"
        "np.save(folder + '/out.npy', reg.predict_interval(new, kind='prediction')[1])"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    assert_array_equal(np.load(tmp_path / "out.npy"), reg.predict_interval(X_NEW, kind="prediction")[1])


def test_names_index_and_pandas_output(tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    reg = PNCRegressor(**OPTIONS).fit(frame, pd.DataFrame(Y, columns=["u", "v"])).set_output(transform="pandas")
    loaded = round_trip(reg, tmp_path / "model")
    new = pd.DataFrame(X_NEW, columns=["a", "b", "c"], index=list("nopqrstuv"))
    pd.testing.assert_frame_equal(loaded.predict(new), reg.predict(new))
    pd.testing.assert_frame_equal(loaded.get_prediction(new).summary_frame(), reg.get_prediction(new).summary_frame())
    assert list(loaded.feature_names_in_) == ["a", "b", "c"]
    assert loaded.n_features_in_ == 3


def test_an_output_name_that_json_cannot_hold_is_refused(tmp_path):
    reg = PNCRegressor(**OPTIONS).fit(X, pd.Series(Y[:, 0], name=pd.Timestamp("2024-01-01")))
    with pytest.raises(ModelFileError, match="output_names has Timestamp"):
        reg.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_random_state_goes_on_where_it_was(tmp_path):
    reg = fitted(random_state=np.random.RandomState(5))
    loaded = round_trip(reg, tmp_path / "model")
    assert_same_prediction(reg, loaded)
    assert loaded.random_state.randint(10**6) == reg.random_state.randint(10**6)


class TestCode:
    def test_a_module_must_be_given_again(self, tmp_path):
        for engine in ("linearized", NetworkEngine(trainer=GradientDescent(steps=30))):
            reg = fitted(engine=engine, network=make_module)
            reg.save(tmp_path / "model")
            assert_same_prediction(reg, PNCRegressor.load(tmp_path / "model", network=make_module))
            with pytest.raises(ModelFileError, match=r"network is code of your own.*load\(.*network=\.\.\.\)"):
                PNCRegressor.load(tmp_path / "model")
            with pytest.raises(ModelFileError, match="86 parameters and the saved one had 81"):
                PNCRegressor.load(tmp_path / "model", network=make_larger_module)
            with pytest.raises(ModelFileError, match="predict otherwise"):
                PNCRegressor.load(tmp_path / "model", network=make_other_module)

    def test_an_initial_mean_must_be_given_again(self, tmp_path):
        reg = fitted(initial_mean=trend)
        reg.save(tmp_path / "model")
        assert_same_prediction(reg, PNCRegressor.load(tmp_path / "model", initial_mean=trend))
        with pytest.raises(ModelFileError, match="initial_mean is code of your own"):
            PNCRegressor.load(tmp_path / "model")
        with pytest.raises(ModelFileError, match="predict otherwise"):
            PNCRegressor.load(tmp_path / "model", initial_mean=lambda X: 2 * X[:, 0])

    def test_an_activation_of_ones_own(self, tmp_path):
        network = MLP(activation=torch.nn.functional.elu, bias_scale=1.0, width=32)
        reg = fitted(network=network, engine="linearized")
        assert_same_prediction(reg, round_trip(reg, tmp_path / "model", network=network))
        with pytest.raises(ModelFileError, match="network is code of your own"):
            PNCRegressor.load(tmp_path / "model")

    def test_what_is_stored_need_not_be_given(self, tmp_path):
        fitted().save(tmp_path / "model")
        with pytest.raises(ModelFileError, match="leave it out"):
            PNCRegressor.load(tmp_path / "model", network=NETWORK)


BASELINES = [
    DeepEnsembleRegressor(members=3, engine="linearized", **OPTIONS),
    DeepEnsembleRegressor(
        members=2, interval="batching", engine=NetworkEngine(trainer=GradientDescent(steps=30, rate="auto")), **OPTIONS
    ),
    SingleNetworkRegressor(engine="linearized", **OPTIONS),
    SingleNetworkRegressor(engine="linearized", interval=None, **OPTIONS),
    MCDropoutRegressor(rate=0.2, steps=20, passes=10, **OPTIONS),
    MCDropoutRegressor(rate=0.2, passes=10, trainer=GradientDescent(steps=5, rate=0.01), **OPTIONS),
]


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("reg", BASELINES, ids=lambda reg: type(reg).__name__)
def test_baselines(reg, outputs, tmp_path):
    reg.fit(X, Y[:, 0] if outputs == 1 else Y)
    loaded = round_trip(reg, tmp_path / "model")
    assert type(loaded) is type(reg)
    assert loaded.get_params() == reg.get_params()
    assert kind_of(tmp_path / "model") == type(reg).__name__
    assert_array_equal(loaded.predict(X_NEW), reg.predict(X_NEW))
    if getattr(reg, "interval", "") is not None:
        assert_same_prediction(reg, loaded)


def test_a_gpu_model_lives_on_the_cpu_where_there_is_no_gpu(tmp_path):
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU; see test_gpu.py")
    reg = fitted()
    reg.device = "cuda:3"  # as on the machine where it was fitted
    reg.save(tmp_path / "model")
    loaded = PNCRegressor.load(tmp_path / "model")
    assert loaded.device == "cuda:3"
    assert loaded._replicates.device.type == "cpu"
    assert_same_prediction(reg, loaded)
    assert PNCRegressor.load(tmp_path / "model", device="cpu").device == "cpu"
    with pytest.raises(ValueError, match="not on this machine"):
        PNCRegressor.load(tmp_path / "model", device="cuda")


@pytest.mark.parametrize("reg", [PNCRegressor(**OPTIONS), *BASELINES[:1], *BASELINES[4:5], *BASELINES[6:7]], ids=repr)
def test_pickle_and_joblib(reg, tmp_path):
    reg.fit(X, Y[:, 0])
    file = io.BytesIO()
    joblib.dump(reg, file)
    file.seek(0)
    for copy in (
        pickle.loads(pickle.dumps(reg)),
        joblib.load(file),
        pickle.loads(pickle.dumps(round_trip(reg, tmp_path / "model"))),  # before and
        pickle.loads(pickle.dumps(_asked(round_trip(reg, tmp_path / "model")))),  # after its factors were made
    ):
        assert_same_prediction(reg, copy)
        assert_same_prediction(reg, round_trip(copy, tmp_path / "again"))


def _asked(reg):
    reg.get_prediction(X_NEW)
    return reg


def test_a_loaded_model_can_be_fitted_again(tmp_path):
    loaded = round_trip(fitted(), tmp_path / "model").fit(X[:50], Y[:50, 0])
    assert_same_prediction(PNCRegressor(**OPTIONS).fit(X[:50], Y[:50, 0]), loaded)


def test_what_the_page_shows_runs_and_is_true(tmp_path, monkeypatch, capsys):
    page = (Path(__file__).parents[2] / "docs" / "saving.md").read_text()
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    exec(compile(block, "saving.md", "exec"), {})
    size, report = capsys.readouterr().out.splitlines()
    assert f"{int(size):,}, before" in page
    assert "in units of y" in report
    assert {path.name for path in tmp_path.iterdir()} == {"model", "small"}


def test_size_is_that_of_the_files(tmp_path):
    for reg in (fitted(), *(one.fit(X, Y[:, 0]) for one in (BASELINES[0], BASELINES[4]))):
        reg.save(tmp_path / "model")
        size = (tmp_path / "model" / "tensors.safetensors").stat().st_size
        assert 0 < size - reg.size_in_bytes() < 4096  # the header of the tensors
        assert (tmp_path / "model" / "model.json").stat().st_size < 20_000
