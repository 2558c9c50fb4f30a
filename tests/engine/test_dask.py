"""Partitions on a cluster: one task a worker, and whatever is lost is made again."""

import time

import numpy as np
import pytest
from held_partitions import cut, make_rows, population

from clml.engine import dask as _dask
from clml.engine.dask import Answer, DaskHolders, answer
from clml.engine.letters import Letter, Whole
from clml.engine.local import LocalHolders
from clml.engine.partitioned import Request

distributed = pytest.importorskip("distributed")

REQUESTS = (Request("train"), Request("train", 0.5, (7,)))


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=2, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def held():
    return cut(make_rows(300), [60, 0, 100, 1, 139])


def _same(value):
    return value


class Makes:
    """Puts partitions on workers in turn, and counts how often."""

    def __init__(self, client, held):
        self.client, self.held = client, held
        self.made = []

    def __call__(self, indices):
        self.made += indices
        workers = sorted(self.client.nthreads())
        return [
            self.client.submit(
                _same, self.held[i], pure=False, workers=[workers[i % len(workers)]]
            )
            for i in indices
        ]


@pytest.fixture
def makes(client, held):
    return Makes(client, held)


@pytest.fixture
def holders(client, makes):
    return DaskHolders(client, makes, len(makes.held))


def assert_same_sums(found, held, thetas):
    here = LocalHolders(lambda i: held[i], len(held), 100)
    for one, other in zip(found, here.evaluate(thetas, REQUESTS), strict=True):
        for name, values in other.sums.items():
            np.testing.assert_array_equal(one.sums[name], values)


def test_the_sums_of_one_process(holders, held, makes):
    thetas = population(6)
    for _ in range(2):
        assert_same_sums(holders.evaluate(thetas, REQUESTS), held, thetas)
    assert makes.made == [0, 1, 2, 3, 4]
    first, second = holders.passes
    assert (first.n_tasks, first.n_repeated) == (2, 0)
    assert first.sent == second.sent == thetas.nbytes
    assert first.received == second.received
    assert 0 < second.compute_seconds <= second.seconds


def test_the_size_of_an_answer(held):
    engine = held[0].engines["train"]
    statistics = engine.evaluate(population(2))
    nodes = [_dask.Node(0, 1, statistics), _dask.Node(1, 2, None)]
    expected = sum(array.nbytes for array in statistics.sums.values())
    assert Answer("tcp://x", [nodes, []], 0.1).nbytes == expected
    assert Answer("tcp://x", None, 0.1).nbytes == 0


class Sealed(Letter):
    """A letter that nobody but some can read."""

    def __init__(self, thetas, readable):
        self.thetas, self.readable = thetas, readable

    def open(self):
        return self.thetas if self.readable else None


class Terse:
    """Writes letters that followers cannot read, or that nobody can."""

    def __init__(self, to_followers, to_others):
        self.readable = {True: to_followers, False: to_others}
        self.written = []

    def end(self, client):
        pass

    def letter(self, thetas, follows):
        self.written.append(follows)
        return Sealed(thetas, self.readable[follows])


def test_letters_that_are_not_understood(client, held, makes):
    """First the state is sent, then candidates, from then on for good."""
    writer = Terse(to_followers=False, to_others=True)
    holders = DaskHolders(client, makes, len(held), writer)
    thetas = population(4)
    for _ in range(3):
        assert_same_sums(holders.evaluate(thetas, REQUESTS), held, thetas)
    # Both follow after the first pass; then each time are told more.
    assert writer.written == [False] * 2 + [True, True, False, False] * 2
    assert [one.n_tasks for one in holders.passes] == [2, 4, 4]
    assert [one.n_repeated for one in holders.passes] == [0, 2, 2]

    writer = Terse(to_followers=False, to_others=False)
    holders = DaskHolders(client, makes, len(held), writer)
    for _ in range(3):
        assert_same_sums(holders.evaluate(thetas, REQUESTS), held, thetas)
    assert writer.written == [False, False]
    assert [one.n_tasks for one in holders.passes] == [4, 2, 2]


def test_a_letter_that_another_worker_read(client, held, makes, monkeypatch):
    """What was written for a follower that died says nothing about who read it."""
    writer = Terse(to_followers=False, to_others=True)
    holders = DaskHolders(client, makes, len(held), writer)
    thetas = population(4)
    holders.evaluate(thetas, REQUESTS)
    # As if both had died, and others had come in their place.
    holders._followers = set(holders._places)
    holders.evaluate(thetas, REQUESTS)
    assert holders._stubborn == set()


class Later:
    """A cluster of one worker to which another comes."""

    def __init__(self, client):
        self._client = client
        self.n_seen = 1

    def __getattr__(self, name):
        return getattr(self._client, name)

    def nthreads(self):
        known = self._client.nthreads()
        return dict(sorted(known.items())[: self.n_seen])


def test_workers_that_come_late_get_some_partitions(client, held, monkeypatch):
    monkeypatch.setattr(_dask, "_LOOK_SECONDS", 0.0)
    cluster = Later(client)
    makes = Makes(cluster, held)
    thetas = population(4)
    holders = DaskHolders(cluster, makes, len(held), may_move=True)
    for n_seen in (1, 1, 2, 2):
        cluster.n_seen = n_seen
        assert_same_sums(holders.evaluate(thetas, REQUESTS), held, thetas)
    # The second half, of five, once more.
    assert makes.made == [0, 1, 2, 3, 4, 3, 4]


def test_a_cluster_without_workers_is_told_of(client, monkeypatch):
    monkeypatch.setattr(_dask, "_PATIENCE", 0.01)
    cluster = Later(client)
    cluster.n_seen = 0
    task = client.submit(time.sleep, 0.3, pure=False)
    with pytest.warns(UserWarning, match="no workers"):
        assert _dask.settled(cluster, [task])


