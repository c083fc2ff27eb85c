"""Results of tasks one by one: in order, and few tasks taken ahead, also where a backend returns lists only."""

from types import SimpleNamespace

import pytest
from joblib import delayed

from unseed import tasks
from unseed.tasks import outcomes

N_TASKS, N_JOBS, AHEAD = 20, 2, 3


@pytest.fixture(params=["generators", "waves"])
def backend(request, monkeypatch):
    if request.param == "waves":
        monkeypatch.setattr(tasks, "get_active_backend", lambda prefer: (SimpleNamespace(supports_return_generator=False), 1))


class Counted:
    """Tasks, and how many of them were taken."""

    def __init__(self, fails_at=None):
        self.taken, self.fails_at = 0, fails_at

    def __iter__(self):
        for i in range(N_TASKS):
            if i == self.fails_at:
                raise ValueError(f"no task {i}")
            self.taken += 1
            yield delayed(abs)(-i)


@pytest.mark.usefixtures("backend")
def test_all_results_in_order():
    assert list(outcomes(Counted(), N_JOBS, prefer="threads", ahead=AHEAD)) == list(range(N_TASKS))


@pytest.mark.usefixtures("backend")
def test_any_order_has_all_results():
    results = outcomes(Counted(), N_JOBS, prefer="threads", ahead=AHEAD, ordered=False)
    assert sorted(results) == list(range(N_TASKS))


def test_waves_take_few_tasks_ahead(monkeypatch):
    monkeypatch.setattr(tasks, "get_active_backend", lambda prefer: (SimpleNamespace(), 1))
    counted = Counted()
    for done, _ in enumerate(outcomes(counted, N_JOBS, prefer="threads", ahead=AHEAD)):
        assert counted.taken - done <= AHEAD * N_JOBS


@pytest.mark.usefixtures("backend")
def test_nothing_is_taken_before_it_is_asked_for():
    counted = Counted()
    outcomes(counted, N_JOBS, ahead=AHEAD)
    assert counted.taken == 0


@pytest.mark.usefixtures("backend")
def test_faults_of_the_input_are_raised():
    with pytest.raises(ValueError, match="no task 9"):
        list(outcomes(Counted(fails_at=9), N_JOBS, prefer="threads", ahead=AHEAD))
