import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from oracles.regression import leave_one_out_by_refitting
from unseed import MLP, selection
from unseed.kernels import ntk
from unseed.random import Streams
from unseed.selection import LeaveOneOut, choose_regularization

RNG = np.random.default_rng(0)
NETWORK = MLP(bias_scale=1.0)


def data(n, noise, rng=RNG):
    X = rng.uniform(-1, 1, size=(n, 2))
    return X, np.sin(3 * X[:, :1]) + noise * rng.standard_normal((n, 1))


@pytest.mark.parametrize("ridge", [1e-4, 0.1, 10.0])
def test_closed_form_is_refitting(ridge):
    X, y = data(20, 0.3)
    K = ntk(X, network=NETWORK)
    errors = LeaveOneOut.of(torch.tensor(K), torch.tensor(y)).errors(ridge)
    assert_allclose(errors.numpy()[0], leave_one_out_by_refitting(K, y, ridge), rtol=1e-9)


def test_no_other_regularization_has_a_smaller_error():
    X, y = data(60, 0.3)
    chosen = choose_regularization(torch.tensor(X), torch.tensor(y), NETWORK, Streams(0))
    criterion = LeaveOneOut.of(torch.tensor(ntk(X, network=NETWORK)), torch.tensor(y))
    best = criterion.mean_square(chosen * 60)
    # The search stops at a hundredth of a logarithmic unit, where the score is flat to 1e-5.
    assert (best <= criterion.mean_square(np.logspace(-8, 1, 200)) * (1 + 1e-5)).all()


def test_noisier_labels_get_more_regularization():
    chosen = [choose_regularization(*map(torch.tensor, data(200, noise)), NETWORK, Streams(0)) for noise in (0.001, 0.1, 1.0)]
    assert chosen[0] < chosen[1] < chosen[2]


def test_a_subset_stands_for_many_rows(monkeypatch):
    X, y = map(torch.tensor, data(400, 0.3))
    everything = choose_regularization(X, y, NETWORK, Streams(0))
    monkeypatch.setattr(selection, "MAX_ROWS", 200)
    subset = choose_regularization(X, y, NETWORK, Streams(0))
    assert 0.2 < subset / everything < 5
    assert choose_regularization(X, y, NETWORK, Streams(0)) == subset


def test_constant_labels_do_no_harm():
    X, _ = data(30, 0.0)
    assert choose_regularization(torch.tensor(X), torch.zeros(30, 1, dtype=torch.float64), NETWORK, Streams(0)) > 0
