"""The dask cluster that work is sent to."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def import_distributed(argument: str = "dask") -> Any:
    """Return dask's package for clusters; an argument asks for it."""
    try:
        import distributed
    except ImportError as error:
        raise ImportError(
            f"{argument}= needs the package distributed: pip install 'clml[dask]'."
        ) from error
    return distributed


def current_client() -> Any:
    """Return the client that was made last, or that of this task; None of none."""
    if "distributed" not in sys.modules:  # nobody can have made one
        return None
    try:
        return import_distributed().get_client()
    except ValueError:
        return None


def _in_task(distributed: Any) -> bool:
    """Tell whether this runs on a worker, as a task of it."""
    try:
        distributed.get_worker()
    except ValueError:
        return False
    return True


@contextmanager
def open_client(client: Any = None, argument: str = "client") -> Iterator[Any]:
    """Yield a client of a cluster.

    Parameters
    ----------
    client : distributed.Client, str or None, default=None
        A client, which is left open; the address of a scheduler, to which one is
        opened for the time being; None for the client that was made last, or the one
        of the task that this runs in.
    argument : str, default="client"
        What the user calls it.
    """
    distributed = import_distributed(argument)
    if isinstance(client, str):
        with distributed.Client(client) as own:
            yield own
        return
    if client is None and _in_task(distributed):
        # Its thread is let go of, or those that wait would leave none to work.
        with distributed.worker_client() as own:
            yield own
        return
    if client is None:
        client = current_client()
        if client is None:
            raise ValueError(
                f"{argument} is None, and there is no client of a dask cluster yet. "
                "Make one, such as distributed.Client() for this machine, or give "
                "the address of a scheduler."
            )
    if not isinstance(client, distributed.Client):
        raise TypeError(
            f"{argument} must be a distributed.Client, the address of a scheduler or "
            f"None, got {client!r}."
        )
    yield client
