"""Fits in processes: workers of joblib, forked and spawned ones, and ones that die."""

import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress

import numpy as np
import psutil
import pytest
from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import TerminatedWorkerError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from clml import PAPER_SETTINGS, CLMLClassifier, LebesgueTunedClassifier
from clml.baselines import GaussianNBChain, MLPRelevanceClassifier

# What any part of a test may take.
SECONDS = 60


def fresh(name):
    """Return an unfitted model; those of CLML with two threads."""
    short = {"max_epochs": 2, "n_jobs": 2, "random_state": 0}
    return {
        "members": lambda: CLMLClassifier(n_members=2, shrinkage=0.5, **short),
        "single": lambda: CLMLClassifier(**PAPER_SETTINGS | short),
        "on PyTorch": lambda: CLMLClassifier(
            search="cma", n_members=1, engine="torch", **short
        ),
        "tuned": lambda: LebesgueTunedClassifier(
            KNeighborsClassifier(algorithm="kd_tree"),
            cv=2,
            shrinkage=0.5,
            **short | {"n_jobs": 1},
        ),
        "naive Bayes": GaussianNBChain,
        "deep": lambda: MLPRelevanceClassifier(max_epochs=1, random_state=0),
    }[name]()


NAMES = ("members", "single", "on PyTorch", "tuned", "naive Bayes", "deep")


def fit_all(data, names=NAMES):
    """Return what each model, fitted here, says of the rows."""
    X, Y = data
    return [fresh(n).fit(X, Y).decision_function(X).tobytes() for n in names]


def hang():
    threading.Event().wait()


def die():
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module")
def alone(scaled_data):
    """What this process finds; its threads, BLAS and PyTorch have been at work then."""
    return fit_all(scaled_data)


forking = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


@forking
def test_a_child_that_hangs_or_dies_is_noticed(in_child):
    with pytest.raises(AssertionError, match="hangs"):
        in_child(hang, seconds=0.2)
    with pytest.raises(EOFError):
        in_child(die)


@forking
def test_a_forked_child_fits_as_its_parent_did(in_child, scaled_data, alone):
    assert in_child(fit_all, scaled_data) == alone


@forking
def test_a_child_that_is_forked_during_a_fit(in_child, scaled_data, alone):
    """Threads of the parent are not in the child, nor what they were about to do."""
    X, Y = scaled_data
    inside, done = threading.Event(), threading.Event()

    def slow_loss(Y, scores):
        inside.set()
        done.wait(SECONDS)
        return float(np.mean(Y != (scores > 0)))

    model = CLMLClassifier(losses=("hamming", slow_loss), max_epochs=1, n_jobs=2)
    thread = threading.Thread(target=model.fit, args=(X, Y))
    thread.start()
    try:
        assert inside.wait(SECONDS)
        assert in_child(fit_all, scaled_data, NAMES[:2]) == alone[:2]
    finally:
        done.set()
        thread.join()


def test_a_spawned_child_fits_as_its_parent_did(scaled_data, alone):
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as workers:
        fitted = workers.submit(fresh("members").fit, *scaled_data).result(SECONDS)
    assert fitted.decision_function(scaled_data[0]).tobytes() == alone[0]


def test_workers_of_joblib(scaled_data, alone):
    """Folds, a grid and plain jobs, two at a time."""
    X, Y = scaled_data
    model = fresh("single")
    grid = {"search__sigma0": [0.5, 2.0]}
    found = [
        (
            cross_val_score(model, X, Y, cv=2, n_jobs=n).tolist(),
            GridSearchCV(model, grid, cv=2, n_jobs=n).fit(X, Y).best_score_,
        )
        for n in (1, 2)
    ]
    assert found[0] == found[1]
    names = NAMES[:2]
    fitted = Parallel(n_jobs=2)(delayed(fresh(name).fit)(X, Y) for name in names)
    assert [m.decision_function(X).tobytes() for m in fitted] == alone[:2]


def kill_a_worker():
    """Kill the first worker of joblib that there is."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        for child in psutil.Process().children():
            with suppress(psutil.Error):
                if "popen_loky" in " ".join(child.cmdline()):
                    child.kill()
                    return
        time.sleep(0.01)
    raise AssertionError("there was no worker")


def test_a_worker_that_is_killed_is_an_error_not_a_hang(scaled_data):
    get_reusable_executor().shutdown(kill_workers=True)
    endless = CLMLClassifier(
        search="cma", n_members=1, max_epochs=10**6, max_seconds=SECONDS
    )
    found = []

    def fit():
        try:
            LebesgueTunedClassifier(endless, cv=2, n_jobs=2).fit(*scaled_data)
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=fit, daemon=True)
    thread.start()
    kill_a_worker()
    thread.join(SECONDS)
    assert not thread.is_alive()
    assert [type(error) for error in found] == [TerminatedWorkerError]
    # The next one has workers again.
    assert Parallel(n_jobs=2)(delayed(abs)(x) for x in (-1, 2)) == [1, 2]
