"""Batches of finite networks: every first-order product against an explicit Jacobian, for MLPs and for torch modules."""

import pickle

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from unseed import MLP
from unseed._state import Record
from unseed.errors import InvalidInputError, ModelFileError
from unseed.networks import MLPBatch, ModuleBatch, make_batch, restore_batch
from unseed.networks import _module as module_file

torch.manual_seed(0)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.block, self.last = (
            nn.Linear(3, 6),
            nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 6), nn.GELU()),
            nn.Linear(6, 2),
        )

    def forward(self, x):
        h = self.first(x)
        return self.last(h + self.block(h))


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(3 * 4 * 4, 2))

    def forward(self, x):
        return self.body(x)


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(3, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.last = nn.Linear(8, 2)

    def forward(self, x):
        return self.last(self.layer(self.embed(x)).mean(1))


def normed():
    return nn.Sequential(nn.Linear(3, 5), nn.LayerNorm(5), nn.Tanh(), nn.Linear(5, 2))


MODULES = {
    "layer norm": (normed, (3,)),
    "residual": (Residual, (3,)),
    "cnn": (Convolutional, (1, 6, 6)),
    "transformer": (Transformer, (4, 3)),
}


def mlp_case(network, n_outputs):
    return MLPBatch(network, 3, n_outputs, 16), torch.randn(2, 5, 3, dtype=torch.float64)


def module_case(name):
    factory, shape = MODULES[name]
    X = torch.randn(2, 5, *shape, dtype=torch.float64)
    return ModuleBatch.of(factory, X[0, :2], 2), X


CASES = {
    "relu": lambda: mlp_case(MLP(), 1),
    "tanh, deep, biases": lambda: mlp_case(
        MLP(depth=2, activation="tanh", bias_scale=0.5, weight_std=1.2, scale_inputs=True), 1
    ),
    "relu, deep, two outputs": lambda: mlp_case(MLP(depth=3, bias_scale=1.0), 2),
    **{name: lambda name=name: module_case(name) for name in MODULES},
}


@pytest.fixture(params=CASES, ids=str)
def case(request):
    batch, X = CASES[request.param]()
    parameters = torch.stack([batch.draw(np.random.default_rng(seed)) for seed in range(2)])
    call = (
        (lambda p, x: batch._call(p, x))
        if isinstance(batch, ModuleBatch)
        else (lambda p, x: batch.outputs(p[None], x[None])[0])
    )
    J = torch.stack(
        [torch.autograd.functional.jacobian(lambda p, i=i: call(p, X[i]), parameters[i]) for i in range(2)]
    )  # (B, n, k, p)
    return batch, parameters, X, J


def test_products_with_the_jacobian(case):
    batch, parameters, X, J = case
    evaluation = batch.evaluate(parameters, X)
    assert_allclose(evaluation.outputs, batch.outputs(parameters, X), rtol=1e-12)
    weights, directions = torch.randn(J.shape[:3], dtype=torch.float64), torch.randn_like(parameters)
    assert_allclose(evaluation.pull(weights), torch.einsum("bnkp,bnk->bp", J, weights), rtol=0, atol=1e-12)
    assert_allclose(evaluation.push(directions).detach(), torch.einsum("bnkp,bp->bnk", J, directions), rtol=0, atol=1e-12)


def test_jacobians(case):
    batch, parameters, X, J = case
    assert_allclose(batch.jacobian(parameters[1], X[1]), J[1].flatten(0, 1), rtol=0, atol=1e-12)


def test_tangent_kernels(case):
    batch, parameters, X, J = case
    n, k = J.shape[1:3]
    full = torch.einsum("bnip,bmjp->bnimj", J, J)
    expected = full.reshape(2, n * k, n * k)
    assert_allclose(batch.evaluate(parameters, X).tangent_kernel(), expected, rtol=0, atol=1e-11)
    cross = batch.cross_kernel(parameters, X[:, :2], X[:, 2:])
    assert_allclose(cross, full[:, :2, :, 2:].reshape(2, 2 * k, 3 * k), rtol=0, atol=1e-11)


def test_a_jacobian_that_does_not_fit_is_taken_in_pieces(monkeypatch):
    batch, X = module_case("residual")
    parameters = batch.draw(np.random.default_rng(0))[None]
    whole = batch.cross_kernel(parameters, X[:1], X[1:])
    monkeypatch.setattr(module_file, "_NUMBERS_AT_A_TIME", 2 * 2 * 2 * parameters.shape[1])
    assert_allclose(batch.cross_kernel(parameters, X[:1], X[1:]), whole, rtol=1e-12)


def test_blur_smooths_only_relu_and_vanishes_with_its_width():
    batch, X = mlp_case(MLP(bias_scale=1.0), 1)
    parameters = torch.stack([batch.draw(np.random.default_rng(seed)) for seed in range(2)])
    sharp = batch.evaluate(parameters, X)
    near = batch.evaluate(parameters, X, torch.full((2, 1), 1e-9, dtype=torch.float64))
    assert_allclose(near.tangent_kernel(), sharp.tangent_kernel(), rtol=1e-12)
    wide = batch.evaluate(parameters, X, torch.full((2, 1), 1.0, dtype=torch.float64))
    assert float((wide.tangent_kernel() - sharp.tangent_kernel()).abs().max()) > 0.01
    moved = batch.evaluate(parameters + 0.01, X)
    assert (moved.blur_since(sharp) > 0).all()
    smooth, Z = mlp_case(MLP(activation="tanh"), 1)
    theta = smooth.draw(np.random.default_rng(0)).expand(2, -1)
    assert smooth.evaluate(theta, Z).blur_since(smooth.evaluate(theta, Z)) is None


def test_module_starts_are_the_modules_own_and_leave_the_global_state_alone():
    batch, _ = module_case("residual")
    before = torch.random.get_rng_state()
    first, again, other = (batch.draw(np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(before, torch.random.get_rng_state())
    assert abs(float(first[:18].abs().max()) - 1 / 3**0.5) < 0.1  # nn.Linear(3, ·) draws uniformly up to 1/√3


def test_modules_that_cannot_be_used_are_refused_before_the_work():
    X = torch.zeros(2, 3, dtype=torch.float64)
    with pytest.raises(InvalidInputError, match="BatchNorm1d, which makes a row's prediction depend on the other rows"):
        ModuleBatch.of(lambda: nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)), X, 1)
    with pytest.raises(InvalidInputError, match=r"output has shape \(2, 5\) for 2 rows and 1 columns of y"):
        ModuleBatch.of(lambda: nn.Linear(3, 5), X, 1)
    with pytest.raises(InvalidInputError, match=r"must return a torch\.nn\.Module and returned int"):
        ModuleBatch.of(lambda: 3, X, 1)
    with pytest.warns(UserWarning, match="dropout in '1' is switched off"):
        batch = ModuleBatch.of(lambda: nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1)), X, 1)
    theta = batch.draw(np.random.default_rng(0))[None]
    assert torch.equal(batch.outputs(theta, X[None]), batch.outputs(theta, X[None]))


