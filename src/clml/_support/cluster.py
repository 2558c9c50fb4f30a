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


def _is_closed(client: Any) -> bool:
    return getattr(client, "status", None) in ("closing", "closed")


@contextmanager
def told_if_closed(client: Any) -> Iterator[None]:
    """Tell, where work on a cluster fails, that the client is closed.

    Of a closed client dask says whatever came up first, such as an attribute that is
    None, or a task that was cancelled.
    """
    try:
        yield
    except Exception as error:
        # One that has lost its scheduler looks for it for a while before it is closed.
        looks = getattr(client, "status", None) == "connecting"
        if not (_is_closed(client) or (looks and isinstance(error, OSError))):
            raise
        raise RuntimeError(
            "The dask client was closed while the work on its cluster was going on: by "
            "close() in another thread or at the end of a with block, or because its "
            "scheduler is gone."
        ) from error


def _connected(distributed: Any, address: str, argument: str) -> Any:
    """Return a client of the scheduler at an address."""
    try:
        # It is ours alone: dask would keep one as everybody's that never got there.
        return distributed.Client(address, set_as_default=False)
    except ValueError as error:
        raise ValueError(
            f"{argument} must be the address of a scheduler, such as "
            f"'tcp://127.0.0.1:8786', got {address!r}: {error}."
        ) from error
    except OSError as error:
        raise OSError(
            f"{argument} is {address!r}, where no scheduler answers. How long dask "
            f"waits for one is its setting distributed.comm.timeouts.connect. ({error})"
        ) from error


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
        with _connected(distributed, client, argument) as own:
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
    if _is_closed(client):
        raise RuntimeError(
            f"{argument} is a dask client that is closed, or whose scheduler is gone. "
            "Make another one."
        )
    yield client
