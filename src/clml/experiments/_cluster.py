"""Jobs on the workers of a dask cluster."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .._support.cluster import import_distributed, open_client, told_if_closed
from ._limits import Outcome, Stopped, run_cell

_POLL_SECONDS = 0.2
# How often a worker asks the scheduler whether its job is to be ended.
_ASK_SECONDS = 1.0
# A job is sent this often when workers die that hold its rows.
_ATTEMPTS = 4


class _Asked:
    """A flag of the scheduler, which is asked now and then only."""

    def __init__(self, name: str) -> None:
        self._event = import_distributed().Event(name)
        self._asked = time.monotonic()

    def is_set(self) -> bool:
        if time.monotonic() - self._asked < _ASK_SECONDS:
            return False
        self._asked = time.monotonic()
        return bool(self._event.is_set())


def _run_there(
    job: Mapping[str, Any], data: bytes, limits: Mapping[str, Any], stop: str
) -> Outcome:
    """Run a job on a worker: a task that runs does not end by being cancelled."""
    return run_cell(job, data, limits, _Asked(stop))


@contextmanager
def cluster(address: Any) -> Iterator[tuple[Any, int]]:
    """Yield what runs a job on a cluster, and how many run at a time.

    Parameters
    ----------
    address : str or distributed.Client
        A client is left open.
    """
    distributed = import_distributed("dask")
    if not isinstance(address, str | distributed.Client):
        raise TypeError(
            f"dask must be the address of a scheduler or a Client, got {address!r}."
        )
    with open_client(address, "dask") as client:
        with told_if_closed(client):
            n_threads = sum(client.nthreads().values())
            execute = _executor(client)
        yield execute, max(n_threads, 1)


def _executor(client: Any) -> Callable[..., Outcome]:
    """Return what runs a job on the cluster of a client."""
    sent: dict[str, Any] = {}
    lock = threading.Lock()
    stopped = import_distributed().Event(client=client)

    def rows_of(data: str, lost: Any) -> Any:
        """Return the rows on the cluster; workers that die take theirs with them."""
        with lock:
            if sent.get(data) is lost:
                # Workers may not see this machine's files: the rows go to them, once.
                sent[data] = client.scatter(Path(data).read_bytes(), hash=False)
            return sent[data]

    def execute(
        job: Mapping[str, Any],
        data: str,
        limits: Mapping[str, Any],
        stop: threading.Event,
    ) -> Outcome:
        with told_if_closed(client):
            return attempted(job, data, limits, stop)

    def attempted(
        job: Mapping[str, Any],
        data: str,
        limits: Mapping[str, Any],
        stop: threading.Event,
    ) -> Outcome:
        rows = None
        for _ in range(_ATTEMPTS):
            rows = rows_of(data, rows)
            future = client.submit(
                _run_there, job, rows, limits, stopped.name, pure=False
            )
            while not future.done():
                if stop.is_set():
                    stopped.set()
                    future.cancel()
                    raise Stopped
                stop.wait(_POLL_SECONDS)
            if future.status == "finished":
                outcome: Outcome = future.result()
                return outcome
            if stop.is_set():
                raise Stopped
            if future.status == "error":
                # Such as a worker that died again and again.
                error = future.exception()
                words = f"{type(error).__name__} on the cluster: {error}"[:500]
                return Outcome({"status": "failed", "reason": words})
            # Otherwise nobody but the cluster gave it up: its rows are lost.
        words = f"the cluster lost the rows of the job {_ATTEMPTS} times"
        return Outcome({"status": "failed", "reason": words})

    return execute
