"""Working on less where memory runs out, and saying so."""

import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from clml._support.memory import BatchSize, ran_out, start_small, warn_once


def fits(limit, done, error=MemoryError):
    """Return work that runs out of memory above a size."""

    def work(start, stop):
        if stop - start > limit:
            raise error("no room")
        done.append((start, stop))

    return work


def test_by_hand():
    # 10 do not fit, nor 5; 3 do, and the 9 that follow are worked on by threes.
    done = []
    portion = BatchSize("rows")
    message = r"ran out 2 times: 3 rows instead of 10 are .* results are the same"
    with pytest.warns(UserWarning, match=message):
        portion.for_each_batch(10, 100, fits(3, done))
    assert done == [(0, 3), (3, 6), (6, 9), (9, 10)]
    assert portion.size(100) == 3
    assert portion.size(2) == 2
    done.clear()
    portion.for_each_batch(4, 100, fits(3, done))  # known by now: no warning
    assert done == [(0, 3), (3, 4)]


def test_without_a_shortage_nothing_is_cut():
    done = []
    portion = BatchSize("rows", 16)
    portion.for_each_batch(40, 32, fits(32, done))
    assert done == [(0, 32), (32, 40)]
    portion.for_each_batch(0, 32, fits(0, done))
    assert len(done) == 2


@given(
    n=st.integers(0, 300),
    wanted=st.integers(1, 10),
    multiple=st.sampled_from([1, 2, 16]),
    room=st.integers(1, 10),
)
def test_everything_is_worked_on_once_in_whole_multiples(n, wanted, multiple, room):
    done = []
    portion = BatchSize("candidates", multiple)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        portion.for_each_batch(n, wanted * multiple, fits(room * multiple, done))
    assert [i for start, stop in done for i in range(start, stop)] == list(range(n))
    assert all(start % multiple == 0 for start, _ in done)
    assert all(stop - start <= room * multiple for start, stop in done)


def test_at_the_least_the_error_says_so_and_what_was_said_first():
    message = r"with 16 candidates at once, and fewer .* said: no room"
    with pytest.raises(MemoryError, match=message) as caught:
        BatchSize("candidates", 16).for_each_batch(40, 64, fits(15, []))
    assert isinstance(caught.value.__cause__, MemoryError)


def test_other_errors_come_out_as_they_are():
    with pytest.raises(KeyError, match="no room"):
        BatchSize("rows").for_each_batch(4, 4, fits(1, [], KeyError))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError("x"), True),
        (torch.OutOfMemoryError("CUDA ran out"), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), True),
        (RuntimeError("CUDA error: out of memory"), True),
        (RuntimeError("CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"), True),
        (RuntimeError("shapes do not match"), False),
        (ValueError("out of memory"), False),
        (KeyboardInterrupt(), False),
    ],
)
def test_what_says_that_memory_ran_out(error, expected):
    assert ran_out(error) is expected


def test_something_else_may_be_cut_first():
    left, asked, done = [2, 1], [], []

    def cut_else(size):
        asked.append(size)
        return bool(left) and bool(left.pop())

    def work(start, stop):
        if left or stop - start > 4:
            raise MemoryError
        done.append((start, stop))

    with pytest.warns(UserWarning, match="once: 4 rows instead of 8"):
        BatchSize("rows").for_each_batch(8, 8, work, cut_else)
    assert asked == [8, 8, 8]
    assert done == [(0, 4), (4, 8)]


def test_what_can_be_is_released_before_the_next_attempt():
    released = []
    portion = BatchSize("rows", exact=False, release=lambda: released.append(1))
    with pytest.warns(UserWarning, match="agree up to rounding"):
        portion.for_each_batch(8, 8, fits(2, []))
    assert len(released) == 2


class Big:
    """Something that an attempt allocates."""

    alive = 0

    def __init__(self):
        Big.alive += 1

    def __del__(self):
        Big.alive -= 1


def test_a_failed_attempt_holds_nothing_while_the_next_one_works():
    seen = []

    def work(start, stop):
        mine = Big()
        seen.append(Big.alive)
        if stop - start > 1:
            raise MemoryError
        del mine

    with pytest.warns(UserWarning, match="ran out 2 times"):
        BatchSize("rows").for_each_batch(4, 4, work)
    assert set(seen) == {1}


def test_one_warning_a_fit():
    with (
        pytest.warns(UserWarning) as caught,
        warn_once(),
    ):
        a, b = BatchSize("candidates"), BatchSize("rows", exact=False)
        a.for_each_batch(8, 8, fits(4, []))
        a.for_each_batch(8, 8, fits(2, []))
        b.for_each_batch(6, 6, fits(3, []))
    (only,) = caught
    assert str(only.message).startswith(
        "Memory ran out 3 times: 2 candidates instead of 8 and 3 rows instead of 6 are "
    )
    assert "agree up to rounding" in str(only.message)
    with pytest.warns(UserWarning, match="ran out once: 1 candidates instead of 2"):
        a.for_each_batch(2, 2, fits(1, []))  # the fit is over


def test_a_fit_that_ends_with_an_error_does_not_warn_too():
    with pytest.raises(KeyError), warn_once():
        BatchSize("rows").for_each_batch(8, 8, fits(4, []))
        raise KeyError


@pytest.mark.parametrize("n_threads", [1, 3])
def test_a_call_that_fails_is_made_again_alone(n_threads):
    running, lock, missed = [], threading.Lock(), []
    failing = {3, 4, 11}

    def work(i):
        with lock:
            running.append(i)
            crowded = i in failing
            failing.discard(i)
        if crowded:
            raise MemoryError
        return i * i

    with ThreadPoolExecutor(n_threads) as executor:
        finish = start_small(executor, work, range(20), missed=lambda: missed.append(1))
        assert finish() == [i * i for i in range(20)]
    assert missed == [1]
    assert sorted(running) == sorted([*range(20), 3, 4, 11])  # no other one twice


def test_a_call_that_fails_again_raises_and_does_not_hang():
    def work(i):
        if i == 2:
            raise MemoryError("still no room")
        return i

    with ThreadPoolExecutor(2) as executor:
        finish = start_small(executor, work, range(9), missed=lambda: None)
        with pytest.raises(MemoryError, match="still no room"):
            finish()
        assert executor.submit(pow, 2, 3).result(10) == 8


def test_other_errors_of_a_thread_come_out():
    def work(i):
        raise ZeroDivisionError

    with ThreadPoolExecutor(2) as executor, pytest.raises(ZeroDivisionError):
        start_small(executor, work, range(9), missed=lambda: None)()
