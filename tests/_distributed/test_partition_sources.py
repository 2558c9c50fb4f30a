"""Partitions, wherever they are: the same functions, the same results."""

import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from clml._distributed.partition_rows import EnginePlan, SplitPlan, survey_of
from clml._distributed.partition_sources import (
    ClusterPartitions,
    LocalPartitions,
    _holds_data,
)
from clml.datasets import as_partitions
from clml.engine.partitioned import Request
from clml.losses import get_losses
from clml.network import Layout, Scaling

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")

LAYOUT = Layout(n_features=3, n_labels=2, embedding_dim=4)
PLAN = SplitPlan(0.25, (1, 2), 4)
ENGINES = EnginePlan(
    LAYOUT, Scaling.identity(3), get_losses(("hamming", "lrap")), None, 10
)


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def loaders():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(50, 3))
    Y = (generator.random((50, 2)) < 0.5).astype(np.uint8)
    return as_partitions(X, Y, rows=10).loaders


@pytest.fixture(params=["local", "sent", "delayed"])
def partitions(request, loaders):
    if request.param == "local":
        return LocalPartitions(loaders, 100.0, None)
    client = request.getfixturevalue("client")
    if request.param == "delayed":
        loaders = [dask.delayed(loader)() for loader in loaders]
    return ClusterPartitions(client, loaders)


def test_rows_as_they_were_given(partitions):
    assert partitions.n == 5
    found = partitions.map_rows(lambda rows, index: (index, len(rows), rows[0].shape))
    assert found == [(i, 3, (10, 3)) for i in range(5)]


def test_rows_that_are_split(partitions):
    """The last partition is one that judges."""
    found = partitions.map(survey_of, PLAN)
    assert all(one.n_rows.keys() == {"train", "validation"} for one in found[:4])
    assert found[4].n_rows == {"validation": 10}
    again = partitions.map(survey_of, PLAN)
    assert [one.n_rows for one in again] == [one.n_rows for one in found]


def test_rows_that_are_held(partitions, loaders):
    thetas = np.random.default_rng(1).normal(size=(4, LAYOUT.size)).astype(np.float32)
    requests = (Request("train"), Request("validation", 0.5, (3,)))
    partitions.map(survey_of, PLAN)
    local = LocalPartitions(loaders, 100.0, None)
    with (
        partitions.held(PLAN, ENGINES, 0.0) as holders,
        local.held(PLAN, ENGINES) as here,
    ):
        for _ in range(2):
            for one, other in zip(
                holders.evaluate(thetas, requests),
                here.evaluate(thetas, requests),
                strict=True,
            ):
                assert one.weight == other.weight
                for name, values in one.sums.items():
                    assert_array_equal(values, other.sums[name])


@dataclass
class Counts:
    """Leaves a file whenever it is called, wherever that is."""

    loader: Any
    folder: Path

    def __call__(self):
        (self.folder / os.urandom(8).hex()).touch()
        return self.loader()


def test_a_partition_is_loaded_once_on_a_cluster(client, loaders, tmp_path):
    def known(rows, index):
        return index

    partitions = ClusterPartitions(client, [Counts(one, tmp_path) for one in loaders])
    assert partitions.map_rows(known) == [0, 1, 2, 3, 4]
    partitions.map_rows(known)
    partitions.map(known, PLAN)
    partitions.map(known, PLAN)
    thetas = np.zeros((2, LAYOUT.size), dtype=np.float32)
    with partitions.held(PLAN, ENGINES) as holders:
        holders.evaluate(thetas, (Request("train"),))
        holders.evaluate(thetas, (Request("train"),))
        assert len(holders._held) == 5
    assert len(list(tmp_path.iterdir())) == 5
    assert holders._held == {}


def test_what_was_made_is_let_go_of(client, loaders):
    """In the lists themselves: calls that are remembered may have them too."""
    partitions = ClusterPartitions(client, loaders)
    partitions.map_rows(lambda rows, index: index)
    partitions.map(survey_of, PLAN)
    parts = partitions._parts
    assert len(parts) == 5
    partitions.let_go()
    assert parts == partitions._rows == []


def test_a_worker_that_is_gone_is_not_waited_for(client, loaders, monkeypatch):
    scatter = client.scatter
    asked = []

    def gone(source, hash, workers=None):
        asked.append(workers)
        if workers is not None:
            raise TimeoutError("No valid workers found")
        return scatter(source, hash=hash)

    monkeypatch.setattr(client, "scatter", gone)
    partitions = ClusterPartitions(client, loaders[:1])
    assert len(partitions.map(survey_of, PLAN)) == 1
    assert asked[0] is not None
    assert asked[1] is None


def test_the_memory_beside_is_taken_off(loaders):
    local = LocalPartitions(loaders, 0.01, None)
    thetas = np.zeros((2, LAYOUT.size), dtype=np.float32)
    with local.held(PLAN, ENGINES, 0.0) as holders:
        holders.evaluate(thetas, (Request("train"),))
        assert holders.n_kept == 5
    with local.held(PLAN, ENGINES, 0.0085) as holders:
        holders.evaluate(thetas, (Request("train"),))
        assert holders.n_kept == 0


@dataclass
class Loader:
    value: Any

    def __call__(self):
        return self.value


@pytest.mark.parametrize(
    ("loader", "expected"),
    [
        (Loader(np.zeros(3)), True),
        (Loader(sp.csr_array(np.eye(2))), True),
        (Loader("part-3.npz"), False),
        (len, False),
    ],
)
def test_loaders_that_have_the_rows_in_themselves(loader, expected):
    assert _holds_data(loader) is expected


def test_maps_of_memory_are_small(tmp_path):
    np.save(tmp_path / "X.npy", np.zeros((50, 3)))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert not _holds_data(as_partitions(mapped, mapped, rows=10).loaders[0])


def test_loaders_that_cannot_travel_are_told_and_no_row(client, capfd):
    """Nor are any in the log of dask, which prints what it cannot send."""

    @dataclass
    class Locked:
        X: Any
        lock: Any

        def __call__(self):
            return self.X, self.X, None

    partitions = ClusterPartitions(client, [Locked(np.eye(3), threading.Lock())])
    with pytest.raises(TypeError, match="The loader of partition 0 cannot be sent"):
        partitions.map_rows(lambda rows, i: None)
    assert "array" not in "".join(capfd.readouterr())
