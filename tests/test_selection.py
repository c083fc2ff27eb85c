import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy import stats

from oracles.regression import leave_one_out_by_refitting
from unseed import MLP, LinearizedEngine, PNCRegressor
from unseed.errors import InvalidInputError
from unseed.kernels import ntk
from unseed.kernels.differentiable import ntk_of_scales
from unseed.random import Streams
from unseed.selection import LeaveOneOut, choose_regularization, evidence, leave_one_out, select_by_evidence

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
    monkeypatch.setattr(leave_one_out, "MAX_ROWS", 200)
    subset = choose_regularization(X, y, NETWORK, Streams(0))
    assert 0.2 < subset / everything < 5
    assert choose_regularization(X, y, NETWORK, Streams(0)) == subset


def test_constant_labels_do_no_harm():
    X, _ = data(30, 0.0)
    assert choose_regularization(torch.tensor(X), torch.zeros(30, 1, dtype=torch.float64), NETWORK, Streams(0)) > 0


def friedman(n, noise, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 8))
    f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, f + noise * rng.standard_normal(n), f


class TestEvidence:
    @pytest.mark.parametrize("activation", ["relu", "erf"])
    @pytest.mark.parametrize("depth", [1, 3])
    def test_differentiable_kernel_is_the_kernel(self, activation, depth):
        X = RNG.normal(size=(12, 3))
        scales = torch.tensor([0.3, 1.2, 0.7], dtype=torch.float64)
        weight, bias = (torch.tensor(v, dtype=torch.float64) for v in (1.3, 0.6))
        value = ntk_of_scales(torch.tensor(X), scales, weight, bias, activation, depth)
        network = MLP(depth=depth, activation=activation, weight_std=1.3, bias_scale=0.6, input_scale=scales.tolist())
        assert_allclose(value, ntk(X, network=network), rtol=0, atol=1e-12)

    def test_other_activations_are_refused(self):
        with pytest.raises(InvalidInputError, match="activation='tanh' has no differentiable kernel"):
            ntk_of_scales(torch.zeros(2, 2), torch.ones(2), torch.tensor(1.0), torch.tensor(1.0), "tanh", 1)

    def test_criterion_is_the_marginal_likelihood_with_its_best_amplitude(self):
        X, y = data(15, 0.3)
        criterion = evidence._Criterion(torch.tensor(X), torch.tensor(y), "erf", 1)
        point = np.array([-0.3, 0.2, 0.1, -2.0])
        K = criterion._kernel(torch.tensor(point)).numpy()
        A = K / np.diag(K).mean() + np.exp(-2.0) * np.eye(15)
        densities = [stats.multivariate_normal(cov=a * A).logpdf(y[:, 0]) for a in np.exp(np.linspace(-6, 4, 4001))]
        constant = 0.5 * np.log(2 * np.pi) + 0.5
        assert_allclose(float(criterion.evidence(torch.tensor(point))), max(densities) / 15 + constant, atol=1e-5)

    @pytest.mark.parametrize("activation", ["relu", "erf"])
    def test_gradient_is_the_derivative(self, activation):
        X, y = data(20, 0.3)
        criterion = evidence._Criterion(torch.tensor(X), torch.tensor(y), activation, 2)
        point = torch.tensor([-0.3, 0.2, 0.1, 0.1, -2.0], dtype=torch.float64, requires_grad=True)
        (gradient,) = torch.autograd.grad(criterion.evidence(point), point)
        for i in range(5):
            step = torch.zeros(5, dtype=torch.float64)
            step[i] = 1e-5
            with torch.no_grad():
                difference = (criterion.evidence(point + step) - criterion.evidence(point - step)) / 2e-5
            assert_allclose(float(gradient[i]), float(difference), rtol=1e-5, atol=1e-8)

    def test_relevances_find_the_features_that_matter(self):
        X, y, _ = friedman(200, 0.5)
        reg = PNCRegressor(network="evidence", random_state=0).fit(X, y)
        scale = np.array(reg.network_.input_scale)
        assert scale[:5].min() > 3 * scale[5:].max()
        new, _, truth = friedman(300, 0.0, seed=1)
        plain = PNCRegressor(random_state=0).fit(X, y)
        assert np.mean((reg.predict(new) - truth) ** 2) < 0.25 * np.mean((plain.predict(new) - truth) ** 2)
        assert "evidence per row" in str(reg.selection_)
        assert reg.selection_.best.network == reg.network_
        assert plain.selection_ is None

    def test_relevances_are_dropped_where_they_do_not_pay(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(30, 12))
        y = np.tanh(X.sum(axis=1) / 3) + 0.3 * rng.standard_normal(30)
        scale = PNCRegressor(network="evidence", random_state=0).fit(X, y).network_.input_scale
        assert np.ptp(scale) == 0

    def test_it_is_deterministic_and_subsamples_many_rows(self, monkeypatch):
        X, y, _ = friedman(150, 0.5)
        X, y = torch.tensor((X - X.mean(0)) / X.std(0)), torch.tensor((y - y.mean()) / y.std())[:, None]
        monkeypatch.setattr(evidence, "MAX_ROWS", 80)
        monkeypatch.setattr(evidence, "ARCHITECTURES", (("erf", 1),))
        first, again = (select_by_evidence(X, y, Streams(0)) for _ in range(2))
        assert first == again

    def test_given_regularization_is_kept_and_hopeless_points_are_survived(self):
        X, y = data(25, 0.1)
        assert PNCRegressor(network="evidence", regularization=0.5, random_state=0).fit(X, y).regularization_ == 0.5
        constant = PNCRegressor(network="evidence", random_state=0).fit(X, np.full(25, 2.0))
        assert_allclose(constant.predict(X), 2.0)
        duplicated = PNCRegressor(network="evidence", random_state=0).fit(np.tile(X, (2, 1)), np.tile(y[:, 0], 2))
        assert np.isfinite(duplicated.predict(X)).all()

    def test_real_networks_train_what_was_chosen(self):
        X, y, _ = friedman(60, 0.5)
        options = {"network": "evidence", "random_state": 0, "interval": "batching"}
        kernel = PNCRegressor(**options).fit(X, y)
        trained = PNCRegressor(engine=LinearizedEngine(width=2048), **options).fit(X, y)
        assert np.corrcoef(kernel.predict(X), trained.predict(X))[0, 1] > 0.99
