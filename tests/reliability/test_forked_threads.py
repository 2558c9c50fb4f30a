"""Threads that a forked child does not have must not be waited for."""

import subprocess
import sys
import threading

import numpy as np
import pytest
import torch
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from threadpoolctl import threadpool_limits

from clml import PAPER_SETTINGS, CLMLClassifier, LebesgueTunedClassifier
from clml._support.torch import cpu_threads
from clml.baselines import MLPRelevanceClassifier
from clml.engine import _blas, single_threaded_blas
from clml.network import PaperNetwork


def enter_and_leave():
    with single_threaded_blas():
        return "left"


def test_a_lock_that_another_thread_held(in_child):
    inside, done = threading.Event(), threading.Event()

    def hold():
        with _blas._lock:
            inside.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait()
    try:
        assert in_child(enter_and_leave, seconds=20) == "left"
    finally:
        done.set()
        thread.join()


SEARCH = """
import os
import numpy as np
from threadpoolctl import threadpool_limits
from clml.baselines import MLkNNClassifier

X = np.random.default_rng(0).normal(size=(600, 8))
Y = (X[:, :3] > 0).astype(int)
with threadpool_limits(2, user_api="openmp"):
    model = MLkNNClassifier(algorithm="brute").fit(X, Y)
    child = os.fork()
    model.predict(X)
    if child:
        assert os.waitpid(child, 0)[1] == 0
"""


def test_neighbours_are_searched_in_a_child():
    """In a process of its own: beside PyTorch, OpenMP is another."""
    subprocess.run([sys.executable, "-c", SEARCH], timeout=60, check=True)


def test_a_network_is_trained_in_a_child(in_child, scaled_data):
    X, Y = scaled_data
    model = MLPRelevanceClassifier(max_epochs=1, random_state=0, n_jobs=2).fit(X, Y)

    def fit_again():
        with pytest.warns(UserWarning, match="do not survive a fork"):
            return model.fit(X, Y).decision_function(X)

    found = in_child(fit_again, seconds=20)
    assert np.allclose(found, model.decision_function(X), rtol=1e-3, atol=1e-5)


def test_folds_are_fitted_in_a_child(in_child, scaled_data):
    """The workers of joblib, which the parent has."""
    learner = OneVsRestClassifier(GaussianNB())
    tuned = LebesgueTunedClassifier(
        learner, cv=2, max_epochs=1, shrinkage=0.5, n_jobs=2, random_state=0
    ).fit(*scaled_data)

    def fit_again():
        return tuned.fit(*scaled_data).theta_.tobytes()

    assert in_child(fit_again, seconds=20) == tuned.theta_.tobytes()


def test_the_number_of_threads_is_left_as_it_was():
    """However uses in several threads overlap."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    first_in, second_in, first_out = (threading.Event() for _ in range(3))
    seen = []

    def first():
        with cpu_threads(1):
            first_in.set()
            second_in.wait()
        first_out.set()

    def second():
        first_in.wait()
        with cpu_threads(2):
            second_in.set()
            first_out.wait()
            seen.append(torch.get_num_threads())

    try:
        for work in ([first, second], [lambda: seen.append(torch.get_num_threads())]):
            threads = [threading.Thread(target=w) for w in work]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert seen == [2, 3]
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_what_is_predicted_does_not_depend_on_the_threads_of_blas():
    """A fit beside keeps BLAS to one: what others predict must stay the same."""
    random = np.random.default_rng(0)
    X = random.normal(size=(100, 1000))
    Y = (X[:, :3] > 0).astype(int)
    settings = PAPER_SETTINGS | {"max_epochs": 1, "network": PaperNetwork(64)}
    model = CLMLClassifier(**settings, random_state=0).fit(X, Y)
    found = []
    for n_threads in (1, 2, 4):
        with threadpool_limits(n_threads, user_api="blas"):
            found.append(model.decision_function(X).tobytes())
    assert found[0] == found[1] == found[2]
