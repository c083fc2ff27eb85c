"""Each interval formula on numbers small enough to check by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unseed import Batching, CheapBootstrap, HalfSampling, InfinitesimalJackknife, Sectioning, TruthInterval
from unseed.errors import InvalidInputError
from unseed.intervals import METHODS, resolve_interval


class GivenReplicates:
    def __init__(self, predictions, sizes, influence=None):
        self._predictions, self.sizes, self._influence = (
            np.array(predictions, float)[:, None, None],
            np.array(sizes, float),
            influence,
        )

    def predict(self, X):
        return self._predictions

    def influence(self, X):
        return np.array(self._influence, float)[:, None, None]

    def posterior_variance(self, X):
        return np.array([[2.0]])

    def misfit_variance(self, X):
        return np.array([[0.5]])

    def rival_variance(self, X):
        return np.array([[0.25]])

    def missed_variance(self, X):
        return None


def numbers(method, replicates):
    estimate = method.estimate(replicates, np.zeros((1, 1)))
    return estimate.centre.item(), estimate.standard_error.item(), estimate.degrees_of_freedom


def test_batching():
    assert_allclose(numbers(Batching(batches=3), GivenReplicates([1, 2, 6], [4, 4, 4])), (3.0, np.sqrt(7 / 3), 2))


def test_cheap_bootstrap():
    assert_allclose(numbers(CheapBootstrap(replications=2), GivenReplicates([1, 2, 4], [9, 9, 9])), (1.0, np.sqrt(5), 2))


def test_sectioning():
    # centre 1; S² = (0 + 1 + 25)/2; standard error S/√3
    result = numbers(Sectioning(batches=3), GivenReplicates([1, 1, 2, 6], [12, 4, 4, 4]))
    assert_allclose(result, (1.0, np.sqrt(13 / 3), 2))


def test_interval_for_the_truth():
    # Sectioning's 13/3, a posterior variance of 2, structure of 0.5 and a rival's 0.25 add up; 12 − 2 degrees of freedom.
    result = numbers(TruthInterval(batches=3), GivenReplicates([1, 1, 2, 6], [12, 4, 4, 4]))
    assert_allclose(result, (1.0, np.sqrt(13 / 3 + 2.75), 10))


def test_what_landmarks_miss_is_told_apart_from_the_posterior_and_counted_once():
    class FewLandmarks(GivenReplicates):
        def missed_variance(self, X):
            return np.array([[0.75]])

    replicates = [kind([1, 1, 2, 6], [12, 4, 4, 4]) for kind in (FewLandmarks, GivenReplicates)]
    few, all_ = (TruthInterval(batches=3).estimate(one, np.zeros((1, 1))) for one in replicates)
    assert_allclose(few.standard_error, all_.standard_error, rtol=1e-14)
    assert (few.parts["posterior"].item(), few.parts["landmarks"].item()) == (1.25, 0.75)


def test_half_sampling():
    assert_allclose(numbers(HalfSampling(replications=2), GivenReplicates([1, 2, 4], [8, 4, 4])), (1.0, np.sqrt(5), 2))


def test_half_sampling_of_an_odd_number_of_rows_is_corrected():
    result = numbers(HalfSampling(replications=1), GivenReplicates([1, 4], [5, 2]))
    assert_allclose(result, (1.0, 3 * np.sqrt(2 / 3), 1))


def test_half_samples_of_a_mean_have_the_variance_of_the_mean():
    # The claim behind the method, on the simplest statistic: E (mean_half − mean)² × correction = s²/n, odd n too.
    for n in (40, 41):
        y = np.random.default_rng(n).normal(size=n)
        rng = np.random.default_rng(0)
        halves = np.array([y[rng.permutation(n)[: n // 2]].mean() for _ in range(20_000)])
        mean_square = np.mean((halves - y.mean()) ** 2) * (n // 2) / (n - n // 2)
        assert abs(mean_square / (y.var(ddof=1) / n) - 1) < 4 * np.sqrt(2 / 20_000)


def test_infinitesimal_jackknife():
    result = numbers(InfinitesimalJackknife(), GivenReplicates([5], [4], influence=[1, -1, 3, -3]))
    assert_allclose(result, (5.0, np.sqrt(5.0) / 2, np.inf))
    some_of_many = numbers(InfinitesimalJackknife(), GivenReplicates([5], [400], influence=[1, -1, 3, -3]))
    assert_allclose(some_of_many, (5.0, np.sqrt(5.0) / 20, np.inf))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Batching(batches=1), r"batches=1 must be .* at least 2; one batch has no spread"),
        (lambda: Sectioning(batches=1), r"batches=1 must be"),
        (lambda: CheapBootstrap(replications=0), r"replications=0 must be .* at least 1; no resample"),
        (lambda: HalfSampling(replications=0), r"replications=0 must be"),
        (lambda: CheapBootstrap(replications=2.5), r"replications=2.5"),
        (lambda: Batching(batches=True), r"batches=True"),
    ],
)
def test_impossible_numbers_of_replicates_are_refused_at_birth(build, message):
    with pytest.raises(InvalidInputError, match=message):
        build()


def test_names_and_objects_resolve():
    for name, method in METHODS.items():
        assert resolve_interval(name, 100) == method()
    assert resolve_interval(Batching(7), 100) == Batching(7)
    assert resolve_interval("auto", 100) == Sectioning(4)
    assert resolve_interval("auto", 3) == Sectioning(3)
    assert resolve_interval("auto", 100, has_posterior=True) == TruthInterval(4)
    assert resolve_interval("auto", 3, has_posterior=True) == TruthInterval(3)
    for wrong in ("bootstrap", 4, Batching):
        with pytest.raises(InvalidInputError, match="is not known; use 'auto', 'truth', 'sectioning'"):
            resolve_interval(wrong, 100)
    with pytest.raises(InvalidInputError, match="n_samples=1"):
        resolve_interval("auto", 1)
