"""Population kernels against two-dimensional quadrature and against finite networks."""

import re
import warnings
from itertools import combinations_with_replacement

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from oracles.kernels import gaussian_moment, pair_kernels
from unseed import MLP, PNCRegressor
from unseed._expectations import HermiteExpansion
from unseed._expectations import _closed_forms as closed_forms
from unseed.costs import Job, Rates
from unseed.errors import AccuracyWarning, InvalidInputError
from unseed.kernels import PopulationKernel, nngp, ntk
from unseed.networks import MLPBatch

BIASES = {
    "no bias": {},
    "normal bias": {"bias_scale": 0.7},
    "zero-start bias": {"bias_scale": 0.7, "bias_init": "zero"},
}
ACTIVATIONS = ["relu", "erf", "tanh", "gelu", "softplus", "silu", "sin"]
POINTS = np.random.default_rng(0).normal(size=(5, 3))


def assert_matches_oracle(network, X, rtol=1e-12):
    expected = np.empty((len(X), len(X), 2))
    for i, j in combinations_with_replacement(range(len(X)), 2):
        expected[i, j] = expected[j, i] = pair_kernels(network, X[i], X[j])
    scale = np.sqrt(np.einsum("ii...->i...", expected)[:, None] * np.einsum("ii...->i...", expected)[None])
    for kernel, values, unit in ((nngp, expected[..., 0], scale[..., 0]), (ntk, expected[..., 1], scale[..., 1])):
        assert np.abs(kernel(X, network=network) - values).max() <= rtol * unit.max()
        assert np.abs(kernel(X, X.copy(), network=network) - values).max() <= rtol * unit.max()


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("bias", BIASES, ids=str)
@pytest.mark.parametrize("activation", ["relu", "erf", "sin", "tanh", "gelu", "softplus"])
def test_kernels_match_two_dimensional_quadrature(activation, bias, depth):
    assert_matches_oracle(MLP(depth=depth, activation=activation, **BIASES[bias]), POINTS[:3])


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_scaled_inputs_relevance_and_weight_variance(activation):
    network = MLP(
        depth=2, activation=activation, weight_std=1.3, bias_scale=0.4, scale_inputs=True, input_scale=[2.0, 0.5, 0.0]
    )
    assert_matches_oracle(network, POINTS[:3])


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("bias", BIASES, ids=str)
@pytest.mark.parametrize("depth", [1, 3])
def test_special_points(activation, bias, depth):
    x = POINTS[0]
    X = np.stack([x, x, -x, 2 * x, np.zeros(3), x + 1e-7 * POINTS[1], POINTS[2]])
    network = MLP(depth=depth, activation=activation, **BIASES[bias])
    for kernel in (ntk, nngp):
        K = kernel(X, network=network)
        assert np.isfinite(K).all()
        assert_array_equal(K, K.T)
        assert (np.diag(K) >= 0).all()
        assert_allclose(K[0, 1], K[0, 0], rtol=1e-12)
        assert np.linalg.eigvalsh(K).min() >= -1e-12 * K.max()
    assert_matches_oracle(network, X)


@pytest.mark.parametrize("gap", [1e-3, 1e-5, 1e-7, 1e-9, 1e-12])
def test_relu_angle_of_nearly_parallel_points_keeps_all_digits(gap):
    # One hidden layer: ntk = x·z (κ₀ + κ₁-like terms); the angle between (1, 0) and (cos t, sin t) is t itself.
    X, Z = np.array([[1.0, 0.0]]), np.array([[np.cos(gap), np.sin(gap)]])
    expected = np.cos(gap) * (np.pi - gap) / np.pi + (np.sin(gap) + (np.pi - gap) * np.cos(gap)) / np.pi
    assert_allclose(ntk(X, Z, network=MLP()), [[expected]], rtol=1e-15)
    mirrored = -np.cos(gap) * gap / np.pi + (np.sin(gap) - gap * np.cos(gap)) / np.pi
    assert_allclose(ntk(X, -Z, network=MLP()), [[mirrored]], rtol=1e-9, atol=1e-16)


