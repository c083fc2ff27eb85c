import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from oracles.regression import leave_one_out_by_refitting
from unseed import MLP, AutoNetwork, LinearizedEngine, PNCRegressor
from unseed._random import Streams
from unseed._selection import RidgePath, choice, choose_regularization, evidence_ahead, search, select_network
from unseed._selection.objective import CRITERIA, Architecture, Optimum, ScaleObjective, Score, evidence
from unseed._selection.search import NEIGHBOURS, representative_rows
from unseed.errors import InvalidInputError
from unseed.kernels import ntk
from unseed.kernels._recursion import ntk_of_scales

RNG = np.random.default_rng(0)
NETWORK = MLP(bias_scale=1.0)


def data(n, noise, rng=RNG):
    X = rng.uniform(-1, 1, size=(n, 2))
    return X, np.sin(3 * X[:, :1]) + noise * rng.standard_normal((n, 1))


@pytest.mark.parametrize("ridge", [1e-4, 0.1, 10.0])
def test_closed_form_is_refitting(ridge):
    X, y = data(20, 0.3)
    K = ntk(X, network=NETWORK)
    errors = RidgePath.of(torch.tensor(K), torch.tensor(y)).errors(ridge)
    assert_allclose(errors.numpy()[0], leave_one_out_by_refitting(K, y, ridge), rtol=1e-9)


def test_no_other_regularization_has_a_smaller_error():
    X, y = data(60, 0.3)
    chosen = choose_regularization(torch.tensor(X), torch.tensor(y), NETWORK, Streams(0))
    criterion = RidgePath.of(torch.tensor(ntk(X, network=NETWORK)), torch.tensor(y))
    best = criterion.mean_square(chosen * 60)
    # The search stops at a hundredth of a logarithmic unit, where the score is flat to 1e-5.
    assert (best <= criterion.mean_square(np.logspace(-8, 1, 200)) * (1 + 1e-5)).all()


def test_noisier_labels_get_more_regularization():
    chosen = [choose_regularization(*map(torch.tensor, data(200, noise)), NETWORK, Streams(0)) for noise in (0.001, 0.1, 1.0)]
    assert chosen[0] < chosen[1] < chosen[2]


def test_a_subset_stands_for_many_rows(monkeypatch):
    X, y = map(torch.tensor, data(400, 0.3))
    everything = choose_regularization(X, y, NETWORK, Streams(0))
    monkeypatch.setattr(search, "RIDGE_ROWS", 200)
    subset = choose_regularization(X, y, NETWORK, Streams(0))
    assert 0.2 < subset / everything < 5
    assert choose_regularization(X, y, NETWORK, Streams(0)) == subset


def test_the_ridge_of_a_subset_is_the_ridge_of_all_rows(monkeypatch):
    """λ times the number of rows, which does not depend on how many there are."""
    X, y = map(torch.tensor, data(100, 0.3))
    seen, of = [], RidgePath.of
    monkeypatch.setattr(RidgePath, "of", lambda kernel, labels: seen.append(labels) or of(kernel, labels))
    monkeypatch.setattr(search, "RIDGE_ROWS", 40)
    chosen = choose_regularization(X, y, NETWORK, Streams(0))
    rows = (y == seen[0].T).any(dim=1)
    assert rows.sum() == 40
    assert choose_regularization(X[rows], y[rows], NETWORK, Streams(0)) * 40 == pytest.approx(chosen * 100, rel=1e-9)


def test_constant_labels_do_no_harm():
    X, _ = data(30, 0.0)
    assert choose_regularization(torch.tensor(X), torch.zeros(30, 1, dtype=torch.float64), NETWORK, Streams(0)) > 0


def friedman(n, noise, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 8))
    f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, f + noise * rng.standard_normal(n), f


def standardised(X, y):
    return torch.tensor((X - X.mean(0)) / X.std(0)), torch.tensor((y - y.mean()) / y.std())[:, None]


