"""Work of several threads: results in order, errors where they belong, limits of libraries as they were."""

import threading
import time

import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from unseed._threads import on_all_cores, one_thread, threads_for

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    assert torch.get_num_threads() == 3
    torch.set_num_threads(before)


def test_results_are_in_order_whoever_is_first():
    both = threading.Barrier(2)

    def waits_at_first(item):
        if item < 2:
            both.wait(60)  # two threads are at work, or this never ends
        return item, threading.get_ident()

    found = on_all_cores(waits_at_first, range(40), CPU)
    assert [item for item, _ in found] == list(range(40))
    assert 1 < len({thread for _, thread in found}) <= 3


def test_the_asking_thread_works_too_and_nobody_has_more_than_one_thread():
    def who(_):
        time.sleep(0.002)
        return threading.get_ident(), torch.get_num_threads()

    seen = on_all_cores(who, range(30), CPU, n_threads=3)
    assert threading.get_ident() in {thread for thread, _ in seen}
    assert {threads for _, threads in seen} == {1}


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_libraries_have_one_thread_meanwhile_and_their_own_again_afterwards():
    with threadpool_limits(2, user_api="blas"):
        assert set().union(*on_all_cores(lambda _: blas_threads(), range(4), CPU)) == {1}
        assert blas_threads() == {2}
        torch.set_num_threads(1)  # asked for one thread, libraries have one too
        assert set().union(*on_all_cores(lambda _: blas_threads(), range(4), CPU)) == {1}
        assert set().union(*on_all_cores(lambda _: blas_threads(), range(4), CPU, n_threads=1)) == {2}
        torch.set_num_threads(3)


def test_work_within_work():
    def inner(item):
        return sum(on_all_cores(lambda x: x * item, range(5), CPU))

    assert on_all_cores(inner, range(20), CPU) == [10 * item for item in range(20)]


def test_no_thread_is_left_behind_where_the_system_gives_no_more(monkeypatch):
    real, started = threading.Thread.start, []

    def start(thread):
        if started:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    assert on_all_cores(abs, range(-30, 0), CPU) == list(range(30, 0, -1))
    assert not started[0].is_alive()


def test_an_interrupt_ends_the_work_of_all():
    done = []

    def interrupted(item):
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        time.sleep(0.001)
        done.append(item)

    with pytest.raises(KeyboardInterrupt):
        on_all_cores(interrupted, range(1000), CPU)
    n_done = len(done)
    assert n_done < 999
    time.sleep(0.01)
    assert len(done) == n_done


@pytest.mark.parametrize("place", [0, 7, 39])
def test_an_error_ends_the_work(place):
    done = []

    def fails_at_one_place(item):
        if item == place:
            raise ZeroDivisionError(f"item {item}")
        time.sleep(0.001)
        done.append(item)

    with pytest.raises(ZeroDivisionError, match=f"item {place}"):
        on_all_cores(fails_at_one_place, range(400), CPU)
    assert len(done) < 399  # what was waiting is not begun
    assert threading.active_count() < 10


def test_one_thread_and_other_devices_take_items_as_they_come():
    here = threading.get_ident()
    with one_thread():
        assert on_all_cores(lambda i: (i, threading.get_ident()), range(3), CPU) == [(i, here) for i in range(3)]
    assert on_all_cores(lambda i: (i, threading.get_ident()), range(3), torch.device("cuda")) == [(i, here) for i in range(3)]
    assert on_all_cores(abs, [], CPU) == []


def test_small_matrices_have_one_thread():
    with threads_for(100):
        assert torch.get_num_threads() == 1
    with threads_for(10_000):
        assert torch.get_num_threads() == 3