def test_a_flat_output_is_one_column():
    class Flat(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 1)

        def forward(self, x):
            return self.linear(x)[:, 0]

    batch = ModuleBatch.of(Flat, torch.zeros(2, 3, dtype=torch.float64), 1)
    assert batch.outputs(batch.draw(np.random.default_rng(0))[None], torch.zeros(1, 4, 3, dtype=torch.float64)).shape == (
        1,
        4,
        1,
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_constants_have_the_type_of_the_parameters(dtype):
    def shifted():
        module = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        module.register_buffer("unused", torch.ones(2))
        for parameter in module[2].parameters():
            nn.init.constant_(parameter, 0.5).requires_grad_(False)
        return module

    batch, X = ModuleBatch.of(shifted, torch.zeros(2, 3, dtype=torch.float64), 1), torch.zeros(1, 2, 3, dtype=dtype)
    theta = batch.draw(np.random.default_rng(0))[None].to(dtype)
    assert theta.shape[1] == batch.n_parameters == 16
    for values in (batch.outputs(theta, X), batch.evaluate(theta, X).tangent_kernel(), batch.jacobian(theta[0], X[0])):
        assert values.dtype == dtype


def test_module_batches_pickle():
    batch = ModuleBatch.of(normed, torch.zeros(2, 3, dtype=torch.float64), 2)
    theta, X = batch.draw(np.random.default_rng(0))[None], torch.randn(1, 4, 3, dtype=torch.float64)
    assert torch.equal(pickle.loads(pickle.dumps(batch)).outputs(theta, X), batch.outputs(theta, X))


def test_batches_answer_for_themselves():
    X = torch.randn(7, 3, dtype=torch.float64)
    ours = make_batch(MLP(depth=2, bias_scale=1.0), X, n_outputs=2)
    assert (ours.width, ours.numbers_per_row, ours.activations_per_row) == (32 * 7, 32 * 7, 2 * 32 * 7)
    assert ours.is_explicit
    assert ours.n_parameters == len(ours.draw(np.random.default_rng(0)))
    assert make_batch(MLP(width=5), X, 1).width == 5
    assert make_batch(MLP(width=5), X, 1, width=6).width == 6 == make_batch(MLP(width=5), X, 1).resized(6).width

    theirs = make_batch(normed, X, n_outputs=2)
    assert (theirs.width, theirs.activations_per_row, theirs.is_explicit) == (None, 0, False)
    assert theirs.n_parameters == theirs.numbers_per_row == len(theirs.draw(np.random.default_rng(0)))
    with pytest.raises(InvalidInputError, match="width=6 belongs to an MLP"):
        make_batch(normed, X, n_outputs=2, width=6)


@pytest.mark.parametrize("network", [MLP(width=9), normed])
def test_a_batch_is_restored_from_its_state(network):
    X = torch.randn(7, 3, dtype=torch.float64)
    batch = make_batch(network, X, n_outputs=2)
    record = Record("model", {"width": batch.width}, {})
    again = restore_batch(record, network, X[:2], 2, batch.n_parameters)
    assert (again.n_parameters, again.width) == (batch.n_parameters, batch.width)
    with pytest.raises(ModelFileError, match="parameters"):
        restore_batch(record, network, X[:2], 2, batch.n_parameters + 1)
