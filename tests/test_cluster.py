"""The cluster that is meant: a client, an address, the one that was made last."""

import sys

import pytest

from clml._cluster import current_client, import_distributed, open_client

distributed = pytest.importorskip("distributed")


@pytest.fixture
def client():
    """Return a client of a cluster in this process; it is nobody's current one."""
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def test_a_client_is_taken_and_left_open(client):
    with open_client(client) as found:
        assert found is client
    assert client.submit(abs, -3).result() == 3


def test_an_address_is_connected_to_for_the_time_being(client):
    with open_client(client.scheduler.address) as found:
        assert found is not client
        assert found.submit(abs, -3).result() == 3
    assert found.status == "closed"


def test_the_current_client(client):
    assert current_client() is None
    with client.as_current(), open_client() as found:
        assert found is client
        assert current_client() is client
    assert client.status == "running"


def test_a_task_has_the_client_of_its_worker(client):
    def address():
        with open_client() as found:
            return found.scheduler.address

    assert client.submit(address).result() == client.scheduler.address


def test_there_is_none():
    with (
        pytest.raises(ValueError, match=r"dask is None, and there is no client.*Make"),
        open_client(None, "dask"),
    ):
        pass


@pytest.mark.parametrize("wrong", [3, object(), ["tcp://127.0.0.1:8786"]])
def test_what_is_no_client(wrong):
    with (
        pytest.raises(TypeError, match=r"cluster must be a distributed\.Client.*got"),
        open_client(wrong, "cluster"),
    ):
        pass


def test_the_package_is_not_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"client= needs .* 'clml\[dask\]'"):
        import_distributed("client")
    monkeypatch.delitem(sys.modules, "distributed")
    assert current_client() is None  # and nothing is imported to find out
    assert "distributed" not in sys.modules