@pytest.mark.parametrize("gap", [1e-4, 1e-6, 1e-8])
@pytest.mark.parametrize("bias", BIASES, ids=str)
def test_relu_angle_keeps_its_digits_through_layers(bias, gap):
    x = np.array([1.0, 2.0, 0.5])
    X = np.stack([x, 3 * x + gap * np.array([-2.0, 1.0, 0.0]), -x + gap * np.array([0.0, 1.0, 0.0])])
    assert_matches_oracle(MLP(depth=4, **BIASES[bias]), X, rtol=1e-14)


@pytest.mark.parametrize("activation", ["relu", "erf", "tanh"])
@pytest.mark.parametrize("bias", BIASES, ids=str)
@pytest.mark.parametrize("depth", [1, 2])
def test_finite_networks_average_to_the_kernels(activation, bias, depth):
    network, width, draws, together = MLP(depth=depth, activation=activation, **BIASES[bias]), 256, 300, 20
    batch, X = MLPBatch(network, 3, 1, width), torch.tensor(POINTS)
    tangent, outputs = [], []
    for first in range(0, draws, together):
        theta = torch.stack([batch.draw(np.random.default_rng(draw)) for draw in range(first, first + together)])
        found = batch.evaluate(theta, X.expand(together, -1, -1))
        tangent.append(found.tangent_kernel())
        outputs.append(found.outputs[:, :, 0])
    J = torch.autograd.functional.jacobian(lambda p: batch.outputs(p, X[None])[0, :, 0], theta[-1:])[:, 0]
    assert_allclose(tangent[-1][-1], J @ J.T, rtol=1e-10)
    start = torch.cat(outputs)
    for samples, expected in (
        (torch.cat(tangent), ntk(POINTS, network=network)),
        (start[:, :, None] * start[:, None, :], nngp(POINTS, network=network)),
    ):
        error = samples.mean(0).numpy() - expected
        standard_error = samples.std(0).numpy() / np.sqrt(draws)
        # 15 distinct entries, 4 standard errors; beyond one hidden layer a finite width biases by O(1/width)
        allowance = 0.0 if depth == 1 else 4 * np.abs(expected).max() / width
        assert (np.abs(error) <= 4 * standard_error + allowance).all()


def test_zero_vector_agrees_with_finite_relu_networks_with_zero_start_biases():
    network = MLP(bias_scale=0.7, bias_init="zero")
    # hidden slopes are σ'(0) = 0 in torch, so only the output bias moves the prediction
    assert_allclose(ntk(np.zeros((1, 3)), network=network), [[0.49]], rtol=1e-15)


@pytest.mark.parametrize("activation", ["tanh", "gelu", "softplus", "silu", "sin"])
@pytest.mark.parametrize("variance", [1e-8, 0.3, 4.0, 30.0])
def test_quadrature_accuracy_over_variances(activation, variance):
    x = np.sqrt(variance) * np.array([1.0, 0.0])
    X = np.stack([x, np.sqrt(variance) * np.array([0.999, np.sqrt(1 - 0.999**2)]), 0.3 * x[::-1]])
    assert_matches_oracle(MLP(activation=activation), X)


def test_different_numbers_of_terms_meet_in_one_block():
    # tiny variances need few Hermite terms, large ones many: the cross kernel must not be cut to the shorter series
    network = MLP(activation="tanh")
    X = np.array([[0.1, 0.0], [3.0, 1.0]])
    both = ntk(X, network=network)
    assert_allclose(ntk(X[:1], X[1:], network=network), both[:1, 1:], rtol=1e-13)
    assert_allclose(ntk(X[1:], X[:1], network=network), both[1:, :1], rtol=1e-13)


def test_user_functions_and_their_own_names():
    def hyperbolic(u):
        return (torch.exp(u) - torch.exp(-u)) / (torch.exp(u) + torch.exp(-u))

    expected = ntk(POINTS, network=MLP(activation="tanh"))
    assert_allclose(ntk(POINTS, network=MLP(activation=hyperbolic)), expected, rtol=1e-12)

    def relu(u):  # named like a closed form, but another function
        return torch.sin(u)

    assert_allclose(ntk(POINTS, network=MLP(activation=relu)), ntk(POINTS, network=MLP(activation="sin")), rtol=1e-12)


