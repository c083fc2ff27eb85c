import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from unseed import MLP, MonteCarloMean
from unseed.errors import InvalidInputError
from unseed.networks import ACTIVATION_NAMES, draw_parameters, forward, resolve_activation, resolve_initial_mean
from unseed.random import Streams

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"depth": 0}, "depth=0 must be a whole number of at least 1"),
        ({"depth": 1.5}, "depth=1.5"),
        ({"width": 0}, "width=0"),
        ({"activation": "swish"}, "activation='swish' is not known; use one of relu, erf, tanh"),
        ({"activation": 3}, "activation=3 is neither a name nor a function"),
        ({"weight_std": 0.0}, "weight_std=0.0 must be a finite number > 0"),
        ({"weight_std": "1"}, "weight_std='1'"),
        ({"bias_scale": -1.0}, "bias_scale=-1.0 must be a finite number >= 0"),
        ({"bias_init": "uniform"}, "bias_init='uniform' is not known; use 'normal' or 'zero'"),
        ({"input_scale": [1.0, np.nan]}, "input_scale=nan"),
    ],
)
def test_impossible_networks_are_refused_at_birth(options, message):
    with pytest.raises(InvalidInputError, match=message.replace("(", r"\(")):
        MLP(**options)


def test_relevance_becomes_a_hashable_tuple_and_must_fit_the_features():
    network = MLP(input_scale=np.array([1.0, 2.0]))
    assert network.input_scale == (1.0, 2.0)
    assert hash(network) == hash(MLP(input_scale=[1, 2]))
    with pytest.raises(InvalidInputError, match="input_scale has 2 entries for 3 features"):
        network.first_layer_factors(3)


@pytest.mark.parametrize("name", ACTIVATION_NAMES)
def test_derivatives_are_derivatives(name):
    activation = resolve_activation(name)
    u = torch.linspace(-6, 6, 101, dtype=torch.float64)  # misses 0, ReLU's kink... by no symmetric node
    u = u[u.abs() > 1e-3].requires_grad_()
    (expected,) = torch.autograd.grad(activation.function(u).sum(), u)
    assert_allclose(activation.derivative(u.detach()), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", ACTIVATION_NAMES)
def test_normalisation_against_monte_carlo(name):
    activation = resolve_activation(name)
    squares = activation.function(torch.tensor(np.random.default_rng(0).standard_normal(200_000))) ** 2
    assert (
        abs(float(squares.mean()) * activation.normalisation - 1)
        < 5 * float(squares.std() / squares.mean()) / 200_000**0.5
    )


def test_untrained_output_has_the_documented_formula():
    network = MLP(depth=2, activation="tanh", weight_std=1.5, bias_scale=0.3, scale_inputs=True, input_scale=[1.0, 2.0])
    X = np.random.default_rng(0).normal(size=(5, 2))
    parameters = draw_parameters(network, 2, 3, 7, np.random.default_rng(1), CPU)
    (W1, b1), (W2, b2), (W3, b3) = [(w.numpy(), b.numpy()) for w, b in parameters]
    c = resolve_activation("tanh").normalisation
    f = 1.5 / np.sqrt(2) * (X * [1.0, 2.0]) @ W1.T + 0.3 * b1
    for W, b in ((W2, b2), (W3, b3)):
        f = 1.5 * np.sqrt(c / 7) * np.tanh(f) @ W.T + 0.3 * b
    assert_allclose(forward(network, parameters, torch.tensor(X)), f, rtol=1e-13)


def test_zero_start_biases_are_zero():
    parameters = draw_parameters(MLP(bias_scale=1.0, bias_init="zero"), 2, 1, 5, np.random.default_rng(0), CPU)
    assert all((bias == 0).all() for _, bias in parameters)


def test_monte_carlo_mean_shrinks_like_one_over_draws_and_is_a_function():
    X = torch.tensor(np.random.default_rng(0).normal(size=(6, 2)))
    network = MLP(bias_scale=1.0, width=64)
    mean = resolve_initial_mean(MonteCarloMean(draws=50), network, Streams(0))
    assert_allclose(mean(X, 2)[:3], mean(X[:3], 2), rtol=1e-13)
    many = np.stack(
        [resolve_initial_mean(MonteCarloMean(draws=20), network, Streams(s))(X, 1)[:, 0] for s in range(300)]
    )
    untrained = [
        forward(network, draw_parameters(network, 2, 1, 64, np.random.default_rng(s), CPU), X)[:, 0]
        for s in range(4000)
    ]
    ratio = many.var(axis=0).mean() * 20 / torch.stack(untrained).var(0).mean()
    assert abs(float(ratio) - 1) < 0.25  # 300 draws of a variance at six correlated points: sd about 0.07


def test_unknown_initial_means_are_refused():
    with pytest.raises(InvalidInputError, match="initial_mean='one'"):
        resolve_initial_mean("one", MLP(), Streams(0))
    with pytest.raises(InvalidInputError, match=r"MonteCarloMean\(draws=0\)"):
        MonteCarloMean(draws=0)
