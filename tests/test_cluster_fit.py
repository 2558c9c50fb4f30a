"""Fits on a cluster: the bits of one process, whatever becomes of the workers."""

import gc
import os
import signal
import sys
import threading
import time
import types
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from partitioned_fits import assert_same_fit, make
from sklearn.base import clone

from clml._distributed import partition_sources as _partition_sources
from clml._distributed import partitioned_fit as _partitioned_fit
from clml.datasets import RowPartitions, as_partitions, read_partitions
from clml.engine import dask as _dask
from clml.engine.dask import DaskHolders
from clml.losses import Loss, Statistic
from clml.persistence.checkpoint import Checkpoint

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")


def cut(X, Y, weight=None):
    return as_partitions(X, Y, weight, rows=30)


@pytest.fixture(scope="module")
def two_workers():
    with (
        # Where dask moves tasks of a worker that is busy, rows travel, and fits are
        # the same; that is not what is tested here.
        dask.config.set({"distributed.scheduler.work-stealing": False}),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",  # any port: others may have a cluster too
            silence_logs=50,  # of workers that are killed
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def client(two_workers):
    """Return a client of two workers that live: those that were killed come back."""
    two_workers.wait_for_workers(2, timeout=30)
    return two_workers


@pytest.fixture
def holders(monkeypatch):
    """Return those who held partitions in the fits of a test."""
    found = []

    class Noted(DaskHolders):
        def __init__(self, *arguments, **keywords):
            super().__init__(*arguments, **keywords)
            found.append(self)

    monkeypatch.setattr(_partition_sources, "DaskHolders", Noted)
    return found


# The same bits, whatever holds the rows


def of_arrays(X, Y):
    return da.from_array(X, chunks=(30, 3)), da.from_array(Y, chunks=(30, -1))


def of_frames(X, Y):
    frames = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(X).add_prefix("x").join(pd.DataFrame(Y).add_prefix("y"))
    labels = [f"y{i}" for i in range(Y.shape[1])]
    return frames.from_pandas(frame, npartitions=4, sort=False), labels


def of_delayed(X, Y):
    rows = dask.delayed(lambda a: (X[a : a + 30], Y[a : a + 30]))
    return [rows(a) for a in range(0, 120, 30)], None


def of_partitions(X, Y):
    return cut(X, Y), None


def of_sparse_blocks(X, Y):
    X = da.from_array(X, chunks=(30, -1)).map_blocks(sp.csr_array)
    return X, da.from_array(Y, chunks=(30, -1))


@pytest.mark.parametrize(
    "given", [of_arrays, of_frames, of_delayed, of_partitions, of_sparse_blocks]
)
def test_the_bits_of_one_process(small_data, client, given):
    X, Y = small_data
    clf = make(client=client)
    there = clone(clf).fit(*given(X, Y))
    if given is of_sparse_blocks:
        X = sp.csr_array(X)
    rows = cut(X, Y)
    if given is of_frames:
        assert list(there.feature_names_in_) == [f"x{i}" for i in range(8)]
        rows = RowPartitions(rows.loaders, label_names=[f"y{i}" for i in range(4)])
    here = make().fit(rows)
    assert_same_fit(here, there)
    # Dask's own are computed here where there is no client.
    assert_same_fit(here, make().fit(*given(*small_data)))


@pytest.mark.parametrize(
    "settings",
    [
        {"covariance": "full", "embedding_dim": 2},
        {"covariance": "separable", "validation_fraction": 0.0},
        {"covariance": "cma"},
        {"search": "rank_gradient", "epoch_rows": 0.5, "n_jobs": 2},
        {"init": "surrogate", "evolve": "last"},
    ],
    ids=lambda settings: ", ".join(map(str, settings.values())),
)
def test_every_search(small_data, client, settings):
    weight = np.random.default_rng(0).integers(0, 3, 120).astype(float)
    weight[30:60] = 0  # a partition that has nothing to say
    rows = cut(*small_data, weight)
    assert_same_fit(
        make(**settings).fit(rows), make(client=client, **settings).fit(rows)
    )


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_rows_in_memory_are_sent(small_data, client, monkeypatch, form):
    """One partition of them gives the model of the engine here."""
    X, Y = form(small_data[0][:90]), small_data[1][:90]
    given = {"X_val": form(small_data[0][90:]), "y_val": small_data[1][90:]}
    clf = make(losses=("hamming", "micro_f1"), standardize=False)
    there = clone(clf).set_params(engine="dask", client=client)
    assert_same_fit(clone(clf).fit(X, Y, **given), clone(there).fit(X, Y, **given))
    monkeypatch.setattr("clml._distributed.partitioned_fit.SHARD_ROWS", 7)
    monkeypatch.setattr("clml._distributed.partitioned_fit._MANY_PARTITIONS", 3)
    there.fit(
        pd.DataFrame(small_data[0][:90]).add_prefix("x"), Y, **given | _named(given)
    )
    assert list(there.feature_names_in_) == [f"x{i}" for i in range(8)]
    if form is np.asarray:
        assert_same_fit(clf.fit(X, Y, **given), there)


def _named(given):
    X = given["X_val"]
    X = X.toarray() if sp.issparse(X) else X
    return {"X_val": pd.DataFrame(X).add_prefix("x")}


def test_two_classes_are_sent(small_data, client):
    X, Y = small_data
    y = np.where(Y[:, 0] > 0, "yes", "no")
    clf = make(losses=("hamming", "micro_f1"))
    here, there = clone(clf).fit(X, y), clf.set_params(engine="dask", client=client)
    assert_same_fit(here, there.fit(X, y))
    assert_array_equal(there.classes_, ["no", "yes"])
    assert_array_equal(here.predict(X), there.predict(X))


def test_files_are_read_where_the_workers_are(small_data, client, tmp_path):
    X, Y = small_data
    for i in range(4):
        here = slice(30 * i, 30 * i + 30)
        np.savez(tmp_path / f"part-{i}.npz", X=X[here], Y=Y[here])
    files = read_partitions(tmp_path)
    assert_same_fit(make().fit(cut(X, Y)), make(client=client).fit(files))


def test_a_scheduler_is_known_by_its_address(small_data, client):
    rows = cut(*small_data)
    there = make(client=client.scheduler.address).fit(rows)
    assert_same_fit(make().fit(rows), there)
    assert client.status == "running"


def test_the_current_client(small_data, client, holders):
    """Dask's collections go there by themselves; others if they are told to."""
    X, Y = small_data
    with client.as_current():
        there = make().fit(*of_arrays(X, Y))
        assert len(holders) == 1
        assert_same_fit(there, make(engine="numpy").fit(*of_arrays(X, Y)))
        assert_same_fit(there, make().fit(cut(X, Y)))
        assert len(holders) == 1
        assert_same_fit(there, make(engine="dask").fit(cut(X, Y)))
        assert len(holders) == 2


# What travels


def n_fetched(client):
    """Return how often workers have fetched something from each other so far."""
    found = client.run(
        lambda dask_worker: dask_worker.state.transfer_incoming_count_total
    )
    return sum(found.values())


def test_rows_stay_where_they_are(client):
    generator = np.random.default_rng(0)
    table = generator.normal(size=(8000, 12))
    table[:, 8:] = table[:, 8:] > 0
    with client.as_current():
        rows = da.from_array(table, chunks=(2000, -1)).persist()
        distributed.wait(rows)
        futures = distributed.futures_of(rows)
        before = client.who_has(futures), n_fetched(client)
        there = make(client=client).fit(rows[:, :8], rows[:, 8:])
        assert (client.who_has(futures), n_fetched(client)) == before
        # Without the cluster's help each is fetched once.
        here = make(engine="numpy").fit(rows[:, :8], rows[:, 8:])
    assert_same_fit(here, there)


def test_workers_forget_runs_that_have_ended(client):
    def n_copies():  # of no module that workers would look for
        from clml._distributed.courier import _copies

        return len(_copies)

    generator = np.random.default_rng(0)
    X = generator.normal(size=(90, 8))
    make(client=client).fit(cut(X, (X[:, :4] > 0).astype(np.uint8)))
    deadline = time.monotonic() + 10
    while any(client.run(n_copies).values()):  # they are told, and not waited for
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_only_sums_and_orders_travel(client, holders):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(4000, 8))
    Y = (X[:, :4] > 0).astype(np.uint8)
    seen = []
    for n in (400, 4000):
        rows = as_partitions(X[:n], Y[:n], rows=n // 4)
        with_epochs = make(client=client, max_epochs=5, population_size=30)
        with_epochs.fit(rows)
        passes = holders[-1].passes
        assert len(passes) == 5
        assert [(one.n_tasks, one.n_repeated) for one in passes] == [(2, 0)] * 5
        seen.append([(one.sent, one.received) for one in passes])
    assert seen[0] == seen[1]
    # The first letter has the strategy, the others 30 indices and three numbers.
    sent = [sent for sent, _ in seen[0]]
    assert sent[0] > 1000
    assert max(sent[1:]) <= 30 * 2 + 5 * 8 + 32
    # A few numbers a candidate, of neither rows nor weights.
    assert seen[0][1][1] < 31 * 8 * 40


# What may happen


def deadly_loss(folder, n_deaths=0, error=None, n_before=10):
    """Return a loss that kills workers, or raises, in the middle of an epoch.

    It is known to this function alone, and harmless in this process.
    """
    home = os.getpid()

    def missed(Y, scores, targets):
        if os.getpid() != home:
            (folder / f"call-{os.getpid()}-{os.urandom(4).hex()}").touch()
            if len(list(folder.glob("call-*"))) > n_before:
                strike()
        return ((scores <= 0) & (Y > 0)).sum(axis=-1)

    def strike():
        if error is not None:
            raise error
        for i in range(n_deaths):
            try:
                (folder / f"death-{i}").touch(exist_ok=False)
            except FileExistsError:
                continue
            os.kill(os.getpid(), signal.SIGKILL)

    class Missed(Loss):
        name = "missed"
        statistics = (Statistic("missed_sum", missed),)

        def close(self, sums, weight, n_labels):
            return sums["missed_sum"] / (weight * n_labels)

    return Missed


@pytest.mark.parametrize(
    ("given", "n_deaths"), [(of_partitions, 2), (of_arrays, 1)], ids=["both", "one"]
)
def test_workers_that_are_killed_change_nothing(
    small_data, client, holders, tmp_path, given, n_deaths
):
    """In the second epoch; with both of them the rows that were sent are gone."""
    clf = make(losses=("hamming", deadly_loss(tmp_path, n_deaths)), max_epochs=6)
    there = clone(clf).set_params(client=client).fit(*given(*small_data))
    assert len(list(tmp_path.glob("death-*"))) == n_deaths
    assert_same_fit(clf.fit(cut(*small_data)), there)
    passes = holders[0].passes
    if n_deaths == 2:  # otherwise dask sends the task to the other one
        assert sum(one.n_repeated for one in passes) > 0
    # Whoever is there is asked once an epoch, as before.
    assert passes[-1].n_repeated == 0
    assert passes[-1].n_tasks <= 2


def test_a_worker_that_is_killed_while_it_loads(small_data, client, tmp_path):
    X, Y = small_data
    home = os.getpid()

    @dataclass
    class Dies:
        start: int

        def __call__(self):
            flag = tmp_path / "death"
            if self.start == 60 and os.getpid() != home and not flag.exists():
                flag.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            here = slice(self.start, self.start + 30)
            return X[here], Y[here], None

    rows = RowPartitions(tuple(map(Dies, range(0, 120, 30))))
    there = make(client=client).fit(rows)
    assert (tmp_path / "death").exists()
    assert_same_fit(make().fit(cut(X, Y)), there)


def test_an_error_on_a_worker_is_raised_here(small_data, client, tmp_path):
    deadly = deadly_loss(tmp_path, error=ValueError("of one's own"))
    clf = make(losses=("hamming", deadly), client=client)
    with pytest.raises(ValueError, match="of one's own"):
        clf.fit(cut(*small_data))
    # Not tried again, and again.
    assert len(list(tmp_path.glob("call-*"))) < 20


def test_modules_that_workers_lack_are_told(small_data, client, monkeypatch):
    """And the workers live on."""
    away = types.ModuleType("away")
    monkeypatch.setitem(sys.modules, "away", away)
    code = "def load(): pass\ndef missed(Y, scores, targets): pass"
    exec(code, vars(away))
    workers = client.scheduler_info(n_workers=-1)["workers"].keys()

    class Missed(Loss):
        name = "missed"
        statistics = (Statistic("missed_sum", away.missed),)

    with pytest.raises(ModuleNotFoundError, match="away"):
        make(client=client, losses=("hamming", Missed)).fit(cut(*small_data))
    with pytest.raises(ModuleNotFoundError, match="away"):
        make(client=client).fit(RowPartitions((away.load,)))
    assert client.scheduler_info(n_workers=-1)["workers"].keys() == workers


def test_rows_that_are_none_are_told(small_data, client, tmp_path):
    X, Y = small_data
    X = X.copy()
    X[100, 3] = np.inf

    @dataclass
    class Counts:
        number: int

        def __call__(self):
            (tmp_path / f"{self.number}-{os.urandom(4).hex()}").touch()
            here = slice(30 * self.number, 30 * self.number + 30)
            return X[here], Y[here], None

    with pytest.raises(ValueError, match=r"Partition 3 is no rows to fit.*infinity"):
        make(client=client).fit(RowPartitions(tuple(map(Counts, range(4)))))
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize("given", [of_partitions, of_arrays])
def test_a_client_that_is_closed_leaves_the_model_as_it_was(
    small_data, client, monkeypatch, given
):
    X, Y = small_data
    short_lived = distributed.Client(client.scheduler.address, set_as_default=False)
    clf = make(client=short_lived).fit(*given(X, Y))
    before = dict(vars(clf))
    settled = _dask.settled
    calls = []

    def closing(client, futures):
        calls.append(None)
        if len(calls) == 10:
            short_lived.close()
        return settled(client, futures)

    monkeypatch.setattr(_dask, "settled", closing)
    clf.max_epochs = 50
    with pytest.raises(RuntimeError, match="client was closed while"):
        clf.fit(*given(X, Y))
    assert len(calls) >= 10
    assert vars(clf) == before | {"max_epochs": 50}
    with pytest.raises(RuntimeError, match="client is a dask client that is closed"):
        clf.fit(*given(X, Y))
    assert vars(clf) == before | {"max_epochs": 50}


@pytest.mark.parametrize("given", [of_partitions, of_arrays])
def test_rows_that_a_closed_client_would_read(small_data, client, monkeypatch, given):
    """Before there is an epoch, too; and where they are read from here."""
    short_lived = distributed.Client(client.scheduler.address, set_as_default=False)
    opened = _partitioned_fit.open_client

    @contextmanager
    def closing(given):
        with opened(given) as found:
            found.close()
            yield found

    monkeypatch.setattr(_partitioned_fit, "open_client", closing)
    with pytest.raises(RuntimeError, match="client was closed while"):
        make(client=short_lived).fit(*given(*small_data))
    if given is of_arrays:
        monkeypatch.setattr(_partitioned_fit, "current_client", lambda: short_lived)
        with pytest.raises(RuntimeError, match="client was closed while"):
            make(engine="numpy").fit(*given(*small_data))


@pytest.mark.parametrize("given", [of_partitions, of_arrays])
def test_losses_that_cannot_travel_are_told_and_no_row(
    small_data, client, given, capfd, tmp_path
):
    """Nor are any in the log of dask, which prints what it cannot send."""
    loss = deadly_loss(tmp_path)()
    loss.lock = threading.Lock()
    clf = make(losses=("hamming", loss), client=client)
    with pytest.raises(TypeError, match=r"^losses cannot be sent.*'_thread\.lock'"):
        clf.fit(*given(*small_data))
    assert "array" not in "".join(capfd.readouterr())


class BrokenOffError(Exception):
    """Stands for whatever ends the coordinator."""


@pytest.mark.parametrize("given", [of_arrays, of_partitions])
def test_a_run_goes_on_elsewhere(small_data, client, tmp_path, monkeypatch, given):
    """On another cluster, of another number of workers, and here."""
    clf = make(checkpoint=tmp_path, checkpoint_every=0, max_epochs=6)
    offer = Checkpoint.offer
    written = []

    def offered(self, *arguments, **keywords):
        offer(self, *arguments, **keywords)
        written.append(None)
        if len(written) in (2, 4):
            raise BrokenOffError

    monkeypatch.setattr(Checkpoint, "offer", offered)
    with pytest.raises(BrokenOffError):
        clone(clf).set_params(client=client).fit(*given(*small_data))
    with (
        distributed.LocalCluster(
            n_workers=3, threads_per_worker=2, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as other,
        pytest.raises(BrokenOffError),
    ):
        clone(clf).set_params(client=other).fit(*given(*small_data))
    clf.fit(*given(*small_data))
    assert len(written) == 6
    assert_same_fit(make(max_epochs=6).fit(cut(*small_data)), clf)


def test_an_interrupt_ends_the_work(small_data, client, monkeypatch):
    """The model of the epochs so far is stored, and nothing is left on the cluster."""
    evaluate = DaskHolders.evaluate
    gather = client.gather

    def interrupted(futures):
        raise KeyboardInterrupt

    def third(self, *arguments):
        if len(self.passes) == 2:
            with monkeypatch.context() as patch:
                patch.setattr(client, "gather", interrupted)
                return evaluate(self, *arguments)
        return evaluate(self, *arguments)

    monkeypatch.setattr(DaskHolders, "evaluate", third)
    clf = make(client=client, keep_on_interrupt=True).fit(cut(*small_data))
    assert client.gather == gather
    assert clf.interrupted_
    assert clf.n_epochs_ == 2
    assert_array_equal(clf.theta_, make(max_epochs=2).fit(cut(*small_data)).theta_)


@pytest.mark.parametrize("fault", [None, "rows", "loss"])
def test_no_row_stays_on_the_cluster(small_data, client, tmp_path, fault):
    """Not even where an error is remembered."""
    X, Y = small_data
    settings = {}
    if fault == "rows":
        X = np.where(np.arange(120)[:, None] == 100, np.nan, X)
    if fault == "loss":
        loss = deadly_loss(tmp_path, error=ValueError("of one's own"))
        settings = {"losses": ("hamming", loss)}
    with pytest.raises(ValueError, match=r"NaN|own") if fault else nullcontext():
        make(client=client, **settings).fit(cut(X, Y))
    gc.collect()

    def n_bytes(dask_scheduler):
        tasks = dask_scheduler.tasks.values()
        return sum(task.nbytes for task in tasks if task.who_has)

    for _ in range(100):  # what is let go of is told now and then
        if (left := client.run_on_scheduler(n_bytes)) < 2_000:
            break
        time.sleep(0.05)
    assert left < 2_000
