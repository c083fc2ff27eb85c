"""Closed forms of the experiments against the library, by a second route."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unseed import MLP, GradientDescent, KernelEngine, MCDropoutRegressor, PNCRegressor, Sectioning
from unseed_paper.preparation import resample_counts
from unseed_paper.problems import Synthetic
from unseed_paper.protocols import PROTOCOLS, REGULARIZATION, STEPS, half_the_bound, tuned_budget
from unseed_paper.wide import WideNetwork, dropout_passes, rate_for_width, separate_bootstrap

SETTING = Synthetic("synthetic-1", d=2, n=128)
NETWORK = PROTOCOLS["authors-code"].network
BUDGET = GradientDescent(steps=80, rate=0.01)
DATA, POINTS = SETTING.sample(0), SETTING.places().X[:7]


class Start:
    """An untrained network: known at some points only."""

    def __init__(self, X, values):
        self.known = {row.tobytes(): value for row, value in zip(X, values, strict=True)}

    def __call__(self, X):
        return np.array([self.known[np.ascontiguousarray(row).tobytes()] for row in X])


def library_network(start, rows, labels):
    """A single infinitely wide network that starts at a given function, by the library's own engine."""
    reg = PNCRegressor(
        interval=Sectioning(batches=2),
        engine=KernelEngine(training=BUDGET),
        network=NETWORK,
        regularization=REGULARIZATION,
        standardize=False,
        initial_mean=start,
        random_state=0,
    )
    return reg.fit(DATA.X[rows], labels[rows]).predict(POINTS)


def test_separate_resamples_are_pairs_of_networks_with_one_start():
    wide = WideNetwork.at(DATA.X, POINTS, NETWORK, BUDGET, REGULARIZATION)
    base, auxiliary = (resample_counts(128, 3, part) for part in ("base", "auxiliary"))
    assert (base != auxiliary).any()
    centre, replicates = separate_bootstrap(wide, DATA.y, base, auxiliary, np.random.default_rng(5))
    at_rows, at_points = wide.starts(4, np.random.default_rng(5))
    everything = np.arange(128)
    for r in range(4):
        start = Start(np.vstack([DATA.X, POINTS]), np.concatenate([at_rows[:, r], at_points[:, r]]))
        networks = [
            library_network(start, np.repeat(everything, counts[r]), labels)
            for counts, labels in ((base, DATA.y), (auxiliary, np.zeros(128)))
        ]
        assert_allclose(replicates[r], networks[0] - networks[1], rtol=0, atol=1e-10)
    zero = Start(np.vstack([DATA.X, POINTS]), np.zeros(135))
    assert_allclose(centre, library_network(zero, everything, DATA.y), rtol=0, atol=1e-10)


def test_one_resample_for_both_cancels_the_start():
    wide = WideNetwork.at(DATA.X, POINTS, NETWORK, BUDGET, REGULARIZATION)
    base = resample_counts(128, 3, "base")
    one = separate_bootstrap(wide, DATA.y, base, base, np.random.default_rng(5))[1]
    other = separate_bootstrap(wide, DATA.y, base, base, np.random.default_rng(6))[1]
    assert_allclose(one, other, rtol=0, atol=1e-10)


def test_infinitely_wide_dropout_is_the_limit_of_dropout_networks():
    """Mean and spread of passes over 40 seeds each; both means have standard errors of 1/√40 of the spread over seeds."""
    rate, seeds = 0.02, range(40)
    wide = WideNetwork.at(DATA.X, POINTS, NETWORK, BUDGET, REGULARIZATION)
    limit = [dropout_passes(wide, DATA.y, rate, 50, np.random.default_rng(seed)) for seed in seeds]
    options = {"network": NETWORK, "regularization": REGULARIZATION, "standardize": False}
    real = []
    for seed in seeds:
        network = MLP(bias_scale=1.0, bias_init="zero", width=512)
        reg = MCDropoutRegressor(**(options | {"network": network}), rate=rate, passes=50, trainer=BUDGET, random_state=seed)
        real.append(reg.fit(DATA.X, DATA.y)._network.passes(POINTS, 50)[..., 0])
    spreads = [np.std(passes, axis=1, ddof=1).mean(axis=0) for passes in (limit, real)]
    assert_allclose(spreads[0], spreads[1], rtol=0.1)  # each a mean of 40 standard deviations of 50: 2 %, and O(1/√512)
    means = [np.mean(passes, axis=1) for passes in (limit, real)]
    error = np.sqrt((means[0].var(axis=0) + means[1].var(axis=0)) / len(seeds))
    assert (np.abs(means[0].mean(axis=0) - means[1].mean(axis=0)) < 4 * error).all()
    assert_allclose(means[0].std(axis=0), means[1].std(axis=0), rtol=0.5)  # two standard deviations of 40: 16 % each


def test_the_rate_gives_the_width():
    prior = 0.03
    rate = rate_for_width(0.1, 1.96, prior)
    assert 2 * 1.96 * np.sqrt(rate / (1 - rate) * prior) == pytest.approx(0.1, rel=1e-12)


class TestBudget:
    def test_rate_is_half_the_bound(self):
        from unseed.kernels import ntk

        eigenvalues = np.linalg.eigvalsh(ntk(DATA.X, network=NETWORK)) / 128
        assert half_the_bound(DATA.X, NETWORK) == pytest.approx(0.5 / (eigenvalues[-1] + REGULARIZATION), rel=1e-6)

    def test_the_rule_reads_pilot_data_only(self, monkeypatch):
        asked = []
        sample = Synthetic.sample
        monkeypatch.setattr(Synthetic, "sample", lambda self, repetition: asked.append(repetition) or sample(self, repetition))
        budget = tuned_budget(SETTING, MLP())
        assert budget.steps in STEPS
        assert max(asked) < 0

    def test_authors_rate_is_cut_where_it_would_diverge(self):
        rules = PROTOCOLS["authors-code"]
        assert rules.budget(SETTING, for_errors=False) == GradientDescent(steps=80, rate=0.01)
        budget = rules.budget(SETTING, for_errors=True)
        assert budget.steps == 350
        assert budget.rate == half_the_bound(SETTING.sample(-1).X, NETWORK) < 0.6

    def test_default_has_none(self):
        assert PROTOCOLS["default"].budget(SETTING, for_errors=True) is None
