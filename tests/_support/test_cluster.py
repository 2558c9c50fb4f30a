"""The cluster that is meant: a client, an address, the one that was made last."""

import socket
import sys
from types import SimpleNamespace

import pytest

from clml._support.cluster import (
    current_client,
    import_distributed,
    open_client,
    told_if_closed,
)

dask = pytest.importorskip("dask")
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
        assert current_client() is None
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


def test_a_client_that_is_closed(client):
    client.close()
    with (
        pytest.raises(RuntimeError, match="cluster is a dask client that is closed"),
        open_client(client, "cluster"),
    ):
        pass


def assert_no_traces():
    """Assert that no client stands for the cluster that later work goes to."""
    assert current_client() is None
    assert dask.config.get("scheduler", None) is None


def test_nobody_listens():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody else will
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        with (
            dask.config.set({"distributed.comm.timeouts.connect": "200ms"}),
            pytest.raises(OSError, match=rf"client is '{address}', where no scheduler"),
            open_client(address),
        ):
            pass
    assert_no_traces()


@pytest.mark.parametrize("wrong", ["nowhere", "nix://127.0.0.1:8786"])
def test_what_is_no_address(wrong):
    with (
        pytest.raises(ValueError, match=rf"client must be the address.*got '{wrong}':"),
        open_client(wrong),
    ):
        pass
    assert_no_traces()


def test_errors_of_a_closed_client(client):
    """Whatever dask says of it."""
    with pytest.raises(OSError, match="of one's own"), told_if_closed(client):
        raise OSError("of one's own")
    client.close()
    with pytest.raises(RuntimeError, match="client was closed while") as told:
        with told_if_closed(client):
            client.nthreads()
    assert isinstance(told.value.__cause__, AttributeError)
    # Nobody but the user ends a run by an interrupt.
    with pytest.raises(KeyboardInterrupt), told_if_closed(client):
        raise KeyboardInterrupt


def test_a_client_that_looks_for_its_scheduler():
    lost = SimpleNamespace(status="connecting")
    with pytest.raises(RuntimeError, match="its scheduler is gone"):
        with told_if_closed(lost):
            raise OSError("Timed out")
    with pytest.raises(ValueError, match="own"), told_if_closed(lost):
        raise ValueError("of one's own")