def test_partitions_that_are_lost_are_made_again(client, held, makes, holders):
    thetas = population(4)
    holders.evaluate(thetas, REQUESTS)
    client.cancel([holders._held[2]], force=True)
    assert_same_sums(holders.evaluate(thetas, REQUESTS), held, thetas)
    assert makes.made == [0, 1, 2, 3, 4, 2]
    assert holders.passes[-1].n_repeated > 0
    # From then on all workers are asked at once again.
    assert_same_sums(holders.evaluate(thetas, REQUESTS), held, thetas)
    assert holders.passes[-1].n_tasks == 2
    assert holders.passes[-1].n_repeated == 0
    assert sorted(i for own in holders._places.values() for i in own) == [0, 1, 2, 3, 4]


def test_a_cluster_that_keeps_losing_partitions(client, held, monkeypatch):
    monkeypatch.setattr(_dask, "ATTEMPTS", 3)
    made = []

    def make(indices):
        made.append(1)
        futures = client.map(_same, [held[i] for i in indices], pure=False)
        client.cancel(futures, force=True)
        return futures

    holders = DaskHolders(client, make, len(held))
    with pytest.raises(RuntimeError, match="lost partitions 3 times while they were"):
        holders.evaluate(population(2), REQUESTS)
    assert len(made) == 3


def test_a_cluster_that_keeps_losing_answers(holders, held, monkeypatch):
    monkeypatch.setattr(_dask, "ATTEMPTS", 3)

    def gone(futures):
        raise distributed.CancelledError("gone")

    monkeypatch.setattr(holders._client, "gather", gone)
    message = "lost workers 3 times before 5 of 5 partitions"
    with pytest.raises(RuntimeError, match=message):
        holders.evaluate(population(2), REQUESTS)
    assert holders.passes == []


def _fail(value):
    raise ZeroDivisionError("of one's own")


def test_errors_are_raised_as_they_are(client, held, makes, holders):
    def make(indices):
        return [client.submit(_fail, i, pure=False) for i in indices]

    with pytest.raises(ZeroDivisionError, match="of one's own"):
        DaskHolders(client, make, 2).evaluate(population(2), REQUESTS)
    with pytest.raises(ValueError, match=r"shape|candidates|weights"):
        holders.evaluate(population(2)[:, 1:], REQUESTS)
    # And the holders are none the worse.
    thetas = population(2)
    assert_same_sums(holders.evaluate(thetas, REQUESTS), held, thetas)


def test_an_interrupt_takes_the_tasks_back(client, held, holders, monkeypatch):
    thetas = population(2)
    holders.evaluate(thetas, REQUESTS)
    cancelled = []
    cancel = client.cancel

    def noted(futures):
        cancelled.extend(futures)
        cancel(futures)

    def interrupted(futures, timeout):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(client, "cancel", noted)
        patch.setattr(distributed, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            holders.evaluate(thetas, REQUESTS)
    assert len(cancelled) == 2
    assert_same_sums(holders.evaluate(thetas, REQUESTS), held, thetas)


def test_partitions_are_let_go_of(holders):
    holders.evaluate(population(2), REQUESTS)
    kept = holders._held
    assert len(kept) == 5
    holders.let_go()
    assert kept == {}


def test_threads_of_a_worker_help(client, held, monkeypatch):
    helped = []
    statistics_of = _dask.statistics_of

    def noted(held, thetas, requests, n_partitions, helpers):
        helped.append(helpers)
        return statistics_of(held, thetas, requests, n_partitions, helpers)

    monkeypatch.setattr(_dask, "statistics_of", noted)
    found = client.submit(
        answer, Whole(population(2)), held, REQUESTS, 5, pure=False
    ).result()
    assert found.worker in client.nthreads()
    assert helped[0]._max_workers == 1  # beside the worker's own
    assert _dask._helpers(1, 0) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.zeros(3, dtype=np.float32), 12),
        (b"abcd", 4),
        ({"a": np.zeros(2), "b": {"c": b"1"}, "d": 3}, 16 + 1 + 8),
        ("text", 8),
    ],
)
def test_bytes_of_letters(value, expected):
    assert _dask._letter_bytes(Whole(value)) == expected


@pytest.fixture
def short_lived():
    """Return a client that may be closed."""
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        client = distributed.Client(cluster, set_as_default=False)
        yield client
        client.close()


@pytest.mark.parametrize("when", ["before", "meanwhile", "at the end"])
def test_a_client_that_is_closed(short_lived, held, monkeypatch, when):
    holders = DaskHolders(short_lived, Makes(short_lived, held), len(held))
    thetas = population(3)
    holders.evaluate(thetas, REQUESTS)
    settled = _dask.settled

    def closing(client, futures):
        if when == "meanwhile":
            client.close()
        found = settled(client, futures)
        client.close()
        return found

    if when == "before":
        short_lived.close()
    else:
        monkeypatch.setattr(_dask, "settled", closing)
    with pytest.raises(RuntimeError, match="client was closed while"):
        holders.evaluate(thetas, REQUESTS)
    holders.let_go()


def test_an_interrupt_of_a_closed_client_is_one(short_lived, monkeypatch):
    """Whatever the client says when the tasks are taken back."""

    def interrupted(futures, timeout):
        short_lived.close()
        raise KeyboardInterrupt

    def cancel(futures):
        raise AttributeError("closed")

    monkeypatch.setattr(distributed, "wait", interrupted)
    monkeypatch.setattr(short_lived, "cancel", cancel)
    with pytest.raises(KeyboardInterrupt):
        _dask.settled(short_lived, [])
