"""Members on a cluster: the bits of one process, whatever becomes of the workers."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import cloudpickle
import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.model_selection import GridSearchCV, cross_validate

from clml import CLMLClassifier, LebesgueTunedClassifier, dask_predict
from clml._distributed import cluster_members as cluster_members
from clml._distributed.cluster_members import ClusterEpochs
from clml._training.ascent import AscentState
from clml._training.init import LastLayer, n_before_last
from clml._training.left_out import left_out
from clml._training.members import AscendingMembers, EvolvedMembers
from clml._training.search import EpochRows, Fitness
from clml._training.steps import AscentPlan
from clml._training.training_rows import NetworkRows
from clml.baselines import GaussianNBRelevance
from clml.engine import NumpyEngine
from clml.evolution import RankGradient, RankOneCMA
from clml.losses import Loss, LossSet, RowTargets, get_losses
from clml.network import Layout, Scaling

distributed = pytest.importorskip("distributed")

LAYOUT = Layout(n_features=8, n_labels=4, embedding_dim=4)
LOSSES = ("hamming", "lrap")


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",  # any port: others may have a cluster too
            silence_logs=50,  # of workers that are killed
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@dataclass
class Task:
    """What members of three kinds are made of."""

    X: Any
    targets: list[RowTargets]
    all_targets: RowTargets

    def ascending(self, run_all=None, losses=LOSSES):
        seeds = np.random.SeedSequence(0).spawn(3)
        return AscendingMembers(
            [AscentState.start(LAYOUT, seed) for seed in seeds],
            [NetworkRows.prepared(self.X, Scaling.identity(8), LAYOUT)] * 3,
            self.targets,
            LossSet(get_losses(losses), 4),
            AscentPlan(0.05, 5, 16, 0.5, dropout=0.2),
            run_all=run_all,
        )

    def evolved(self, run_all=None, losses=LOSSES, executor=None):
        return EvolvedMembers(
            [RankOneCMA(np.zeros(LAYOUT.size), 0.5, 6, seed=i) for i in range(3)],
            [np.asarray] * 3,
            NumpyEngine(LAYOUT, self.X, self.all_targets, losses, executor=executor),
            self.targets,
            Fitness("depth", "monte_carlo", 50, (0,), False),
            EpochRows(120, 0.5, (1,)),
            run_all=run_all,
        )

    def last_layers(self, run_all=None, losses=LOSSES):
        before = np.linspace(-1, 1, n_before_last(LAYOUT), dtype=np.float32)
        n_moved = LAYOUT.size - len(before)
        return EvolvedMembers(
            [RankGradient(np.zeros(n_moved), 0.5, 6, seed=i) for i in range(3)],
            [LastLayer(before)] * 3,
            NumpyEngine(LAYOUT, self.X, self.all_targets, losses),
            self.targets,
            Fitness("depth", "exact", 1, (0,), False),
            None,
            run_all=run_all,
        )


@pytest.fixture(scope="module", params=[np.asarray, sp.csr_array])
def task(request, small_data):
    return make_task(small_data, request.param)


def make_task(small_data, form=np.asarray):
    X, Y = small_data
    targets = RowTargets.from_indicator(Y.astype(np.uint8))
    held_out = left_out(targets.dense, 3, 0)
    own = [
        replace(targets, weight=targets.weight * ~out, weighted=True)
        for out in held_out
    ]
    return Task(form(X), own, targets)


KINDS = ("ascending", "evolved", "last_layers")
each_kind = pytest.mark.parametrize("kind", KINDS)


def assert_same(one, other):
    """Compare members to the last bit, and what they will draw next."""
    assert one.epochs == other.epochs
    assert_array_equal(one.networks(), other.networks())
    left, right = one.record(), other.record()
    assert left["sigma"] == right["sigma"]
    for name in ("members_train", "undefined"):
        assert_array_equal(left[name], right[name])
    np.testing.assert_equal(values(one), values(other))


def values(members):
    """Return all that the next epoch depends on."""
    if isinstance(members, AscendingMembers):
        return [
            {**vars(climber), "adam": vars(climber.adam), "sums": vars(climber.sums)}
            for climber in members.climbers
        ]
    return [strategy.state() for strategy in members.strategies]


# The same bits


@each_kind
def test_the_bits_of_one_process(task, client, kind):
    here = getattr(task, kind)()
    there = getattr(task, kind)(ClusterEpochs(client))
    for _ in range(3):
        here.step(None)
        there.step(None)
        assert_same(here, there)


@each_kind
def test_losses_of_ones_own_travel(small_data, client, kind):
    class Missed(Loss):
        """Known to this function alone: workers cannot import it."""

        name = "missed"
        statistics = ("hits", "relevant")

        def close(self, sums, weight, n_labels):
            missed = sums["relevant"] - sums["hits"]
            return missed / np.maximum(sums["relevant"], 1e-12)

    losses = (Missed, "hamming")
    if kind != "ascending":
        losses = (*losses, lambda Y, scores: float(((scores > 0) != Y).any(1).mean()))
    task = make_task(small_data)
    here = getattr(task, kind)(losses=losses)
    there = getattr(task, kind)(ClusterEpochs(client), losses)
    for _ in range(2):
        here.step(None)
        there.step(None)
    assert_same(here, there)


def test_threads_stay_behind(small_data, client):
    """An engine that threads help can be sent; its copy has none."""
    task = make_task(small_data)
    here = task.evolved()
    with ThreadPoolExecutor(1) as executor:
        there = task.evolved(ClusterEpochs(client), executor=executor)
        here.step(None)
        there.step(executor)
    assert_same(here, there)


@each_kind
def test_an_epoch_says_how_large_it_is(task, kind):
    """A cluster plans by it. What members share is counted, and is sent, once."""
    epoch = getattr(task, kind)()._one_epoch
    n_rows = 120
    dense = task.X if isinstance(task.X, np.ndarray) else task.X.toarray()
    least = dense.astype(np.float32).nbytes + 3 * n_rows * 8
    assert least / 2 < epoch.__sizeof__() < 4 * least
    assert len(cloudpickle.dumps(epoch)) < epoch.__sizeof__() + 20_000
    copy = cloudpickle.loads(cloudpickle.dumps(epoch))
    assert copy.targets[0].dense is copy.targets[1].dense


@pytest.mark.parametrize("search", ["ascent", "cma"])
def test_a_fit(small_data, client, search):
    X, Y = small_data
    given = {"search": search, "n_members": 3, "max_epochs": 2, "shrinkage": 0}
    here = CLMLClassifier(**given, random_state=0).fit(X, Y)
    there = CLMLClassifier(**given, random_state=0, engine="dask", client=client)
    there.fit(X, Y)
    assert_array_equal(here.theta_, there.theta_)
    assert_array_equal(here.predict_proba(X), there.predict_proba(X))


# What may happen


def test_rows_are_sent_once_and_again_when_they_are_lost(
    small_data, client, monkeypatch
):
    sent = []
    scatter = client.scatter
    monkeypatch.setattr(
        client, "scatter", lambda *a, **k: sent.append(a) or scatter(*a, **k)
    )
    task = make_task(small_data)
    run_all = ClusterEpochs(client)
    here, there = task.ascending(), task.ascending(run_all)
    for _ in range(3):
        here.step(None)
        there.step(None)
    n_workers = len(client.nthreads())
    assert len(sent) == n_workers
    # Every worker has a copy that the cluster keeps.
    assert run_all._copies.keys() == client.nthreads().keys()
    client.cancel(list(run_all._copies.values()), force=True)
    here.step(None)
    there.step(None)
    assert len(sent) == 2 * n_workers
    assert_same(here, there)


def test_a_worker_that_has_no_rows_gets_them(small_data, client):
    task = make_task(small_data)
    run_all = ClusterEpochs(client)
    here, there = task.evolved(), task.evolved(run_all)
    here.step(None)
    there.step(None)
    worker, lost = run_all._copies.popitem()
    del lost
    here.step(None)
    there.step(None)
    assert worker in run_all._copies
    assert_same(here, there)


@each_kind
def test_an_interrupt_leaves_all_members_before_the_epoch(
    small_data, client, kind, monkeypatch
):
    task = make_task(small_data)
    here = getattr(task, kind)()
    there = getattr(task, kind)(ClusterEpochs(client))
    here.step(None)
    there.step(None)

    def interrupted(futures):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(client, "gather", interrupted)
        with pytest.raises(KeyboardInterrupt):
            there.step(None)
    assert_same(here, there)
    here.step(None)
    there.step(None)
    assert_same(here, there)


def test_an_error_on_a_worker_is_raised_here(small_data, client):
    def broken(Y, scores):
        raise ValueError("of one's own")

    there = make_task(small_data).evolved(ClusterEpochs(client), (broken, "hamming"))
    with pytest.raises(ValueError, match="of one's own"):
        there.step(None)
    assert there.epochs == (0, 0, 0)


class Losing:
    """A client whose cluster has no workers, or loses what it is given."""

    class Future:
        status = "finished"

        def result(self):
            raise distributed.CancelledError("gone")

    def __init__(self, error):
        self.error = error
        self.n_sent = 0

    def nthreads(self):
        return {}

    def scatter(self, epoch, hash):
        self.n_sent += 1
        if self.error is not None:
            raise self.error
        return self.Future()

    def submit(self, *arguments, pure):
        return self.Future()

    def gather(self, futures):
        raise distributed.CancelledError("gone")


@pytest.mark.parametrize("error", [None, TimeoutError("No valid workers found")])
def test_a_cluster_that_keeps_losing_rows(small_data, error, monkeypatch):
    monkeypatch.setattr(cluster_members, "_ATTEMPTS", 3)
    client = Losing(error)
    members = make_task(small_data).ascending(ClusterEpochs(client))
    with pytest.raises(RuntimeError, match="lost them, 3 times in one epoch") as raised:
        members.step(None)
    assert raised.value.__cause__ is error
    assert client.n_sent == 3
    assert members.epochs == (0, 0, 0)


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_client_that_is_closed(small_data, client, when, monkeypatch):
    address = client.scheduler.address
    short_lived = distributed.Client(address, set_as_default=False)
    members = make_task(small_data).ascending(ClusterEpochs(short_lived))
    members.step(None)
    before = members.networks()
    gather = short_lived.gather

    def closing(futures):
        short_lived.close()
        return gather(futures)

    if when == "before":
        short_lived.close()
    else:
        monkeypatch.setattr(short_lived, "gather", closing)
    with pytest.raises(RuntimeError, match="client was closed while"):
        members.step(None)
    assert_array_equal(members.networks(), before)


@pytest.mark.parametrize("search", ["ascent", "cma"])
def test_losses_that_cannot_travel_are_told_and_no_row(
    small_data, client, search, capfd
):
    """Nor are any in the log of dask, which prints what it cannot send."""

    class Locked(Loss):
        name = "locked"
        statistics = ("hits", "relevant")

        def __init__(self):
            self.lock = threading.Lock()

        def close(self, sums, weight, n_labels):
            return 1 - sums["hits"] / np.maximum(sums["relevant"], 1e-12)

    X, Y = small_data
    clf = CLMLClassifier(
        ("hamming", Locked()), search=search, n_members=2, max_epochs=2, client=client
    )
    with pytest.raises(TypeError, match=r"^losses cannot be sent.*'_thread\.lock'"):
        clf.fit(X, Y)
    assert not hasattr(clf, "theta_")
    assert "array" not in "".join(capfd.readouterr())


def test_functions_that_only_judge_need_not_travel(small_data, client):
    lock = threading.Lock()

    def judging(Y, scores):
        with lock:
            return float(((scores > 0) != Y).mean())

    settings = {"n_members": 2, "max_epochs": 2, "shrinkage": 0.5, "random_state": 0}
    here, there = (
        CLMLClassifier(("lrap", judging), client=where, **settings).fit(*small_data)
        for where in (None, client)
    )
    assert_array_equal(here.theta_, there.theta_)
    assert_array_equal(here.front_.losses, there.front_.losses)


def test_epochs_show_no_rows(task):
    """Whoever prints them in a log, such as a worker of dask."""
    for kind in ("ascending", "evolved"):
        assert "array(" not in repr(getattr(task, kind)()._one_epoch)


# Other work on the same cluster


@pytest.fixture
def mean_score():
    # No function of this module: workers cannot import it.
    return lambda estimator, X, Y: float(estimator.decision_function(X).mean())


def test_cross_validation(small_data, client, mean_score):
    X, Y = small_data
    clf = CLMLClassifier(max_epochs=2, n_members=2, shrinkage=0, random_state=0)
    given = {"cv": 2, "scoring": mean_score, "return_estimator": True}
    here = cross_validate(clf, X, Y, **given)
    with joblib.parallel_config("dask"):
        there = cross_validate(clf, X, Y, n_jobs=2, **given)
    assert_array_equal(here["test_score"], there["test_score"])
    for one, other in zip(here["estimator"], there["estimator"], strict=True):
        assert_array_equal(one.theta_, other.theta_)


@pytest.mark.parametrize(
    "given", [{"n_members": 2}, {"search": "cma", "n_members": 1}], ids=str
)
def test_folds_whose_fits_use_the_cluster_themselves(
    small_data, client, mean_score, given
):
    X, Y = small_data
    clf = CLMLClassifier(**given, max_epochs=2, random_state=0, engine="dask")
    scoring = {"cv": 2, "scoring": mean_score}
    here = cross_validate(clf, X, Y, **scoring)
    # A fold for each thread: those that wait must leave them to those that work.
    with joblib.parallel_config("dask"):
        there = cross_validate(clf, X, Y, n_jobs=2, **scoring)
    assert_array_equal(here["test_score"], there["test_score"])


def test_a_grid_search(small_data, client, mean_score):
    X, Y = small_data
    learner = LebesgueTunedClassifier(
        GaussianNBRelevance(), cv=2, max_epochs=5, random_state=0
    )
    grid = {"mapping": ["bias", "affine"]}
    here = GridSearchCV(learner, grid, cv=2, scoring=mean_score).fit(X, Y)
    there = GridSearchCV(learner, grid, cv=2, scoring=mean_score, n_jobs=2)
    with joblib.parallel_config("dask"):
        there.fit(X, Y)
    for i in range(2):
        scores = f"split{i}_test_score"
        assert_array_equal(here.cv_results_[scores], there.cv_results_[scores])
    assert here.best_params_ == there.best_params_
    assert_array_equal(here.decision_function(X), there.decision_function(X))


def test_predictions(small_data, client):
    X, Y = small_data
    clf = CLMLClassifier(search="cma", n_members=2, max_epochs=2, shrinkage=0)
    clf.fit(X, Y)
    rows = pytest.importorskip("dask.array").from_array(X, chunks=(50, 3))
    found = dask_predict(clf, rows, "decision_function").compute()
    assert_array_equal(found, clf.decision_function(X))


# Last: new workers take their time


def deadly(epoch, folder, n_deaths):
    """Return an epoch in whose middle so many workers are killed, all together."""

    def run(number, member):
        found = epoch(number, member)
        if number < n_deaths and not (folder / str(number)).exists():
            (folder / str(number)).touch()
            for _ in range(500):
                if len(list(folder.iterdir())) == n_deaths:
                    os.kill(os.getpid(), signal.SIGKILL)
                time.sleep(0.01)
        return found

    return run


@pytest.mark.parametrize(("kind", "n_deaths"), [("ascending", 1), ("evolved", 2)])
def test_workers_that_are_killed_change_nothing(
    small_data, client, kind, n_deaths, tmp_path
):
    """Both die together, and the rows with them: these are sent again."""
    task = make_task(small_data)
    client.wait_for_workers(2, timeout=30)
    here = getattr(task, kind)()
    there = getattr(task, kind)(ClusterEpochs(client))
    for _ in range(2):
        here.step(None)
    there.step(None)
    epoch = there._one_epoch
    there._one_epoch = deadly(epoch, tmp_path, n_deaths)
    there.step(None)
    there._one_epoch = epoch
    assert len(list(tmp_path.iterdir())) == n_deaths
    assert_same(here, there)
