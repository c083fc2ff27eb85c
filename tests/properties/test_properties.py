"""What must be the same by two routes, whatever the data: rows repeated or counted, in other orders, units and company."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from unseed import MLP, InfinitesimalJackknife, KernelEngine, LinearizedEngine, NetworkEngine, PNCRegressor
from unseed._resampling import Plan
from unseed.engines import NewPoints, Task

N, D, SEEDS = 14, 2, st.integers(0, 10_000)
NETWORKS = st.builds(
    MLP,
    depth=st.integers(1, 2),
    activation=st.sampled_from(["relu", "erf", "sin", "tanh"]),
    weight_std=st.sampled_from([1.0, 1.4]),
    bias_scale=st.sampled_from([0.5, 1.0]),
    bias_init=st.sampled_from(["normal", "zero"]),
    scale_inputs=st.booleans(),
)
LAMBDAS = st.sampled_from([1e-3, 1e-2, 0.3])
EXACT = [KernelEngine(), LinearizedEngine(width=48)]
quick = settings(max_examples=6, deadline=None, derandomize=True)
by_engine = pytest.mark.parametrize("engine", EXACT, ids=lambda engine: type(engine).__name__)


def data(seed, n=N, outputs=1):
    rng = np.random.default_rng(seed)
    X, X_new = rng.normal(size=(n, D)), rng.normal(size=(5, D))
    slopes = rng.normal(size=(D, outputs))
    return X, np.sin(X @ slopes) + 0.2 * rng.normal(size=(n, outputs)), X_new


def fitted(X, y, **options):
    options = {"network": MLP(bias_scale=1.0), "regularization": 0.01, "random_state": 0} | options
    return PNCRegressor(**options).fit(X, y)


def figures(prediction):
    """Everything about points that has the unit of y (variances as deviations)."""
    components = prediction.components
    parts = [np.sqrt(values) for _, values in sorted(components.parts.items())]
    roots = [np.sqrt(getattr(components, name)) for name in ("data", "procedural", "noise")]
    half = np.diff(prediction.pred_int(0.9), axis=-1)[..., 0]
    return np.stack([prediction.standard_error, half, np.diff(prediction.simultaneous(0.9), axis=-1)[..., 0], *roots, *parts])


@by_engine
@quick
@given(seed=SEEDS, network=NETWORKS, regularization=LAMBDAS)
def test_counts_are_repeated_rows(engine, seed, network, regularization):
    X, y, X_new = data(seed)
    counts = np.random.default_rng(seed).multinomial(N, np.full(N, 1 / N), size=2)
    found = engine.fit(Task(torch.tensor(X), torch.tensor(y)[:, None], network, regularization), Plan(counts, (0,)), n_jobs=1)
    predictions = found.predict(NewPoints(torch.tensor(X_new)))
    repeated = np.repeat(np.arange(N), counts[0])
    task = Task(torch.tensor(X[repeated]), torch.tensor(y[repeated])[:, None], network, regularization)
    once = engine.fit(task, Plan(np.ones((1, N), dtype=np.int64), (0,)), n_jobs=1).predict(NewPoints(torch.tensor(X_new)))
    assert_allclose(predictions[0], once[0], rtol=1e-7, atol=1e-9)


@by_engine
@quick
@given(seed=SEEDS, network=NETWORKS, interval=st.sampled_from(["infinitesimal_jackknife", "truth"]))
def test_the_order_of_rows_does_not_matter(engine, seed, network, interval):
    X, y, X_new = data(seed)
    order = np.random.default_rng(seed).permutation(N)
    options = {"engine": engine, "network": network, "interval": interval}
    one = fitted(X, y[:, 0], **options)
    # the batches of another order are others: what is not resampled must be the same
    two = fitted(X[order], y[order, 0], **options)
    p, q = one.get_prediction(X_new), two.get_prediction(X_new)
    assert_allclose(q.mean, p.mean, rtol=1e-7, atol=1e-9)
    for name in ("posterior", "misfit") if interval == "truth" else ():
        assert_allclose(q.components.parts[name], p.components.parts[name], rtol=1e-6, atol=1e-9)
    if interval != "truth":
        assert_allclose(q.standard_error, p.standard_error, rtol=1e-6, atol=1e-9)
    assert_allclose(q.components.noise, p.components.noise, rtol=1e-7)
    if interval != "truth" or isinstance(engine, KernelEngine):
        assert_allclose(q.components.procedural, p.components.procedural, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("interval", ["truth", "half_sampling", "infinitesimal_jackknife"])
@by_engine
@quick
@given(seed=SEEDS, scale=st.sampled_from([1e-4, 7.0, 1e5]), shift=st.sampled_from([0.0, -3.0]))
def test_units_come_back_in_every_figure(engine, interval, seed, scale, shift):
    X, y, X_new = data(seed, n=40)
    options = {"engine": engine, "interval": interval, "calibration": "conformal" if interval == "truth" else "auto"}
    plain = fitted(X, y[:, 0], **options)
    other = fitted(7 * X + 2, scale * y[:, 0] + shift * scale, **options)
    p, q = plain.get_prediction(X_new), other.get_prediction(7 * X_new + 2)
    assert_allclose(q.mean, scale * (p.mean + shift), rtol=1e-7)
    assert_allclose(figures(q), scale * figures(p), rtol=1e-6, atol=1e-9 * scale)
    pair = [reg.get_contrast(at[:-1], at[1:]) for reg, at in ((plain, X_new), (other, 7 * X_new + 2))]
    assert_allclose(pair[1].mean, scale * pair[0].mean, rtol=1e-6, atol=1e-9 * scale)
    assert_allclose(figures(pair[1]), scale * figures(pair[0]), rtol=1e-6, atol=1e-8 * scale)


@by_engine
@quick
@given(seed=SEEDS, network=NETWORKS)
def test_every_row_twice_is_half_the_variance_of_the_jackknife(engine, seed, network):
    X, y, X_new = data(seed)
    options = {"engine": engine, "network": network, "interval": InfinitesimalJackknife()}
    once = fitted(X, y[:, 0], **options).get_prediction(X_new)
    twice = fitted(np.tile(X, (2, 1)), np.tile(y[:, 0], 2), **options).get_prediction(X_new)
    assert_allclose(twice.mean, once.mean, rtol=1e-7, atol=1e-9)
    assert_allclose(twice.standard_error, once.standard_error / np.sqrt(2), rtol=1e-6, atol=1e-9)


@quick
@given(seed=SEEDS, network=NETWORKS, interval=st.sampled_from(["truth", "batching", "infinitesimal_jackknife"]))
def test_outputs_of_infinite_networks_are_each_alone(seed, network, interval):
    X, y, X_new = data(seed, n=70, outputs=3)
    y = y * [1.0, 1e3, 1e-2]
    together = fitted(X, y, network=network, interval=interval)
    all_figures, means = figures(together.get_prediction(X_new)), together.predict(X_new)
    for output in range(3):
        alone = fitted(X, y[:, output], network=network, interval=interval)
        assert_allclose(alone.predict(X_new), means[:, output], rtol=1e-8)
        unit = y[:, output].std()
        assert_allclose(figures(alone.get_prediction(X_new)), all_figures[..., output], rtol=1e-7, atol=1e-9 * unit)
        contrast = together.get_contrast(X_new[1:], X_new[:-1])
        expected = alone.get_contrast(X_new[1:], X_new[:-1])
        assert_allclose(contrast.standard_error[:, output], expected.standard_error, rtol=1e-6, atol=1e-9 * unit)


@by_engine
@quick
@given(seed=SEEDS, network=NETWORKS, regularization=LAMBDAS)
def test_variances_are_the_diagonals_of_their_covariances(engine, seed, network, regularization):
    X, y, X_new = data(seed, outputs=2)
    task = Task(torch.tensor(X), torch.tensor(y)[:, None], network, regularization)
    trained = engine.fit(task, Plan(np.ones((1, N), dtype=np.int64), (0,)), n_jobs=1)
    at, other = NewPoints(torch.tensor(X_new)), NewPoints(torch.tensor(X_new[::-1].copy()))
    joint = trained.posterior_covariance(NewPoints(torch.cat([at.inputs, other.inputs])))
    m = len(at)
    variance = joint.diagonal(dim1=1, dim2=2).T
    assert_allclose(trained.posterior_variance(at), variance[:m], rtol=1e-7, atol=1e-10)
    between = variance[:m] + variance[m:] - 2 * joint[:, :m, m:].diagonal(dim1=1, dim2=2).T
    assert_allclose(trained.posterior_variance(at, other), between, rtol=1e-6, atol=1e-9)
    if isinstance(engine, KernelEngine):
        assert_allclose(trained.procedural_variance(at), trained.procedural_covariance(at).diagonal(), rtol=1e-7, atol=1e-10)
    influence = trained.influence(at)
    assert_allclose(influence.sum(0), 0, atol=1e-8 * float(influence.abs().max()))  # weights that all grow change nothing


@by_engine
@quick
@given(seed=SEEDS, network=NETWORKS, regularization=LAMBDAS)
def test_leaving_a_row_out_is_a_fit_to_the_others(engine, seed, network, regularization):
    X, y, _ = data(seed)

    def trained(rows, regularization):
        labels = torch.tensor(np.stack([y[rows], np.zeros_like(y[rows])], axis=1))
        plan = Plan(np.ones((1, len(rows)), dtype=np.int64), (0,))
        return engine.fit(Task(torch.tensor(X[rows]), labels, network, regularization), plan, n_jobs=1)

    rows = [0, seed % N]
    found = trained(np.arange(N), regularization).leave_out(torch.tensor(rows))
    for place, row in enumerate(rows):
        without = trained(np.delete(np.arange(N), row), regularization * N / (N - 1))
        base, auxiliary = without.predict(NewPoints(torch.tensor(X[row : row + 1])))[0, 0, :, 0]
        assert_allclose(found.errors[place, 0], y[row, 0] - (base - auxiliary), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("engine", [*EXACT, NetworkEngine(width=48, dtype="float64")], ids=lambda engine: type(engine).__name__)
def test_points_in_chunks_are_points_at_once(engine, monkeypatch):
    X, y, X_new = data(3, n=61, outputs=2)
    reg = fitted(X, y, engine=engine, interval="half_sampling" if isinstance(engine, NetworkEngine) else "truth")
    whole, contrast = reg.get_prediction(X_new), reg.get_contrast(X_new, X_new[::-1])
    monkeypatch.setattr("unseed._predictors.scaled._NUMBERS_AT_A_TIME", 1)
    pieces = reg.get_prediction(X_new)
    assert_allclose(pieces.mean, whole.mean, rtol=1e-9)
    assert_allclose(figures(pieces), figures(whole), rtol=1e-7, atol=1e-10)
    assert_allclose(figures(reg.get_contrast(X_new, X_new[::-1])), figures(contrast), rtol=1e-6, atol=1e-7)


@quick
@given(seed=SEEDS, network=NETWORKS, interval=st.sampled_from(["truth", "cheap_bootstrap", "infinitesimal_jackknife"]))
def test_a_saved_model_is_the_model(seed, network, interval, tmp_path_factory):
    X, y, X_new = data(seed, outputs=2)
    reg = fitted(X, y, network=network, interval=interval)
    path = tmp_path_factory.mktemp("saved") / "model"
    reg.save(path)
    loaded = PNCRegressor.load(path)
    one, two = reg.get_prediction(X_new), loaded.get_prediction(X_new)
    np.testing.assert_array_equal(two.mean, one.mean)
    np.testing.assert_array_equal(figures(two), figures(one))


@quick
@given(seed=SEEDS, network=NETWORKS)
def test_a_difference_changes_its_sign_with_its_points_and_is_nothing_at_one(seed, network):
    X, y, X_new = data(seed, n=40)
    reg = fitted(X, y[:, 0], network=network, interval="truth")
    there, back, none = (reg.get_contrast(*pair) for pair in ((X_new, X_new[::-1]), (X_new[::-1], X_new), (X_new, X_new)))
    assert_allclose(there.mean, -back.mean, rtol=1e-9, atol=1e-12)
    assert_allclose(there.standard_error, back.standard_error, rtol=1e-6, atol=1e-7)
    assert_allclose(none.mean, 0.0, atol=1e-12)
    assert_allclose(none.standard_error, 0.0, atol=1e-5)  # the root of what rounding leaves of a variance
    noise = reg.get_prediction(X_new).components.noise
    assert_allclose(there.components.noise, noise + noise[::-1], rtol=1e-9)
