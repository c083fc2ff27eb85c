"""What holds for every engine in the list, and what holds for ours, through the public estimator."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from torch import nn

from oracles.replicates import ReplicatesByHand
from unseed import (
    MLP,
    SGD,
    GradientDescent,
    InfinitesimalJackknife,
    KernelEngine,
    LinearizedEngine,
    MonteCarloMean,
    NetworkEngine,
    PNCRegressor,
    Sectioning,
)
from unseed._random import Streams
from unseed.engines import ENGINES, NewPoints, Task
from unseed.engines import _cohorts as cohorts
from unseed.engines import _cost as forecast
from unseed.errors import InvalidInputError, NotAvailableError, NotEnoughMemoryError
from unseed.intervals import METHODS, Plan, resolve_interval

OURS = [KernelEngine(), LinearizedEngine(), NetworkEngine(dtype="float64")]
"""Engines whose networks become the infinitely wide one."""
EVERY = [*OURS, *(engine() for engine in ENGINES.values() if engine not in map(type, OURS))]
INTERVALS = ["batching", "cheap_bootstrap", "sectioning", "half_sampling", "infinitesimal_jackknife"]
NETWORK = MLP(activation="erf", bias_scale=1.0, scale_inputs=True, width=1024)
NARROW = replace(NETWORK, width=256)
RNG = np.random.default_rng(0)
X, X_NEW = RNG.normal(size=(40, 3)), RNG.normal(size=(7, 3))
Y = np.column_stack([np.sin(X[:, 0]) + 0.1 * RNG.normal(size=40), X[:, 1] + 0.1 * RNG.normal(size=40)])


def fitted(engine, interval="cheap_bootstrap", y=Y[:, 0], **options):
    settings = {"network": NETWORK, "regularization": 0.01, "random_state": 3} | options
    return PNCRegressor(engine=engine, interval=interval, **settings).fit(X, y)


def assert_is_infinitely_wide(engine, reg, method):
    """Mean, error, noise and seeds, against ridge regressions written out: to all digits, or as near as a width of 1024 is."""
    found, by_hand = reg.get_prediction(X_NEW), ReplicatesByHand(method, NETWORK, 0.01, 3, X, Y[:, 0])
    expected = method.estimate(by_hand, X_NEW)
    centre, error = expected.centre[:, 0], expected.standard_error[:, 0]
    assert found.degrees_of_freedom == expected.degrees_of_freedom
    if isinstance(engine, KernelEngine):
        assert_allclose(found.mean, centre, rtol=1e-9)
        assert_allclose(found.standard_error, error, rtol=1e-9)
        assert_allclose(found.components.noise, by_hand.noise(), rtol=1e-9)
        assert_allclose(found.components.procedural, by_hand.procedural(X_NEW), rtol=1e-8)
    else:
        assert np.abs(found.mean - centre).mean() < 0.05 * Y[:, 0].std()
        assert_allclose(np.log(found.standard_error / error).mean(), 0.0, atol=0.15)
        assert_allclose(found.components.noise, by_hand.noise(), rtol=0.1)


@pytest.mark.parametrize("engine", EVERY, ids=lambda e: type(e).__name__)
class TestEveryEngine:
    @pytest.mark.parametrize("interval", ["auto", *METHODS])
    def test_intervals_are_there_or_refused_before_training(self, engine, interval):
        method = resolve_interval(interval, len(X), has_posterior="posterior" in engine.capabilities)
        needed = {"influence": method.uses_influence, "posterior": method.uses_posterior}
        if missing := [name for name, is_needed in needed.items() if is_needed and name not in engine.capabilities]:
            with pytest.raises(InvalidInputError, match=f"needs the capability '{missing[0]}'"):
                fitted(engine, interval)
            return
        reg = fitted(engine, interval, y=Y, network=NARROW)
        found = reg.get_prediction(X_NEW)
        assert found.mean.shape == (7, 2)
        assert found.conf_int().shape == (7, 2, 2)
        assert (found.standard_error > 0).all()
        assert (found.components.noise > 0).all()
        assert_allclose(reg.predict(X_NEW), found.mean, rtol=1e-6)
        assert str(reg.diagnose())  # also where nothing was found to look at

    def test_same_seed_same_numbers(self, engine):
        one, two = fitted(engine).predict_interval(X_NEW)[1], fitted(engine, n_jobs=2).predict_interval(X_NEW)[1]
        assert_array_equal(one, two)

    def test_pickle_round_trip(self, engine):
        reg = fitted(engine)
        assert_array_equal(pickle.loads(pickle.dumps(reg)).predict_interval(X_NEW)[1], reg.predict_interval(X_NEW)[1])

    def test_replicates_have_starts_of_their_own_or_none(self, engine):
        # The same rows twice: what differs between two fits of all rows is the start, which base and auxiliary share.
        twice = Plan(np.ones((2, len(X)), dtype=np.int64), reference=(0,))
        labels = torch.tensor(np.stack([Y, np.zeros_like(Y)], axis=1))
        trained = engine.fit(Task(torch.tensor(X), labels, NETWORK, 0.01, Streams(3)), twice)
        one, two = trained.predict(NewPoints(torch.tensor(X_NEW))).double()
        assert torch.equal(one, two) == engine.is_infinite

    def test_what_the_initial_mean_says_already_is_not_learned(self, engine):
        given = fitted(engine, initial_mean=lambda X: 100 * X[:, 0], y=100 * X[:, 0]).predict(X_NEW)
        assert_allclose(given, 100 * X_NEW[:, 0], rtol=1e-3)

    def test_new_points_are_answered_one_by_one(self, engine):
        reg = fitted(engine)
        assert_allclose(np.concatenate([reg.predict(point[None]) for point in X_NEW]), reg.predict(X_NEW), rtol=1e-5)


@pytest.mark.parametrize("engine", OURS, ids=lambda e: type(e).__name__)
class TestOurEngines:
    @pytest.mark.parametrize("interval", INTERVALS)
    def test_intervals_are_those_of_the_infinitely_wide_network(self, engine, interval):
        method = resolve_interval(interval, len(X))
        assert_is_infinitely_wide(engine, fitted(engine, interval, noise="constant"), method)

    def test_what_is_not_the_infinitely_wide_network_is_noticed(self, engine):
        sectioning, jackknife = Sectioning(), InfinitesimalJackknife()
        for wrong, method in (
            (fitted(engine, "sectioning", noise="constant", regularization=0.1), sectioning),
            (fitted(engine, "sectioning", noise="constant", y=Y[:, 1]), sectioning),
            (fitted(engine, "sectioning", noise="constant", network=MLP(width=1024)), sectioning),
            (fitted(engine, "sectioning", noise="constant"), Sectioning(batches=5)),
            (fitted(engine, "infinitesimal_jackknife", noise="constant", regularization=0.1), jackknife),
        ):
            with pytest.raises(AssertionError):
                assert_is_infinitely_wide(engine, wrong, method)

    def test_several_outputs_are_like_one(self, engine):
        both = fitted(engine, y=Y).get_prediction(X_NEW)
        one = fitted(engine).get_prediction(X_NEW)
        # a network with two outputs has another start than one with a single output
        assert np.abs(both.mean[:, 0] - one.mean).mean() < 0.08 * Y[:, 0].std()

    def test_initial_means(self, engine):
        zero = fitted(engine).predict(X_NEW)
        drawn = fitted(engine, initial_mean=MonteCarloMean(draws=200)).predict(X_NEW)
        assert 0 < np.abs(drawn - zero).mean() < 0.1

    def test_diagnosis_holds_for_a_wide_network(self, engine):
        diagnosis = fitted(engine).diagnose()
        assert "condition number" in str(diagnosis)
        about_the_fit = {"structure left in the errors, share of them"}  # a matter of λ here, not of the engine
        assert {finding.name for finding in diagnosis.warnings} <= about_the_fit


def test_linearized_influence_is_a_derivative_in_the_weights():
    # An extra half row: the fit to counts with c_i + ε moves by ε/n · IF_i (to first order).
    reg = fitted(LinearizedEngine(width=64), "infinitesimal_jackknife", y=Y)
    ((tangent, labels),) = reg._replicates.trained.references
    inputs = reg._replicates.inputs(X_NEW)
    influence = reg._replicates.trained.influence(NewPoints(inputs)).numpy()

    def fit(counts):
        moved = type(tangent)(tangent.batch, tangent.parameters, tangent.X, counts, tangent.regularization)
        return moved.predict(inputs, moved.solve(labels[:, None]))[:, 0].numpy()

    step, n = 1e-4, len(X)
    for row in (0, 17):
        weight = torch.zeros(n, dtype=torch.float64)
        weight[row] = 1.0
        shift = [fit(torch.ones(n, dtype=torch.float64) * (1 - e) + e * n * weight) for e in (step, -step)]
        assert_allclose((shift[0] - shift[1]) / (2 * step), influence[row], rtol=0, atol=1e-6 * np.abs(influence).max())


def test_linearized_network_is_ridge_regression_on_its_gradients():
    reg = fitted(LinearizedEngine(width=32), "infinitesimal_jackknife", standardize=False)
    tangent = reg._replicates.trained.tangents[0]
    batch, theta = tangent.batch, tangent.parameters

    def gradients(points):
        return torch.autograd.functional.jacobian(lambda p: batch.outputs(p, torch.tensor(points)[None])[0, :, 0], theta)[
            :, 0
        ].numpy()

    J, J_new = gradients(X), gradients(X_NEW)
    weights = J.T @ np.linalg.solve(J @ J.T + 0.4 * np.eye(40), Y[:, 0])
    assert_allclose(reg.predict(X_NEW), J_new @ weights, rtol=1e-8)


class TestNetworkEngine:
    def test_width_comes_from_engine_network_or_rows(self):
        one_step = GradientDescent(steps=1)
        assert fitted(NetworkEngine(width=50, trainer=one_step))._replicates.trained.batch.width == 50
        assert fitted(NetworkEngine(trainer=one_step))._replicates.trained.batch.width == 1024
        plain = fitted(NetworkEngine(trainer=one_step), network=MLP())
        assert plain._replicates.trained.batch.width == 32 * 40

    def test_base_and_auxiliary_share_their_start_and_replicates_do_not(self):
        engine = NetworkEngine(trainer=GradientDescent(steps=0, rate=0.1), dtype="float64")
        trained = fitted(engine)._replicates.trained
        assert torch.equal(trained.parameters[:, 0], trained.parameters[:, 1])
        assert not torch.equal(trained.parameters[0], trained.parameters[1])

    def test_gradient_descent_follows_the_kernel_at_finite_time(self):
        training = GradientDescent(steps=60, rate=0.05)
        trained = fitted(NetworkEngine(width=8192, trainer=training), "half_sampling").predict(X_NEW)
        assert_allclose(trained, fitted(KernelEngine(training=training), "half_sampling").predict(X_NEW), atol=0.03)

    def test_stochastic_descent_finds_about_the_same_network(self):
        stochastic = fitted(NetworkEngine(trainer=SGD(epochs=400, batch_size=10)), "batching").predict(X_NEW)
        assert np.abs(stochastic - fitted(NetworkEngine(), "batching").predict(X_NEW)).mean() < 0.1

    def test_networks_that_did_not_converge_are_named(self):
        engine = NetworkEngine(trainer=GradientDescent(steps=5, tolerance=1e-8))
        with pytest.warns(
            ConvergenceWarning, match=r"base network of replicate 0, auxiliary network of replicate 0, .* and 6 more"
        ):
            reg = fitted(engine)
        assert not reg.convergence_.converged.any()
        assert "gradient left, relative to the start's" in {finding.name for finding in reg.diagnose().warnings}
        assert "CHECK" in str(reg.diagnose())

    def test_reproduction_mode_does_not_warn_and_has_no_jackknife(self):
        engine = NetworkEngine(trainer=GradientDescent(steps=5, rate=0.01))
        assert fitted(engine).convergence_.wanted is False
        with pytest.raises(InvalidInputError, match="needs converged training"):
            fitted(engine, "infinitesimal_jackknife")

    def test_figures_of_the_diagnosis_are_what_they_say(self):
        reg = fitted(NetworkEngine(dtype="float64"))
        values = {finding.name: finding.value for finding in reg.diagnose().findings}
        trained = reg._replicates.trained
        moved = (trained.parameters[0, 0] - trained.starts[0]).norm() / trained.starts[0].norm()
        assert_allclose(values["distance of the parameters from their start"], float(moved), rtol=1e-12)
        centre, *others = reg._replicates.predict(reg._probe)
        low, high = reg.predict_interval(reg._probe)[1][:, :, 0].T
        shift = np.abs(np.mean(others, axis=0) - centre).mean() / ((high - low).mean() / 2)
        assert_allclose(values["bias of the resamples, in half widths"], shift, rtol=1e-9)
        linear = fitted(LinearizedEngine()).predict(reg._probe)  # same seed, same starts
        apart = np.abs(centre[:, 0] - linear).mean() / ((high - low).mean() / 2)
        assert_allclose(values["trained against linearised prediction, in half widths"], apart, rtol=1e-6)

    def test_a_narrow_network_is_diagnosed(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            reg = fitted(NetworkEngine(width=4), network=MLP(activation="erf"), regularization=1e-6)
        assert "change of the tangent kernel in training" in {finding.name for finding in reg.diagnose().warnings}

    def test_replicates_that_do_not_fit_the_memory_are_split(self, monkeypatch):
        whole = fitted(NetworkEngine(dtype="float64")).predict_interval(X_NEW)[1]
        real = cohorts._train

        def small(trainer, objective, progress):
            if len(objective.start) > 2:
                raise torch.OutOfMemoryError
            return real(trainer, objective, progress)

        monkeypatch.setattr(cohorts, "_train", small)
        monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
        assert_allclose(fitted(NetworkEngine(dtype="float64")).predict_interval(X_NEW)[1], whole, rtol=1e-4)
        monkeypatch.setattr(cohorts, "available_bytes", lambda device: 1)
        assert_allclose(fitted(NetworkEngine(dtype="float64")).predict_interval(X_NEW)[1], whole, rtol=1e-4)

        def nothing_fits(trainer, objective, progress):
            raise torch.OutOfMemoryError

        monkeypatch.setattr(cohorts, "_train", nothing_fits)
        with pytest.raises(torch.OutOfMemoryError):
            fitted(NetworkEngine())

    def test_an_interrupted_fit_leaves_an_unfitted_estimator(self, monkeypatch):
        reg = fitted(NetworkEngine())

        def interrupted(*args):
            raise KeyboardInterrupt

        monkeypatch.setattr(cohorts, "_train", interrupted)
        with pytest.raises(KeyboardInterrupt):
            reg.fit(X[:, :2], Y[:, 1])
        with pytest.raises(NotFittedError):
            reg.predict(X_NEW)
        assert not hasattr(reg, "convergence_")

    def test_a_diverging_rate_is_named(self):
        for rate, steps in ((50.0, 200), (2.0, 20)):  # to NaN, and to a finite loss above the start's
            with pytest.raises(
                InvalidInputError, match=rf"rate={rate} diverges: .* use a rate of at most 0\.\d+, or rate='auto'"
            ):
                fitted(NetworkEngine(trainer=GradientDescent(steps=steps, rate=rate)))

    def test_stochastic_descent_does_not_depend_on_what_trains_together(self, monkeypatch):
        engine = NetworkEngine(trainer=SGD(epochs=15, batch_size=10, tolerance=0.9), dtype="float64")
        together = fitted(engine, "half_sampling").predict_interval(X_NEW)[1]
        monkeypatch.setattr(cohorts, "available_bytes", lambda device: 1)
        assert_allclose(fitted(engine, "half_sampling").predict_interval(X_NEW)[1], together, rtol=1e-9)

    def test_a_hopeless_training_is_not_called_converged(self):
        with pytest.warns(ConvergenceWarning, match="did not converge"):
            fitted(NetworkEngine(width=64, trainer=SGD(rate=1e5, epochs=20)))

    def test_too_wide_networks_are_refused_before_they_are_drawn(self, monkeypatch):
        monkeypatch.setattr(forecast, "available_bytes", lambda device: 50_000_000)
        for engine in (NetworkEngine(width=100_000), LinearizedEngine(width=1_000_000)):
            with pytest.raises(NotEnoughMemoryError, match=r"of width 1[0,]+ on 40 rows need .* a width of [\d,]+ needs"):
                fitted(engine, network=MLP())

    def test_noise_of_several_outputs(self):
        rng = np.random.default_rng(0)
        points = rng.uniform(-1, 1, size=(150, 2))
        labels = np.column_stack([np.sin(points[:, 0]), points[:, 1]]) + rng.standard_normal((150, 2)) * [0.1, 0.4]
        for engine in (KernelEngine(), LinearizedEngine(), NetworkEngine(dtype="float64")):
            options = {"network": NETWORK, "regularization": 0.02, "random_state": 0, "interval": "batching"}
            noise = PNCRegressor(engine=engine, **options).fit(points, labels).get_prediction(points[:1]).components.noise[0]
            assert_allclose(np.sqrt(noise), [0.1, 0.4], rtol=0.2)  # sd of a standard deviation from 150 rows: 6 %

    def test_tf32_is_off_unless_asked_for_and_put_back(self, monkeypatch):
        def flags():
            return torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32

        seen = []
        real = cohorts._train
        monkeypatch.setattr(cohorts, "_train", lambda *args: seen.append(flags()) or real(*args))
        before = flags()
        fitted(NetworkEngine(trainer=GradientDescent(steps=1)))
        fitted(NetworkEngine(trainer=GradientDescent(steps=1), allow_tf32=True))
        assert set(seen[: len(seen) // 2]) == {("highest", False)}
        assert set(seen[len(seen) // 2 :]) == {("high", True)}
        assert flags() == before

    @pytest.mark.parametrize("options", [{"width": 0}, {"trainer": "adam"}, {"dtype": "float16"}, {"allow_tf32": 1}], ids=str)
    def test_impossible_options_are_refused_at_birth(self, options):
        with pytest.raises(InvalidInputError, match=next(iter(options))):
            NetworkEngine(**options)

    def test_other_seeds_cannot_be_drawn_exactly(self):
        with pytest.raises(NotAvailableError, match="DeepEnsembleRegressor"):
            fitted(NetworkEngine(trainer=GradientDescent(steps=1))).sample_networks(X_NEW)


def small_module():
    return nn.Sequential(nn.Linear(3, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 1))


ONE_MODULE = nn.Linear(3, 1)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.block, self.last = nn.Linear(3, 32), nn.Sequential(nn.Linear(32, 32), nn.GELU()), nn.Linear(32, 1)

    def forward(self, x):
        h = self.first(x)
        return self.last(h + self.block(h))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(1, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.last = nn.Linear(16, 1)

    def forward(self, x):
        return self.last(self.layer(self.embed(x[:, :, None])).mean(1))


class RandomFeatures(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("frequencies", torch.randn(3, 40))
        self.last = nn.Linear(40, 1)

    def forward(self, x):
        return self.last(torch.sin(x @ self.frequencies))


class Centred(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.Linear(3, 1)

    def forward(self, x):
        return self.last(x - x.mean(0))


class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(3, 30), nn.Linear(30, 1)
        nn.init.constant_(self.first.weight, 0.5)
        nn.init.constant_(self.first.bias, 0.1)
        self.first.requires_grad_(False)

    def forward(self, x):
        return self.last(torch.sin(self.first(x)))


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 1))

    def forward(self, x):
        return self.body(x)


class TestModules:
    @pytest.mark.parametrize("interval", INTERVALS)
    def test_linearized_with_every_interval(self, interval):
        reg = fitted("linearized", interval, network=small_module)
        assert np.isfinite(reg.get_prediction(X_NEW).conf_int()).all()
        assert reg.score(X, Y[:, 0]) > 0.7

    @pytest.mark.parametrize("interval", INTERVALS)
    def test_trained_with_every_interval(self, interval):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            reg = fitted(NetworkEngine(trainer=SGD(epochs=60, batch_size=16)), interval, network=small_module)
        p = reg.get_prediction(X_NEW)
        assert (np.diff(p.conf_int()) > 0).all()
        assert reg.score(X, Y[:, 0]) > 0.6
        assert len(str(reg.diagnose()).splitlines()) >= 5

    def test_default_engine_options_and_pickling(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            reg = fitted("network", "batching", network=small_module, regularization="auto")
        assert reg.regularization_ == 1e-6
        assert_array_equal(pickle.loads(pickle.dumps(reg)).predict(X_NEW), reg.predict(X_NEW))

    @pytest.mark.parametrize("module", [Residual, Attention], ids=lambda m: m.__name__)
    @pytest.mark.parametrize(
        "engine", ["linearized", NetworkEngine(trainer=SGD(epochs=80, batch_size=10, tolerance=0.5))], ids=str
    )
    def test_architectures_people_have(self, module, engine):
        reg = fitted(engine, "batching", network=module)
        assert reg.score(X, Y[:, 0]) > 0.3
        assert (np.diff(reg.get_prediction(X_NEW).conf_int()) > 0).all()

    def test_frozen_layers_stay_frozen(self):
        reg = fitted(NetworkEngine(trainer=SGD(epochs=20, tolerance=0.9)), "batching", network=Frozen)
        assert reg._replicates.trained.parameters.shape[-1] == 31

    @pytest.mark.parametrize(
        ("module", "message"),
        [
            (RandomFeatures, "constant 'frequencies' .* is drawn anew for every module"),
            (Centred, "depends on the other rows of its batch"),
            (lambda: ONE_MODULE, "returns the same module every time"),
            (lambda: nn.Linear(5, 1), r"failed on an input of shape \(2, 3\)"),
            (lambda: nn.GRU(3, 1, batch_first=True), "it must be|failed on an input"),
            (nn.ReLU, "has no parameters to train"),
            (nn.Linear, "could not be called without arguments"),
        ],
        ids=["random buffer", "batch mean", "one instance", "wrong inputs", "tuple", "no parameters", "arguments"],
    )
    def test_modules_that_cannot_be_used_are_explained(self, module, message):
        with pytest.raises(InvalidInputError, match=message):
            fitted("linearized", network=module)
        with pytest.raises(InvalidInputError, match="width=7 belongs to an MLP"):
            fitted(NetworkEngine(width=7), network=small_module)

    def test_fitting_leaves_the_random_state_of_torch_alone(self):
        before = torch.random.get_rng_state()
        fitted("linearized", network=small_module)
        assert torch.equal(before, torch.random.get_rng_state())

    def test_images_keep_their_shape(self):
        rng = np.random.default_rng(0)
        pictures = rng.normal(size=(30, 1, 8, 8))
        target = pictures[:, 0, :4].mean(axis=(1, 2))
        reg = PNCRegressor(engine="linearized", network=Images, regularization=1e-3, random_state=0).fit(pictures, target)
        assert reg.predict_interval(pictures[:5])[1].shape == (5, 2, 1)
        with pytest.raises(
            InvalidInputError, match=r"X has rows of shape \(1, 1, 8\) and the network was fitted to \(1, 8, 8\)"
        ):
            reg.predict(pictures[:5, :, :1])
        with pytest.raises(ValueError, match=r"dim 4|dimension"):
            PNCRegressor(random_state=0).fit(pictures, target)
