"""Fixtures of the tests of load."""

import multiprocessing
import warnings

import pytest
from sklearn.preprocessing import StandardScaler


def _answer(pipe, work, arguments):
    pipe.send(work(*arguments))


@pytest.fixture(scope="session")
def in_child():
    """Return what calls a function in a forked process.

    A child that hangs is killed after some seconds, and fails the test; one that dies
    is an EOFError.
    """

    def called(work, *arguments, seconds=60):
        context = multiprocessing.get_context("fork")
        here, there = context.Pipe(duplex=False)
        child = context.Process(target=_answer, args=(there, work, arguments))
        with warnings.catch_warnings():
            # Newer Pythons warn of what is tested here: a fork beside threads.
            warnings.simplefilter("ignore", DeprecationWarning)
            child.start()
        there.close()  # the child alone has it now: its death ends the wait
        try:
            assert here.poll(seconds), "the child hangs"
            return here.recv()
        finally:
            child.kill()
            child.join()
            here.close()

    return called


@pytest.fixture(scope="session")
def scaled_data(small_data):
    """Rows of zero mean and unit variance, indicator: networks do not scale."""
    X, Y = small_data
    return StandardScaler().fit_transform(X), Y