@pytest.mark.parametrize("function", [torch.relu, torch.nn.functional.relu])
def test_torch_functions_with_a_closed_form_get_it(function):
    assert_array_equal(ntk(POINTS, network=MLP(activation=function)), ntk(POINTS, network=MLP(activation="relu")))


@pytest.mark.parametrize("function", [torch.nn.functional.leaky_relu, torch.nn.functional.elu, torch.abs])
def test_kinks_are_noticed_and_the_error_is_stated(function):
    with pytest.warns(AccuracyWarning, match=r"kernel is accurate to \de-0\d only"):
        ntk(POINTS, network=MLP(activation=function))


@pytest.mark.parametrize(("activation", "scale"), [("tanh", 100.0), ("gelu", 200.0), ("softplus", 300.0)])
def test_variances_beyond_the_grid_are_noticed(activation, scale):
    with pytest.warns(AccuracyWarning, match="scale_inputs=True"):
        ntk([[scale]], network=MLP(activation=activation))


@pytest.mark.parametrize(("scale", "gap"), [(7.0, 1e-4), (10.0, 1e-4), (14.0, 1e-6)])
def test_stated_accuracy_is_not_below_the_error(scale, gap):
    X = scale * np.array([[1.0, 0.0], [1 - gap, np.sqrt(1 - (1 - gap) ** 2)]])
    network = MLP(activation="tanh")
    exact = pair_kernels(network, X[0], X[1])[1]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        error = abs(ntk(X, network=network)[0, 1] - exact) / exact
    stated = max([float(re.search(r"accurate to (\S+) only", str(w.message))[1]) for w in caught], default=1e-12)
    assert error <= 3 * stated


def test_unresolved_kernel_says_how_accurate_it_is():
    X = 14 * np.array([[1.0, 0.0], [1.0, 1e-6]])
    with pytest.warns(AccuracyWarning, match=r"nearly parallel points is accurate to .* scale_inputs=True"):
        ntk(X, network=MLP(activation="tanh"))


def softsign(u):
    return u / (1 + u.abs())


def test_advice_names_what_is_not_set_already():
    far = np.array([[1000.0]])
    with pytest.warns(AccuracyWarning, match="only; a smaller weight_std or bias_scale helps"):
        ntk(far, network=MLP(activation="tanh", scale_inputs=True))
    with pytest.warns(AccuracyWarning, match="the softsign kernel is accurate to .* only; an activation without kinks"):
        ntk(POINTS, network=MLP(activation=softsign))


def test_one_fit_tells_once_how_accurate_the_kernel_is():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    reg = PNCRegressor(network=MLP(activation=softsign, depth=2), regularization=0.1, random_state=0)
    for ask in (lambda: reg.fit(X, X[:, 0]), lambda: reg.predict_interval(X[:5]), lambda: Rates.for_job(Job.of(reg, 40, 2))):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ask()
        assert [w.category for w in caught] == [AccuracyWarning]


def test_a_kinked_function_has_few_terms_and_an_error_below_the_one_stated():
    expansion = HermiteExpansion("softsign", softsign, lambda u: (1 + u.abs()) ** -2, 1.0)
    assert expansion.most_terms == 512
    leaky = torch.nn.functional.leaky_relu  # whose derivative jumps: what many terms leave out is more than the integrals miss
    assert HermiteExpansion("leaky", leaky, lambda u: torch.where(u > 0, 1.0, 0.01).double(), 1.0).most_terms == 4096
    assert HermiteExpansion("tanh", torch.tanh, lambda u: 1 - torch.tanh(u).square(), 1.0).most_terms == 4096
    nodes, weights = np.polynomial.legendre.leggauss(200)
    u = np.concatenate([4.5 * (nodes - 1), 4.5 * (nodes + 1)])  # both sides of the kink, to nine standard deviations
    weight, slope, value = 4.5 * np.concatenate([weights, weights]), (1 + np.abs(u)) ** -2, u / (1 + np.abs(u))
    norm = weight @ (value**2 * stats.norm.pdf(u))
    for angle in (0.3, 1.5):
        rho = np.cos(angle)
        law = stats.multivariate_normal([0, 0], [[1, rho], [rho, 1]]).pdf(np.stack(np.meshgrid(u, u, indexing="ij"), axis=-1))
        joint = weight[:, None] * law * weight
        exact = (value @ joint @ value + rho * slope @ joint @ slope) / norm
        with pytest.warns(AccuracyWarning) as caught:
            found = ntk([[1.0, 0.0], [rho, np.sin(angle)]], network=MLP(activation=softsign))[0, 1]
        stated = max(float(re.search(r"accurate to (\S+) only", str(w.message))[1]) for w in caught)
        assert 1e-15 < abs(found / exact - 1) <= 3 * stated < 0.01


