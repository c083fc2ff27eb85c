"""Engines of the user's own: what they name is what is asked of them, and nothing they have not."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

from unseed import MLP, KernelEngine, PNCRegressor
from unseed.costs import Job
from unseed.engines import ENGINES, Capability, Engine, NewPoints, Trained
from unseed.errors import InvalidInputError, NotAvailableError
from unseed.intervals import METHODS, IntervalMethod, Sectioning, TruthInterval
from unseed.losses import LOSSES, Loss

RNG = np.random.default_rng(0)
X, X_NEW = RNG.normal(size=(40, 2)), RNG.normal(size=(6, 2))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=40)


@dataclass(frozen=True)
class MeanOfLabels(Trained):
    """Networks that answer the same everywhere."""

    means: torch.Tensor  # (n_replicates, n_groups, n_outputs)
    variance: torch.Tensor

    def predict(self, points, replicates=None):
        chosen = self.means if replicates is None else self.means[list(replicates)]
        return chosen[:, None].expand(-1, len(points), -1, -1)

    def noise_variance(self):
        return self.variance


@dataclass(frozen=True)
class MeanEngine(Engine):
    """Trains to the end, and has no formula for anything."""

    @property
    def converges(self):
        return True

    def fit(self, task, plan, *, n_jobs=None):
        counts = torch.from_numpy(plan.counts).to(task.labels)
        means = torch.einsum("rn,ngk->rgk", counts, task.labels) / counts.sum(1)[:, None, None]
        return MeanOfLabels(means, task.labels[:, 0].var(0))


@dataclass(frozen=True)
class WrappedEngine(MeanEngine):
    """Hands on the kernel engine's networks, and says what they can be asked."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        return KernelEngine().capabilities

    def fit(self, task, plan, *, n_jobs=None):
        return KernelEngine().fit(task, plan, n_jobs=n_jobs)


def regressor(engine, **options):
    return PNCRegressor(engine=engine, network=MLP(bias_scale=1.0), regularization=0.1, random_state=0, **options)


def test_auto_is_sectioning_for_converged_networks_without_a_posterior():
    reg = regressor(MeanEngine()).fit(X, Y)
    assert reg.interval_ == Sectioning(batches=4)
    y_hat, interval = reg.predict_interval(X_NEW)
    assert_array_equal(y_hat, y_hat[0])
    assert ((interval[:, 0, 0] < y_hat) & (y_hat < interval[:, 1, 0])).all()
    assert reg.diagnose().findings
    assert Job.of(regressor(MeanEngine()), rows=40, features=2).interval == Sectioning(batches=4)


def test_auto_is_the_interval_for_the_truth_where_the_engine_names_a_posterior():
    own, kernel = (regressor(engine).fit(X, Y) for engine in (WrappedEngine(), KernelEngine()))
    assert own.interval_ == TruthInterval(batches=4)
    assert_array_equal(own.predict_interval(X_NEW)[1], kernel.predict_interval(X_NEW)[1])
    assert Job.of(regressor(WrappedEngine()), rows=40, features=2).interval == TruthInterval(batches=4)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"interval": "truth"}, r"interval=Truth.* needs the capability 'posterior'; .*use interval='sectioning'"),
        ({"interval": "infinitesimal_jackknife"}, "needs the capability 'influence'"),
        ({"noise": "varying"}, "noise='varying' needs the capability 'posterior'"),
        ({"calibration": "conformal"}, "calibration='conformal' needs the capability 'posterior'"),
    ],
    ids=str,
)
def test_what_needs_a_capability_is_refused_before_training(options, words, monkeypatch):
    monkeypatch.setattr(MeanEngine, "fit", lambda *args, **options: pytest.fail("was trained"))
    with pytest.raises(InvalidInputError, match=words):
        regressor(MeanEngine(), **options).fit(X, Y)


def test_who_has_no_posterior_is_named_when_new_points_are_diagnosed():
    with pytest.raises(InvalidInputError, match=r"diagnose\(X\) needs .* with its posterior; engine=MeanEngine\(\) has none"):
        regressor(MeanEngine()).fit(X, Y).diagnose(X_NEW)
    batching = regressor("kernel", interval="batching").fit(X, Y)
    with pytest.raises(InvalidInputError, match=r"diagnose\(X\) needs .* interval=Batching\(batches=\d+\) has none"):
        batching.diagnose(X_NEW)


def test_names_are_those_of_the_list(monkeypatch):
    monkeypatch.setitem(ENGINES, "mean", MeanEngine)
    assert regressor("mean").fit(X, Y).engine_ == MeanEngine()
    for wrong in ("median", MeanEngine, 3):
        with pytest.raises(InvalidInputError, match=r"engine=.* is not known; use 'kernel', .*'mean' or an object such as"):
            regressor(wrong).fit(X, Y)


@pytest.mark.parametrize(("names", "kind"), [(ENGINES, Engine), (LOSSES, Loss), (METHODS, IntervalMethod)], ids=["E", "L", "I"])
def test_what_is_listed_is_what_the_list_is_of(names, kind):
    for name, one in names.items():
        assert name.isidentifier()
        assert isinstance(one(), kind)


def test_networks_say_what_they_cannot_be_asked():
    points = NewPoints(torch.tensor(X_NEW))
    trained = MeanOfLabels(torch.zeros(1, 1, 1), torch.ones(1))
    for question in ("influence", "posterior_variance", "posterior_covariance", "procedural_variance", "procedural_covariance"):
        with pytest.raises(NotAvailableError, match="this is MeanOfLabels"):
            getattr(trained, question)(points)
    with pytest.raises(NotAvailableError, match="leave-one-out"):
        trained.leave_out(torch.arange(2))
    with pytest.raises(NotAvailableError, match="does not say what it takes"):
        MeanEngine().cost(None, None)
    assert MeanEngine().describe() == "MeanEngine, an engine of your own"


def test_points_remember_by_owner_even_where_an_identity_is_used_again():
    points = NewPoints(torch.zeros(3, 2))

    class Owner:
        pass

    assert [points.once(Owner(), "number", lambda n=n: n) for n in range(50)] == list(range(50))
    owner = Owner()
    assert [points.once(owner, "number", lambda n=n: n) for n in range(3)] == [0, 0, 0]
    assert points.once(owner, "another", lambda: 5) == 5
