"""Members' epochs on the workers of a dask cluster.

An epoch of a member is a function of values, so it does not matter who runs it. The
rows go to the workers once; members, which are some megabytes at most, go there and
come back every epoch.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from itertools import cycle
from typing import Any

from .._support.cluster import told_if_closed
from ..engine import single_threaded_blas

# Rows are sent this often when workers die that hold them.
_ATTEMPTS = 10


def member_epoch(epoch: Callable[..., Any], number: int, member: Any) -> Any:
    """Run an epoch of a member on a worker, with the bits of any other."""
    with single_threaded_blas():
        return epoch(number, member)


class ClusterEpochs:
    """Runs the epochs of members on a cluster: a ``RunAll``.

    Whatever becomes of the workers, the members that come back are those that a fit
    in one process would have. An epoch counts as a whole: an interrupt leaves all
    members as they were.

    Parameters
    ----------
    client : distributed.Client
        Which must stay open meanwhile.
    """

    def __init__(self, client: Any):
        self._client = client
        self._epoch: Any = None
        # A future of the epoch for each worker. Of one future for all of them the
        # cluster would keep a single copy whenever they rest.
        self._copies: dict[str, Any] = {}

    def __call__(
        self, epoch: Callable[..., Any], numbers: Sequence[int], members: Sequence[Any]
    ) -> list[Any]:
        """Return ``epoch(number, member)`` for each of them; members stay as given."""
        with told_if_closed(self._client):
            return self._run_all(epoch, numbers, members)

    def _run_all(
        self, epoch: Callable[..., Any], numbers: Sequence[int], members: Sequence[Any]
    ) -> list[Any]:
        found: dict[int, Any] = {}
        lost: Exception | None = None
        for _ in range(_ATTEMPTS):
            missing = {
                number: member
                for number, member in zip(numbers, members, strict=True)
                if number not in found
            }
            try:
                places = self._places(epoch, len(missing))
            except (OSError, KeyError) as error:  # of a worker that died meanwhile
                lost = error
                continue
            found |= self._run(places, missing)
            if len(found) == len(numbers):
                return [found[number] for number in numbers]
        raise RuntimeError(
            f"The cluster had no worker that kept the rows, or lost them, {_ATTEMPTS} "
            "times in one epoch. The workers' logs may say why; often it is a lack of "
            "memory."
        ) from lost

    def _places(self, epoch: Callable[..., Any], n_members: int) -> list[Any]:
        """Return futures of the epoch, one a thread; workers without it get it."""
        client = self._client
        if epoch is not self._epoch:
            self._epoch, self._copies = epoch, {}
        threads = client.nthreads()
        # The first threads of all workers, then their second ones, and so on.
        order = sorted((i, worker) for worker, n in threads.items() for i in range(n))
        wanted = [worker for _, worker in order[:n_members]]
        copies = {
            worker: copy
            for worker, copy in self._copies.items()
            if worker in wanted and copy.status in ("finished", "pending")
        }
        # One by one, not by tasks that are restricted to a worker: these would wait for
        # one that has died, if no other was there at that moment.
        for worker in dict.fromkeys(wanted):
            if worker not in copies:
                copies[worker] = client.scatter(epoch, workers=[worker], hash=False)
        self._copies = copies
        if not wanted:  # nobody is there: it waits for somebody
            return [client.scatter(epoch, hash=False)]
        return [copies[worker] for worker in wanted]

    def _run(self, places: list[Any], members: dict[int, Any]) -> dict[int, Any]:
        """Return the members that were trained; workers took the others with them."""
        client = self._client
        with warnings.catch_warnings():
            # Of large members: they are other ones every epoch.
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            futures = [
                client.submit(member_epoch, place, number, member, pure=False)
                for place, (number, member) in zip(cycle(places), members.items())
            ]
        try:
            with suppress(CancelledError):
                return dict(zip(members, client.gather(futures), strict=True))
            found = {}
            for number, future in zip(members, futures, strict=True):
                with suppress(CancelledError):
                    found[number] = future.result()
            return found
        except BaseException:
            # Nobody needs the others. One that runs comes to its end, unheard.
            with suppress(Exception):
                client.cancel(futures)
            raise
