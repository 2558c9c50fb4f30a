"""One job: in this process what it computes, in a child what may go wrong."""

import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from clml._learners.scores import label_scores
from clml.datasets import iterative_train_test_split
from clml.datasets.npz import arrays_digest
from clml.experiments import _cell
from clml.experiments._cell import (
    UndefinedLoss,
    compute_cell,
    peak_memory_mb,
    run_in_child,
)
from clml.experiments._cell_data import (
    DatasetSpec,
    data_arrays,
    features_and_labels,
    packed,
    unpacked,
)
from clml.experiments._limits import Stopped, resident_mb, run_cell
from clml.experiments._methods import MethodSpec, build_estimator
from clml.losses import loss_values

SLOW_METHOD = """
import numpy as np
from sklearn.base import BaseEstimator

asked = []


class Slow(BaseEstimator):
    def fit(self, X, y):
        self.classes_ = [np.array([0, 1])] * y.shape[1]
        return self

    def predict_proba(self, X):
        asked.append(len(X))
        return [np.full((len(X), 2), 0.5) for _ in self.classes_]
"""
LIMITS = {"seconds": 60, "memory_mb": None, "threads": 1}
BAD_METHODS = """
import os
import signal
import sys
import time

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


class Constant(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.n_labels_ = y.shape[1]
        return self

    def decision_function(self, X):
        return np.full((len(X), self.n_labels_), -1.0)


class Crashing(Constant):
    def fit(self, X, y):
        os.kill(os.getpid(), signal.SIGSEGV)


class Hungry(Constant):
    def fit(self, X, y):
        self.kept = []
        while True:
            self.kept.append(np.ones(2**20))
            time.sleep(0.002)


class Sleeping(Constant):
    def fit(self, X, y):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(60)


class Undefined(Constant):
    def decision_function(self, X):
        return np.full((len(X), self.n_labels_), np.nan)


class Raising(Constant):
    def fit(self, X, y):
        raise RuntimeError("no luck")


class Leaving(Constant):
    def fit(self, X, y):
        print("last words", file=sys.stderr, flush=True)
        os._exit(3)
"""


def job(method, **changes):
    """Return the job of a method on the data of ``bunch``."""
    synthetic = DatasetSpec.of("d", {"synthetic": {"n_samples": 60}}).load()
    return {
        "method": method.order(),
        "data_hash": arrays_digest(data_arrays(synthetic)),
        "split": 0,
        "seed": 0,
        "losses": ["hamming", "lrap", "binary_cross_entropy"],
        "test_size": 0.3,
        **changes,
    }


@pytest.fixture(scope="module")
def bunch():
    return DatasetSpec.of("d", {"synthetic": {"n_samples": 60}}).load()


@pytest.fixture
def data(bunch, tmp_path):
    path = tmp_path / "data.npz"
    path.write_bytes(packed(data_arrays(bunch)))
    return str(path)


@pytest.fixture
def bad_method(tmp_path, monkeypatch):
    """Return what names a method of the module above, which children can import."""
    (tmp_path / "bad_methods.py").write_text(BAD_METHODS)
    monkeypatch.syspath_prepend(tmp_path)
    return lambda name: MethodSpec.of(name, f"bad_methods:{name}")


def test_a_job_is_the_same_as_by_hand(bunch, data):
    method = MethodSpec.of("GNB-BR")
    found = compute_cell(job(method, data=data, split=2))
    X, X_test, Y, Y_test = iterative_train_test_split(
        bunch.X, bunch.Y, test_size=0.3, refine=False, random_state=2
    )
    model = build_estimator(method.order(), 2).fit(X, Y)
    expected = loss_values(Y_test, label_scores(model, X_test, 6), ("hamming", "lrap"))
    assert list(found["losses"]["test"].values())[:2] == expected.tolist()
    assert list(found["losses"]["test"]) == ["hamming", "lrap", "binary_cross_entropy"]
    assert found["losses"]["validation"] is None
    assert found["losses"]["train"].keys() == found["losses"]["test"].keys()
    assert found["seconds"].keys() == {"fit", "predict"}
    assert found["artifact"] == {}


def test_seeds_are_repetitions_of_a_split(data):
    spec = {"settings": {"n_estimators": 3}}
    method = MethodSpec.of("RandomForest", spec)
    losses = [
        compute_cell(job(method, data=data, seed=seed))["losses"]["test"]
        for seed in (0, 1, 0)
    ]
    assert losses[0] == losses[2] != losses[1]


def test_an_undefined_loss_is_an_error(data, bad_method):
    with pytest.raises(UndefinedLoss, match="hamming on the test rows is nan"):
        compute_cell(job(bad_method("Undefined"), data=data))