def test_overflow_is_refused_not_returned():
    with pytest.raises(InvalidInputError, match="too large for float64 kernels"):
        ntk([[1e200, 1.0], [1.0, 1.0]], network=MLP())


@pytest.mark.parametrize("activation", ["relu", "erf"])
def test_closed_forms_hold_at_every_scale(activation):
    x = np.array([[0.3, -1.0, 0.7]])
    for scale in (1e-8, 1.0, 1e4, 1e8):
        network = MLP(activation=activation)
        assert_allclose(ntk(scale * x, network=network), ntk(scale * x, scale * x.copy(), network=network), rtol=1e-14)
        assert_allclose(nngp(scale * x, network=network), nngp(scale * x, scale * x.copy(), network=network), rtol=1e-14)


def test_blocks_and_tails_agree_with_one_block():
    X = np.random.default_rng(3).normal(size=(600, 4))
    network = MLP(bias_scale=1.0)
    K = ntk(X, network=network)
    assert_array_equal(K, K.T)
    assert_allclose(K[250:270, 500:], ntk(X[250:270], X[500:], network=network), rtol=1e-14)


@pytest.mark.parametrize("X", [np.zeros(3), [[np.nan, 1.0]], [[np.inf, 1.0]]])
def test_bad_points_are_refused(X):
    with pytest.raises(InvalidInputError, match="X "):
        ntk(X, network=MLP())


def test_mismatched_columns_are_refused():
    with pytest.raises(InvalidInputError, match="X has 3 columns and Z has 2"):
        ntk(POINTS, POINTS[:, :2], network=MLP())


def test_empty_sets_of_points():
    for activation in ("relu", "tanh"):
        assert ntk(np.zeros((0, 3)), POINTS, network=MLP(activation=activation)).shape == (0, 5)
        assert ntk(np.zeros((0, 3)), network=MLP(activation=activation)).shape == (0, 0)


def test_oracle_itself_knows_the_arc_cosine():
    assert_allclose(float(gaussian_moment("relu", 1.0, 1.0, 0.0, derivative=False)), 1 / (2 * np.pi), rtol=1e-14)
    assert_allclose(gaussian_moment("tanh", 1.0, 1.0, 1.0, derivative=False), 0.394294, rtol=1e-5)


