import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from unseed import _resampling as resampling
from unseed._random import Streams
from unseed.errors import InvalidInputError


@given(n_rows=st.integers(2, 200), n_batches=st.integers(2, 12), seed=st.integers(0, 2**31))
def test_batches_use_every_row_once_and_differ_by_at_most_one(n_rows, n_batches, seed):
    n_batches = min(n_batches, n_rows)
    plan = resampling.batches(n_rows, n_batches, Streams(seed))
    assert_array_equal(plan.counts.sum(axis=0), 1)
    assert plan.sizes.max() - plan.sizes.min() <= 1
    assert plan.reference == tuple(range(n_batches))


@given(n_rows=st.integers(1, 200), seed=st.integers(0, 2**31))
def test_bootstrap_keeps_the_size_and_half_samples_halve_it(n_rows, seed):
    counts = resampling.bootstrap(n_rows, 3, Streams(seed))
    assert_array_equal(counts.sum(axis=1), n_rows)
    if n_rows >= 2:
        halves = resampling.half_samples(n_rows, 3, Streams(seed))
        assert set(np.unique(halves)) <= {0, 1}
        assert_array_equal(halves.sum(axis=1), n_rows // 2)


def test_bootstrap_counts_have_the_multinomial_mean_and_variance():
    counts = resampling.bootstrap(50, 4000, Streams(0))
    # mean 1 and variance 0.98 per cell; 200,000 cells: 4 standard errors
    assert abs(counts.mean() - 1) < 1e-12
    assert abs(counts.var() - 0.98) < 4 * np.sqrt(2.9 / counts.size)


def test_more_replications_extend_fewer():
    assert_array_equal(resampling.bootstrap(30, 8, Streams(5))[:4], resampling.bootstrap(30, 4, Streams(5)))
    assert_array_equal(resampling.half_samples(30, 8, Streams(5))[:4], resampling.half_samples(30, 4, Streams(5)))


def test_full_data_come_first():
    plan = resampling.full_and(resampling.half_samples(7, 2, Streams(0)))
    assert_array_equal(plan.counts[0], 1)
    assert plan.reference == (0,)
    (rows, counts), *halves = plan.replicates()
    assert_array_equal(rows, np.arange(7))
    assert_array_equal(counts, 1)
    assert [len(rows) for rows, _ in halves] == [3, 3]


def test_too_many_batches_and_too_few_rows_are_refused():
    with pytest.raises(InvalidInputError, match=r"batches=5 is more than the n_samples=4 rows"):
        resampling.batches(4, 5, Streams(0))
    with pytest.raises(InvalidInputError, match="n_samples=1"):
        resampling.half_samples(1, 1, Streams(0))