class TestCriteria:
    @pytest.mark.parametrize("activation", ["relu", "erf", "sin"])
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

    def test_evidence_is_the_marginal_likelihood_with_its_best_amplitude(self):
        X, y = data(15, 0.3)
        K = ntk(X, network=NETWORK)
        A = K / np.diag(K).mean() + np.exp(-2.0) * np.eye(15)
        densities = [stats.multivariate_normal(cov=a * A).logpdf(y[:, 0]) for a in np.exp(np.linspace(-6, 4, 4001))]
        constant = 0.5 * np.log(2 * np.pi) + 0.5
        assert_allclose(evidence(torch.tensor(A), torch.tensor(y)).value, max(densities) / 15 + constant, atol=1e-5)

    @pytest.mark.parametrize("ridge", [0.01, 1.0])
    def test_leave_one_out_is_refitting(self, ridge):
        X, y = data(20, 0.3)
        K = ntk(X, network=NETWORK)
        score = CRITERIA["leave_one_out"](torch.tensor(K + ridge * np.eye(20)), torch.tensor(y)).value
        assert_allclose(score, -0.5 * np.log(np.mean(leave_one_out_by_refitting(K, y, ridge) ** 2)), rtol=1e-10)

    @pytest.mark.parametrize("name", list(CRITERIA))
    def test_slope_is_the_derivative_in_the_matrix(self, name):
        generator = torch.Generator().manual_seed(0)
        root = torch.randn(9, 9, generator=generator, dtype=torch.float64)
        A, y = root @ root.T + torch.eye(9, dtype=torch.float64), torch.randn(9, 2, generator=generator, dtype=torch.float64)
        direction = torch.randn(9, 9, generator=generator, dtype=torch.float64)
        direction = direction + direction.T
        criterion = CRITERIA[name]
        difference = (criterion(A + 1e-6 * direction, y).value - criterion(A - 1e-6 * direction, y).value) / 2e-6
        assert_allclose(float((criterion(A, y).slope * direction).sum()), difference, rtol=1e-7)

    @pytest.mark.parametrize("name", list(CRITERIA))
    def test_a_matrix_that_cannot_be_factorised_has_no_score(self, name):
        assert CRITERIA[name](-torch.eye(3, dtype=torch.float64), torch.ones(3, 1, dtype=torch.float64)) is None

    @pytest.mark.parametrize("name", list(CRITERIA))
    @pytest.mark.parametrize("activation", ["relu", "erf", "sin"])
    def test_gradient_in_the_scales(self, activation, name):
        X, y = map(torch.tensor, data(20, 0.3))
        objective = ScaleObjective(X, y, Architecture(activation, 2), CRITERIA[name])
        point = np.array([-0.3, 0.2, 0.1, 0.1, -2.0])
        score, slope = objective.score_and_slope(point)
        assert_allclose(score, objective.score(point), rtol=1e-12)
        for i in range(5):
            step = np.zeros(5)
            step[i] = 1e-5
            difference = (objective.score(point + step) - objective.score(point - step)) / 2e-5
            assert_allclose(slope[i], difference, rtol=1e-5, atol=1e-8)

    def test_a_matrix_that_loses_digits_is_climbed_away_from(self):
        X, y = map(torch.tensor, data(20, 0.3))
        flat = ScaleObjective(X, y, Architecture("erf", 1), lambda matrix, labels: Score(0.0, torch.zeros_like(matrix)))
        point = np.array([-5.0, 1.0, 0.1, np.log(1e-9)])
        score, slope = flat.score_and_slope(point)
        assert score < flat.score(point + np.array([0, 0, 0, 3])) - 1
        for step in 1e-5 * np.eye(4):
            assert_allclose(slope @ step, (flat.score(point + step) - flat.score(point - step)) / 2, rtol=1e-5)

    def test_a_scale_for_every_feature_costs_half_a_logarithm_for_every_one_but_the_first(self):
        objective = ScaleObjective(torch.zeros(50, 3), torch.zeros(50, 1), Architecture("erf", 1), evidence)
        common, own = (Optimum(objective, np.zeros(n_scales + 3), -1.0) for n_scales in (1, 3))
        assert common.penalised == -1.0
        assert own.penalised == pytest.approx(-1.0 - np.log(50) / 50, rel=1e-12)

    def test_a_hopeless_point_is_a_bad_one_and_not_a_fault(self):
        X, y = map(torch.tensor, data(20, 0.3))
        objective = ScaleObjective(X, y, Architecture("erf", 1), lambda matrix, labels: None)
        assert objective.score(np.zeros(4)) < -1e9
        assert objective.score_and_slope(np.zeros(4))[0] < -1e9


class TestRows:
    def test_few_rows_are_all_rows(self):
        assert_array_equal(representative_rows(torch.zeros(5, 2), 10, np.random.default_rng(0)), np.arange(5))

    @pytest.mark.parametrize("seed", range(3))
    def test_half_of_them_are_close_together(self, seed):
        X = torch.tensor(np.random.default_rng(seed).normal(size=(5000, 2)))
        rows = representative_rows(X, 400, np.random.default_rng(seed))
        assert len(rows) == len(set(rows.tolist())) == 400
        nearest = torch.cdist(X[rows], X[rows]).fill_diagonal_(torch.inf).min(dim=1).values
        random = X[torch.randperm(5000, generator=torch.Generator().manual_seed(seed))[:400]]
        usual = torch.cdist(random, random).fill_diagonal_(torch.inf).min(dim=1).values
        # A twelfth of the rows: a close one is √12 times nearer. Half of the rows are such, so the lower quartile is theirs.
        assert nearest.quantile(0.25) < 0.5 * usual.quantile(0.25)
        assert NEIGHBOURS < 400 / 2


