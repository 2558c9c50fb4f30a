import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from clml._support.threads import begin, shared, started_pool


@pytest.mark.parametrize("n_helpers", [0, 1, 3])
def test_results_keep_the_order(n_helpers):
    if n_helpers == 0:
        assert shared(None, pow, range(7), range(7)) == [n**n for n in range(7)]
        return
    with ThreadPoolExecutor(n_helpers) as helpers:
        assert shared(helpers, pow, range(7), range(7)) == [n**n for n in range(7)]
        assert shared(helpers, pow, [], []) == []


def test_the_caller_works_too():
    """With helpers that are busy the caller does everything, last call first."""
    busy, done = threading.Event(), []
    with ThreadPoolExecutor(1) as helpers:
        helpers.submit(busy.wait)
        finish = begin(helpers, done.append, range(4))
        assert done == []
        finish()
        busy.set()
    assert done == [3, 2, 1, 0]


def test_helpers_begin_at_once():
    begun = threading.Event()
    with ThreadPoolExecutor(1) as helpers:
        finish = begin(helpers, lambda _: begun.set(), [0])
        assert begun.wait(10)
        finish()


def test_an_error_comes_out_after_all_threads_have_stopped():
    running = threading.Event()
    state = {"running": False}

    def work(number):
        if number == 0:  # the first one: a helper's
            state["running"] = True
            running.set()
            time.sleep(0.2)
            state["running"] = False
        else:
            assert running.wait(10)
            raise ZeroDivisionError

    with ThreadPoolExecutor(1) as helpers:
        with pytest.raises(ZeroDivisionError):
            shared(helpers, work, range(2))
        assert not state["running"]


def test_a_system_without_threads_to_spare(monkeypatch):
    start = threading.Thread.start
    begun = []

    def refuse(self):
        if begun:
            raise RuntimeError("can't start new thread")
        begun.append(self)
        start(self)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with started_pool(3) as executor:
        assert executor is None
        assert shared(executor, pow, [2, 3, 4], [10, 2, 1]) == [1024, 9, 4]
    assert not begun[0].is_alive()


def test_all_threads_of_a_pool_have_begun():
    before = threading.active_count()
    with started_pool(3) as executor:
        assert threading.active_count() == before + 3
        assert shared(executor, pow, [2, 3], [10, 2]) == [1024, 9]
    assert threading.active_count() == before