def test_other_rows_than_those_of_the_plan_are_an_error(bunch, data):
    arrays = data_arrays(bunch)
    arrays["X"] = arrays["X"] + 1.0
    Path(data).write_bytes(packed(arrays))
    with pytest.raises(ValueError, match="other data than those of the plan"):
        compute_cell(job(MethodSpec.of("GNB-BR"), data=data))


def test_data_survive_packing(bunch, tmp_path):
    for X in (bunch.X, sp.csr_matrix(np.where(bunch.X > 1, bunch.X, 0.0))):
        arrays = data_arrays(type(bunch)(**{**bunch, "X": X}))
        path = tmp_path / "data.npz"
        path.write_bytes(packed(arrays))
        again = unpacked(path)
        assert arrays_digest(again) == arrays_digest(arrays)
        found, Y, names = features_and_labels(again)
        assert (abs(found - X)).max() == 0
        assert np.array_equal(Y, bunch.Y)
        assert names.tolist() == bunch.label_names
    with pytest.raises(ValueError, match="bytes of arrays"):
        unpacked(path, largest=100)


def test_memory_is_told():
    import os

    assert peak_memory_mb() > 10
    assert resident_mb(os.getpid()) > 10


def test_whatever_a_method_does_the_rest_goes_on(data, bad_method):
    cases = {
        "Constant": ("done", None),
        "Crashing": ("failed", "killed by signal 11 (SIGSEGV)"),
        "Hungry": ("failed", "used more than 600 MB of memory"),
        "Sleeping": ("failed", "time-out after 3 s"),
        "Undefined": ("failed", "hamming on the test rows is nan"),
        "Raising": ("failed", "RuntimeError: no luck"),
        "Leaving": ("failed", "ended with exit code 3 and no result: last words"),
    }

    def run(name):
        seconds = 3 if name == "Sleeping" else 60
        limits = {"seconds": seconds, "memory_mb": 600, "threads": 1}
        return run_cell(job(bad_method(name)), data, limits).result

    with ThreadPoolExecutor(3) as pool:
        results = dict(zip(cases, pool.map(run, cases), strict=True))
    assert {n: (r["status"], r["reason"]) for n, r in results.items()} == cases
    assert results["Constant"]["losses"]["test"]["hamming"] > 0
    assert all(r["peak_memory_mb"] > 10 for r in results.values())
    assert all("numpy" in r["versions"] for r in results.values())


def test_a_running_job_is_stopped(data, bad_method):
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    began = time.monotonic()
    with pytest.raises(Stopped):
        run_cell(job(bad_method("Sleeping")), data, LIMITS, stop)
    assert time.monotonic() - began < 10


def test_a_model_is_asked_once_and_that_is_timed(data, tmp_path, monkeypatch):
    (tmp_path / "slow_method.py").write_text(SLOW_METHOD)
    monkeypatch.syspath_prepend(tmp_path)
    import slow_method

    # A clock that goes on while the model is asked, and at no other time.
    clock = SimpleNamespace(perf_counter=lambda: float(len(slow_method.asked)))
    monkeypatch.setattr(_cell, "time", clock)
    found = compute_cell(job(MethodSpec.of("m", "slow_method:Slow"), data=data))
    assert slow_method.asked == [18, 42]  # the test rows, then the others
    assert found["seconds"] == {"fit": 0.0, "predict": 1.0}


@pytest.mark.parametrize("error", [RuntimeError("no luck"), MemoryError()])
def test_losses_outlive_the_artifacts(data, monkeypatch, error):
    def fail(*arguments):
        raise error

    monkeypatch.setattr(_cell, "artifacts_of", fail)
    kept = []
    found = compute_cell(job(MethodSpec.of("GNB-BR"), data=data), kept.append)
    assert kept[0]["losses"] == found["losses"]
    assert found["artifact"] == {}
    assert found["note"].startswith(f"no artifact: {type(error).__name__}")


def test_losses_are_left_before_the_artifacts(data, tmp_path, monkeypatch):
    seen = []

    def die(*arguments):
        seen.append(json.loads((tmp_path / "result.json").read_text()))
        sys.exit(3)

    monkeypatch.setattr(_cell, "artifacts_of", die)
    monkeypatch.setattr(_cell.os, "_exit", seen.append)
    order = {**job(MethodSpec.of("GNB-BR")), "data": data, "memory_mb": None}
    run_in_child(json.dumps(order).encode(), str(tmp_path))
    last = json.loads((tmp_path / "result.json").read_text())
    assert last.pop("note") == "no artifact: SystemExit: 3"
    for result in (seen[0], last):
        assert result["status"] == "done"
        assert result["losses"]["test"]["hamming"] > 0
        assert result["peak_memory_mb"] > 10
        assert "numpy" in result["versions"]
    assert seen[1:] == [0]
