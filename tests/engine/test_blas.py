from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from clml.engine import single_threaded_blas


def blas_threads():
    return {x["num_threads"] for x in threadpool_info() if x["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        yield


def test_limit_holds_inside_and_is_restored():
    assert blas_threads() == {2}
    with single_threaded_blas():
        assert blas_threads() == {1}
        with single_threaded_blas():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == {2}


def test_overlapping_uses_in_threads():
    first_in, second_in, first_out = Event(), Event(), Event()

    def first():
        with single_threaded_blas():
            first_in.set()
            assert second_in.wait(10)
        first_out.set()

    def second():
        assert first_in.wait(10)
        with single_threaded_blas():
            second_in.set()
            assert first_out.wait(10)
            return blas_threads()

    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(first), pool.submit(second)]
        assert futures[1].result() == {1}
    assert blas_threads() == {2}


def test_an_error_restores_too():
    with pytest.raises(RuntimeError), single_threaded_blas():
        raise RuntimeError
    assert blas_threads() == {2}