class TestAutoNetwork:
    def test_relevances_find_the_features_that_matter(self):
        X, y, _ = friedman(200, 0.5)
        reg = PNCRegressor(random_state=0).fit(X, y)
        scale = np.array(reg.network_.input_scale)
        assert scale[:5].min() > 3 * scale[5:].max()
        new, _, truth = friedman(300, 0.0, seed=1)
        plain = PNCRegressor(network=MLP(bias_scale=1.0, scale_inputs=True), random_state=0).fit(X, y)
        assert np.mean((reg.predict(new) - truth) ** 2) < 0.25 * np.mean((plain.predict(new) - truth) ** 2)
        assert "evidence per row" in str(reg.selection_)
        assert reg.selection_.best.network == reg.network_
        assert plain.selection_ is None

    def test_leave_one_out_is_the_other_criterion(self):
        X, y, _ = friedman(100, 0.5)
        reg = PNCRegressor(network=AutoNetwork(criterion="leave_one_out"), random_state=0).fit(X, y)
        new, _, truth = friedman(300, 0.0, seed=1)
        assert np.mean((reg.predict(new) - truth) ** 2) < 0.1 * np.var(truth)
        assert "leave-one-out per row" in str(reg.selection_)

    def test_relevances_can_be_left_out(self):
        X, y, _ = friedman(80, 0.5)
        reg = PNCRegressor(network=AutoNetwork(relevance=False), random_state=0).fit(X, y)
        assert not any(candidate.has_relevance for candidate in reg.selection_.candidates)

    def test_relevances_are_dropped_where_they_do_not_pay(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(30, 12))
        y = np.tanh(X.sum(axis=1) / 3) + 0.3 * rng.standard_normal(30)
        scale = PNCRegressor(random_state=0).fit(X, y).network_.input_scale
        assert np.ptp(scale) == 0

    def test_fast_structure_is_not_taken_for_noise(self):
        # From most starts the ascent ends where everything is noise: a wave along one of five features.
        rng = np.random.default_rng(0)
        X = rng.normal(size=(250, 5))
        truth = np.sin(5 * X[:, 0])
        reg = PNCRegressor(random_state=0).fit(X, truth + 0.1 * rng.standard_normal(250))
        assert np.sqrt(np.mean((reg.predict(X) - truth) ** 2)) < 0.15

    def test_it_is_deterministic_and_uses_more_rows_in_three_stages(self, monkeypatch):
        X, y = standardised(*friedman(150, 0.5)[:2])
        monkeypatch.setattr(choice, "SCREENING_ROWS", 60)
        monkeypatch.setattr(choice, "COMPARING_ROWS", 90)
        first, again = (select_network(X, y, Streams(0), AutoNetwork(max_rows=120)) for _ in range(2))
        assert first == again
        assert AutoNetwork(max_rows=120).stages(1000) == (60, 90, 120, 120)

    def test_more_rows_decide_where_there_are_many(self):
        stages = [AutoNetwork().stages(n) for n in (200, 4999, 5000, 7000, 10**6)]
        assert [last for *_, last in stages] == [1000, 1000, 2000, 2800, 3000]
        assert {few for few, *_ in stages} == {256}
        assert AutoNetwork(max_rows=1500).stages(10**6) == (256, 512, 1000, 1500)

    def test_relevances_that_few_rows_do_not_show_are_found_on_more(self, monkeypatch):
        # One feature among six matters, and a scale for each is thought not to pay on the few rows that ascents begin on.
        monkeypatch.setattr(search, "_TOO_FAR_BEHIND", -np.inf)
        rng = np.random.default_rng(3)
        X = rng.normal(size=(400, 6))
        X, y = standardised(X, np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal(400))
        for name, rows in (("SCREENING_ROWS", 60), ("COMPARING_ROWS", 90), ("POLISHING_ROWS", 250)):
            monkeypatch.setattr(choice, name, rows)
        before = select_network(X, y, Streams(0), AutoNetwork(max_rows=250)).best
        grown = select_network(X, y, Streams(0), AutoNetwork(max_rows=400)).best
        assert not before.has_relevance
        assert grown.has_relevance
        assert np.argmax(grown.network.input_scale) == 0

    @pytest.mark.parametrize("architecture", [("relu", 1), ("erf", 1), ("sin", 1), ("erf", 2), ("relu", 3)])
    def test_scores_of_many_rows_in_blocks_are_those_of_the_whole(self, architecture, monkeypatch):
        X, y = standardised(*friedman(150, 0.5)[:2])
        whole = ScaleObjective(X, y, Architecture(*architecture), evidence)
        for n_scales in (1, X.shape[1]):
            point = whole.start(1.0, 1e-2, n_scales) + 0.1
            expected = whole.score_and_slope(point)
            monkeypatch.setattr("unseed._selection.objective._WHOLE_ROWS", 100)
            score, slope = whole.score_and_slope(point)
            assert whole.score(point) == pytest.approx(score, rel=1e-12)
            monkeypatch.undo()
            assert score == pytest.approx(expected[0], rel=1e-12)
            np.testing.assert_allclose(slope, expected[1], rtol=1e-9, atol=1e-12)

    def test_threads_never_share_a_small_matrix(self, monkeypatch):
        seen = []

        def counting(matrix, labels):
            seen.append((len(matrix), torch.get_num_threads()))
            return evidence(matrix, labels)

        for name, rows in (("SCREENING_ROWS", 30), ("COMPARING_ROWS", 40)):
            monkeypatch.setattr(choice, name, rows)
        monkeypatch.setitem(CRITERIA, "evidence", counting)
        before = torch.get_num_threads()
        try:
            torch.set_num_threads(2)
            select_network(*map(torch.tensor, data(60, 0.1)), Streams(0), AutoNetwork(relevance=False, max_rows=50))
            assert torch.get_num_threads() == 2
        finally:
            torch.set_num_threads(before)
        assert {rows for rows, _ in seen} == {30, 40, 50}
        assert {threads for _, threads in seen} == {1}

    def test_a_rival_has_another_activation_and_nearly_the_score(self):
        best, twin, far, near = (
            choice.Candidate(MLP(activation=activation, depth=depth), 0.1, score)
            for activation, depth, score in (("erf", 1, 1.0), ("erf", 2, 0.99), ("sin", 1, 0.9), ("relu", 1, 0.96))
        )
        assert choice.Selection((best, twin, far, near)).rival is near
        assert choice.Selection((best, twin, far)).rival is None

    def test_a_rival_widens_where_it_disagrees(self):
        X, y, _ = friedman(80, 0.5)
        reg = PNCRegressor(random_state=0).fit(X, y)
        rival = reg.selection_.rival
        assert rival is not None
        other = PNCRegressor(network=rival.network, regularization=rival.regularization, random_state=0).fit(X, y)
        expected = (other.predict(X) - reg.predict(X)) ** 2
        assert_allclose(reg.get_prediction(X).components.parts["rival"], expected, rtol=1e-6, atol=1e-12)

    def test_given_regularization_is_kept_and_hopeless_points_are_survived(self):
        X, y = data(25, 0.1)
        assert PNCRegressor(regularization=0.5, random_state=0).fit(X, y).regularization_ == 0.5
        constant = PNCRegressor(random_state=0).fit(X, np.full(25, 2.0))
        assert_allclose(constant.predict(X), 2.0)
        duplicated = PNCRegressor(random_state=0).fit(np.tile(X, (2, 1)), np.tile(y[:, 0], 2))
        assert np.isfinite(duplicated.predict(X)).all()

    def test_real_networks_train_what_was_chosen(self):
        X, y, _ = friedman(60, 0.5)
        kernel = PNCRegressor(random_state=0, interval="batching").fit(X, y)
        trained = PNCRegressor(engine=LinearizedEngine(width=2048), random_state=0, interval="batching").fit(X, y)
        assert trained.network_ == kernel.network_
        assert np.corrcoef(kernel.predict(X), trained.predict(X))[0, 1] > 0.99

    @pytest.mark.parametrize("options", [{"criterion": "luck"}, {"relevance": 3}, {"max_rows": 2}])
    def test_impossible_options_are_refused(self, options):
        with pytest.raises(InvalidInputError, match=next(iter(options))):
            AutoNetwork(**options)


def test_evidence_says_how_far_a_given_network_is_behind():
    X, y = standardised(*friedman(100, 0.1)[:2])
    selection = select_network(X, y, Streams(0), AutoNetwork(relevance=False))
    best = selection.best
    assert evidence_ahead(X, y, best.network, best.regularization * 100) < 0.05
    assert evidence_ahead(X, y, MLP(activation="erf", input_scale=[50.0] * 8), 1e-3) > 0.3
