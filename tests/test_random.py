import numpy as np

from unseed._random import Streams


def test_integers_are_their_own_seed_and_none_is_fresh():
    assert Streams.from_random_state(7).seed == 7
    assert Streams.from_random_state(np.int64(7)).seed == 7
    assert Streams.from_random_state(None).seed != Streams.from_random_state(None).seed


def test_a_random_state_object_is_asked_once():
    state, same = np.random.RandomState(3), np.random.RandomState(3)
    first = Streams.from_random_state(state)
    assert first == Streams.from_random_state(same)
    assert first != Streams.from_random_state(state)


def test_streams_are_uncorrelated():
    streams = Streams(1)
    a, b = (streams.generator("resample", r).standard_normal(20_000) for r in range(2))
    assert abs(np.corrcoef(a, b)[0, 1]) < 4 / np.sqrt(20_000)