@pytest.mark.parametrize("sizes", [(3, 5), (257, 300), (600, 513)])
def test_products_without_the_matrix_are_those_with_it(sizes):
    rng = np.random.default_rng(0)
    left, right = (torch.tensor(rng.normal(size=(n, 3))) for n in sizes)
    columns = torch.tensor(rng.normal(size=(sizes[1], 2)))
    kernel = PopulationKernel(MLP(bias_scale=1.0))
    here, there = kernel.profile(left), kernel.profile(right)
    assert_allclose(kernel.ntk_product(here, there, columns), kernel.ntk_cross(here, there) @ columns, rtol=1e-11, atol=1e-11)
    assert_allclose(kernel.nngp_product(here, there, columns), kernel.nngp_cross(here, there) @ columns, rtol=1e-11, atol=1e-11)
    assert_allclose(kernel.ntk_gram_product(there, columns), kernel.ntk_gram(there) @ columns, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    "options", [{"bias_scale": 0.7}, {"bias_scale": 0.0}, {"bias_scale": 0.7, "bias_init": "zero"}], ids=str
)
@pytest.mark.parametrize("close", [0, 1e-9, 0.02])
@pytest.mark.parametrize("is_script", [True, False])
def test_the_short_cut_of_one_hidden_layer(options, close, is_script, monkeypatch):
    """Of points that are far from each other in some tiles, and close, the same or opposite in others."""
    monkeypatch.setattr(closed_forms, "MKL_IS_FAST", True)  # also where it is not the faster way
    if not is_script:
        monkeypatch.setattr(closed_forms, "_without_python", lambda: closed_forms.pairs_times)
    rng = np.random.default_rng(0)
    right = rng.normal(size=(1500, 6))
    near = np.concatenate([right[:4], -right[4:6]])
    left = np.concatenate([rng.normal(size=(300, 6)), near + close * rng.normal(size=near.shape), np.zeros((1, 6))])
    columns = torch.tensor(rng.normal(size=(1500, 3)))
    kernel = PopulationKernel(MLP(weight_std=1.3, **options))
    here, there = (kernel.profile(torch.tensor(rows)) for rows in (left, right))
    expected = kernel.ntk_cross(here, there) @ columns
    assert_allclose(kernel.ntk_product(here, there, columns), expected, rtol=1e-12, atol=1e-12 * float(expected.abs().max()))


def test_the_short_cut_does_without_a_compiler_of_scripts(monkeypatch):
    def is_gone(function):
        raise NotImplementedError

    monkeypatch.setattr(torch.jit, "script", is_gone)
    closed_forms._without_python.cache_clear()
    assert closed_forms._without_python() is closed_forms.pairs_times
    closed_forms._without_python.cache_clear()


def test_the_short_cut_is_for_one_hidden_relu_layer(monkeypatch):
    points, columns, taken = torch.eye(4, dtype=torch.float64), torch.ones(4, 1, dtype=torch.float64), []
    monkeypatch.setattr(closed_forms, "MKL_IS_FAST", True)
    monkeypatch.setattr(closed_forms, "_without_python", lambda: lambda *arguments: taken.append(arguments) or columns)

    def is_taken(network):
        taken.clear()
        kernel = PopulationKernel(network)
        kernel.ntk_product(kernel.profile(points), kernel.profile(points), columns)
        return bool(taken)

    assert is_taken(MLP(bias_scale=1.0))
    for other in (MLP(bias_scale=1.0, depth=2), MLP(activation="erf"), MLP(bias_scale=1.0, bias_init="zero")):
        assert not is_taken(other)


def test_threads_change_nothing():
    rng = np.random.default_rng(0)
    points = torch.tensor(rng.normal(size=(4001, 3)))
    kernel = PopulationKernel(MLP(bias_scale=1.0))
    at, some = kernel.profile(points), kernel.profile(points[:700])
    threads = torch.get_num_threads()
    found = []
    for n_threads in (1, 2, 3):
        torch.set_num_threads(n_threads)
        results = [kernel.ntk_gram(some)]
        for columns in (points[:, :1], torch.tensor(np.random.default_rng(1).normal(size=(4001, 7)))):
            results += [kernel.ntk_gram_product(at, columns), kernel.ntk_product(some, at, columns)]
            results += [kernel.nngp_product(some, at, columns), kernel.ntk_product(at, some, columns[:700])]
        found.append(results)
        assert torch.get_num_threads() == n_threads
    torch.set_num_threads(threads)
    for one, *others in zip(*found, strict=True):
        assert all(torch.equal(one, other) for other in others)


@pytest.mark.parametrize("path", ["numpy", "mkl", "neither"])
def test_both_ways_to_an_arctangent_agree(path, monkeypatch):
    monkeypatch.setattr("unseed._expectations._pairs._NUMPY_IS_VECTORISED", path == "numpy")
    monkeypatch.setattr("unseed._expectations._pairs.MKL_IS_FAST", path == "mkl")
    monkeypatch.setattr("unseed._expectations._pairs.HAS_FAST_ARCS", path != "neither")
    assert_matches_oracle(MLP(depth=2, bias_scale=1.0), POINTS[:3])
