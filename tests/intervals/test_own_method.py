"""A user's own method, passed through everything an estimator can do; nothing in the library knows its name."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from unseed import (
    MLP,
    DeepEnsembleRegressor,
    InfinitesimalJackknife,
    LinearizedEngine,
    PNCRegressor,
    predict_interval_many,
)
from unseed.errors import InvalidInputError, ModelFileError
from unseed.intervals import METHODS, Estimate, IntervalMethod, Plan, describe, own_centre, resolve_interval
from unseed.report import write_report

RNG = np.random.default_rng(0)
X, X_NEW = RNG.normal(size=(60, 2)), RNG.normal(size=(7, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=60)
OPTIONS = {"network": MLP(bias_scale=1), "regularization": 0.01, "random_state": 0}


@dataclass(frozen=True)
class DeleteGroups(IntervalMethod):
    """The grouped jackknife, of ten groups."""

    groups: int = 10

    def plan(self, n_rows, streams):
        group = streams.generator("groups").permutation(n_rows) % self.groups
        kept = group != np.arange(self.groups)[:, None]
        return Plan(np.concatenate([np.ones((1, n_rows)), kept]).astype(np.int64), reference=(0,))

    def estimate(self, replicates, X):
        centre, *others = replicates.predict(X)
        squares = np.sum((np.stack(others) - np.mean(others, axis=0)) ** 2, axis=0)
        return Estimate(centre, np.sqrt((1 - 1 / self.groups) * squares), self.groups - 1.0)


@dataclass(frozen=True)
class LessBias(DeleteGroups):
    """Its centre is not the fit to all rows: the bias it finds is taken off."""

    def centre(self, replicates, X):
        whole, *others = replicates.predict(X)
        return self.groups * whole - (self.groups - 1) * np.mean(others, axis=0)

    def estimate(self, replicates, X):
        plain = super().estimate(replicates, X)
        return Estimate(self.centre(replicates, X), plain.standard_error, plain.degrees_of_freedom)


class Silent:
    """Everything that the protocol asks for, derived from nothing."""

    uses_influence = uses_posterior = False
    plan, estimate = DeleteGroups.plan, DeleteGroups.estimate
    groups = 10


def fitted(method, **options):
    return PNCRegressor(interval=method, **(OPTIONS | options)).fit(X, Y)


@pytest.mark.parametrize("method", [DeleteGroups(), LessBias(), Silent()], ids=lambda method: type(method).__name__)
class TestThroughEverything:
    def test_fit_and_predict(self, method):
        reg = fitted(method)
        assert reg.interval_ is method
        centre, interval = reg.predict_interval(X_NEW)
        prediction = reg.get_prediction(X_NEW)
        assert prediction.degrees_of_freedom == 9
        assert_allclose(centre, prediction.mean, rtol=1e-12)
        assert_allclose(reg.predict(X_NEW), prediction.mean, rtol=1e-10)
        assert_allclose(interval[..., 0], prediction.conf_int(), rtol=1e-10)
        assert (prediction.standard_error > 0).all()

    def test_diagnose(self, method):
        assert "bias of the resamples" in str(fitted(method).diagnose())

    def test_save_and_load_given_again(self, method, tmp_path):
        reg = fitted(method)
        reg.save(tmp_path / "model")
        again = PNCRegressor.load(tmp_path / "model", interval=method)
        assert_array_equal(again.predict_interval(X_NEW)[1], reg.predict_interval(X_NEW)[1])
        with pytest.raises(ModelFileError, match=r"interval is code of your own.*load\(.*interval=\.\.\.\)"):
            PNCRegressor.load(tmp_path / "model")

    def test_report(self, method, tmp_path):
        page = write_report(tmp_path / "report.html", fitted(method), X_NEW).read_text(encoding="utf-8")
        assert f"{describe(method)}: " in page


def test_the_numbers_are_the_jackknife_s():
    # Groups of one row: the delete-one jackknife, here by fitting to each of them alone.
    n = 12
    reg = PNCRegressor(interval=DeleteGroups(n), standardize=False, **OPTIONS).fit(X[:n], Y[:n])
    left_out = []
    for i in range(n):
        kept = np.arange(n) != i
        one = PNCRegressor(interval=InfinitesimalJackknife(), standardize=False, **OPTIONS).fit(X[:n][kept], Y[:n][kept])
        left_out.append(one.predict(X_NEW))
    expected = np.sqrt((n - 1) / n * np.sum((np.array(left_out) - np.mean(left_out, axis=0)) ** 2, axis=0))
    assert_allclose(reg.get_prediction(X_NEW).standard_error, expected, rtol=1e-8)


def test_other_engines_and_estimators_take_it():
    assert fitted(DeleteGroups(), engine=LinearizedEngine(width=32)).predict_interval(X_NEW)[1].shape == (7, 2, 1)
    ensemble = DeepEnsembleRegressor(
        interval=DeleteGroups(), members=2, **OPTIONS | {"network": MLP(bias_scale=1.0, width=512)}
    ).fit(X, Y)
    assert ensemble.predict_interval(X_NEW)[1].shape == (7, 2, 1)
    many = predict_interval_many(
        X[None], Y[None], X_NEW, network=MLP(bias_scale=1), regularization=0.01, interval=DeleteGroups()
    )
    assert_allclose(many[1][0], fitted(DeleteGroups()).predict_interval(X_NEW)[1], rtol=1e-9)


def test_descriptions():
    assert describe(DeleteGroups()) == "The grouped jackknife, of ten groups"

    @dataclass(frozen=True)
    class Bare(DeleteGroups):
        pass

    class Undocumented(DeleteGroups):
        pass

    class Outspoken(DeleteGroups):
        def describe(self):
            return "groups, one after the other"

    assert describe(Bare()) == "Bare"
    assert describe(Undocumented()) == "Undocumented"
    assert describe(Outspoken()) == "groups, one after the other"
    sentences = [describe(method()) for method in METHODS.values()]
    assert len(set(sentences)) == len(METHODS)
    assert all(sentence and sentence != method.__name__ for sentence, method in zip(sentences, METHODS.values(), strict=True))


def test_centres():
    assert all(own_centre(method()) is None for method in METHODS.values())
    assert own_centre(DeleteGroups()) is None
    assert own_centre(LessBias()) is not None
    plain, corrected = fitted(DeleteGroups()).predict(X_NEW), fitted(LessBias()).predict(X_NEW)
    assert np.abs(plain - corrected).min() > 0


def test_half_a_method_is_refused_with_what_is_missing():
    class OnlyPlan:
        uses_influence = False
        plan = DeleteGroups.plan

    with pytest.raises(InvalidInputError, match=r"has no estimate and no uses_posterior; derive its class"):
        resolve_interval(OnlyPlan(), 10)
    with pytest.raises(InvalidInputError, match=r"is not known; use 'auto', 'truth'.* or an object such as"):
        resolve_interval(DeleteGroups, 10)

    class NoFormula(IntervalMethod):
        plan = DeleteGroups.plan

    with pytest.raises(TypeError, match="estimate"):
        NoFormula()


def test_an_estimate_of_the_wrong_shape_is_refused():
    with pytest.raises(InvalidInputError, match=r"centre has shape \(7, 1\) and standard_error \(7,\)"):
        Estimate(np.zeros((7, 1)), np.zeros(7), 3.0)
    with pytest.raises(InvalidInputError, match="degrees_of_freedom=0"):
        Estimate(np.zeros((7, 1)), np.zeros((7, 1)), 0.0)
