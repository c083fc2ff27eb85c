import re

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from unseed import MLP, MonteCarloMean
from unseed._random import Streams
from unseed.errors import InvalidInputError
from unseed.networks import ACTIVATION_NAMES, AveragedDraws, MLPBatch, resolve_activation


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
        ({"input_scale": "auto"}, "input_scale='auto' must be one number per feature"),
        ({"scale_inputs": "no"}, "scale_inputs='no' must be True or False"),
        ({"activation": torch.nn.ReLU}, "neither a name nor a function"),
        ({"activation": np.linalg.inv}, "cannot be applied to a torch tensor"),
        ({"activation": lambda u: 0 * u}, "must be an elementwise, finite torch function"),
        ({"activation": lambda u: torch.softmax(u, 0)}, "must be an elementwise, finite torch function"),
    ],
)
def test_impossible_networks_are_refused_at_birth(options, message):
    with pytest.raises(InvalidInputError, match=re.escape(message)):
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
    (expected,) = torch.autograd.grad(activation.value(u).sum(), u)
    assert_allclose(activation.slope(u.detach()), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", ACTIVATION_NAMES)
def test_normalisation_against_monte_carlo(name):
    activation = resolve_activation(name)
    squares = activation.value(torch.tensor(np.random.default_rng(0).standard_normal(200_000))) ** 2
    assert abs(float(squares.mean()) * activation.normalisation - 1) < 5 * float(squares.std() / squares.mean()) / 200_000**0.5


def test_untrained_output_has_the_documented_formula():
    network = MLP(depth=2, activation="tanh", weight_std=1.5, bias_scale=0.3, scale_inputs=True, input_scale=[1.0, 2.0])
    X = np.random.default_rng(0).normal(size=(5, 2))
    batch = MLPBatch(network, n_features=2, n_outputs=3, width=7)
    parameters = batch.draw(np.random.default_rng(1))[None]
    (W1, b1), (W2, b2), (W3, b3) = [(w[0].numpy(), b[0, 0].numpy()) for w, b in batch.layers(parameters)]
    c = resolve_activation("tanh").normalisation
    f = 1.5 / np.sqrt(2) * (X * [1.0, 2.0]) @ W1.T + 0.3 * b1
    for W, b in ((W2, b2), (W3, b3)):
        f = 1.5 * np.sqrt(c / 7) * np.tanh(f) @ W.T + 0.3 * b
    assert_allclose(batch.outputs(parameters, torch.tensor(X)[None])[0], f, rtol=1e-13)


def test_starts():
    normal = MLPBatch(MLP(bias_scale=1.0), 2, 1, 5).draw(np.random.default_rng(0))
    zero_batch = MLPBatch(MLP(bias_scale=1.0, bias_init="zero"), 2, 1, 5)
    zero = zero_batch.draw(np.random.default_rng(0))
    assert normal.shape == zero.shape == (zero_batch.n_parameters,)
    assert all((bias == 0).all() for _, bias in zero_batch.layers(zero[None]))
    without = MLPBatch(MLP(), 2, 1, 5)
    assert without.n_parameters == 2 * 5 + 5
    assert all(bias is None for _, bias in without.layers(without.draw(np.random.default_rng(0))[None]))


def test_monte_carlo_mean_shrinks_like_one_over_draws_and_is_a_function():
    X = np.random.default_rng(0).normal(size=(6, 2))
    batch, rows = MLPBatch(MLP(bias_scale=1.0), 2, 1, 64), torch.tensor(X)
    mean = AveragedDraws(batch, 50, Streams(0))
    assert_allclose(mean(X, rows)[:3], mean(X[:3], rows[:3]), rtol=1e-13)
    many = np.stack([AveragedDraws(batch, 20, Streams(s))(X, rows)[:, 0] for s in range(300)])
    starts = torch.stack([batch.draw(np.random.default_rng(s)) for s in range(4000)])
    untrained = batch.outputs(starts, rows.expand(4000, -1, -1))[:, :, 0]
    ratio = many.var(axis=0).mean() * 20 / untrained.var(0).mean()
    assert abs(float(ratio) - 1) < 0.25  # 300 draws of a variance at six correlated points: sd about 0.07


@pytest.mark.parametrize("draws", [1, 3, 8, 11])
def test_one_draw_more_is_one_network_more(draws):
    X = np.random.default_rng(0).normal(size=(6, 2))
    batch, rows = MLPBatch(MLP(bias_scale=1.0), 2, 1, 16), torch.tensor(X)
    fewer, more = (n * AveragedDraws(batch, n, Streams(0))(X, rows) for n in (draws, draws + 1))
    last = batch.draw(Streams(0).generator("initial mean", draws))
    assert_allclose(more - fewer, batch.outputs(last[None], rows[None])[0], rtol=1e-10, atol=1e-12)


def test_impossible_numbers_of_draws_are_refused():
    with pytest.raises(InvalidInputError, match="draws=0 must be a whole number"):
        MonteCarloMean(draws=0)
