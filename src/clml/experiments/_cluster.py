"""Jobs on the workers of a dask cluster."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ._limits import Outcome, Stopped, run_cell

_POLL_SECONDS = 0.2


def import_distributed() -> Any:
    """Return dask's package for clusters."""
    try:
        import distributed
    except ImportError as error:
        raise ImportError(
            "dask= needs the package distributed: pip install 'clml[dask]'."
        ) from error
    return distributed


@contextmanager
def cluster(address: Any) -> Iterator[tuple[Any, int]]:
    """Yield what runs a job on a cluster, and how many run at a time.

    Parameters
    ----------
    address : str or distributed.Client
        A client is left open.
    """
    distributed = import_distributed()
    is_own = isinstance(address, str)
    client = distributed.Client(address) if is_own else address
    if not isinstance(client, distributed.Client):
        raise TypeError(
            f"dask must be the address of a scheduler or a Client, got {address!r}."
        )
    sent: dict[str, Any] = {}
    lock = threading.Lock()

    def execute(
        job: Mapping[str, Any],
        data: str,
        limits: Mapping[str, Any],
        stop: threading.Event,
    ) -> Outcome:
        with lock:
            # Workers may not see this machine's files: the rows go to them, once.
            if data not in sent:
                sent[data] = client.scatter(Path(data).read_bytes(), hash=False)
        future = client.submit(run_cell, job, sent[data], limits, pure=False)
        while not future.done():
            if stop.is_set():
                future.cancel()
                raise Stopped
            stop.wait(_POLL_SECONDS)
        if future.status == "error":
            # Such as a worker that died again and again.
            error = future.exception()
            words = f"{type(error).__name__} on the cluster: {error}"[:500]
            return Outcome({"status": "failed", "reason": words})
        if future.cancelled():
            raise Stopped
        outcome: Outcome = future.result()
        return outcome

    try:
        yield execute, max(sum(client.nthreads().values()), 1)
    finally:
        if is_own:
            client.close()
