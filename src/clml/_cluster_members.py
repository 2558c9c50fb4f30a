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
from typing import Any

from .engine import single_threaded_blas

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
        # An epoch, and the future that stands for it on the cluster.
        self._sent: tuple[Any, Any] | None = None

    def __call__(
        self, epoch: Callable[..., Any], numbers: Sequence[int], members: Sequence[Any]
    ) -> list[Any]:
        """Return ``epoch(number, member)`` for each of them; members stay as given."""
        found: dict[int, Any] = {}
        lost: OSError | None = None
        for _ in range(_ATTEMPTS):
            missing = {
                number: member
                for number, member in zip(numbers, members, strict=True)
                if number not in found
            }
            try:
                there = self._there(epoch)
            except OSError as error:  # of a worker that died meanwhile, or of no worker
                lost = error
                continue
            found |= self._run(there, missing)
            if len(found) == len(numbers):
                return [found[number] for number in numbers]
        raise RuntimeError(
            f"The cluster had no worker that kept the rows, or lost them, {_ATTEMPTS} "
            "times in one epoch. The workers' logs may say why; often it is a lack of "
            "memory."
        ) from lost

    def _there(self, epoch: Callable[..., Any]) -> Any:
        """Return the epoch on the cluster; it is sent if nobody there has it."""
        if (
            self._sent is None
            or self._sent[0] is not epoch
            or self._sent[1].status != "finished"
        ):
            there = self._client.scatter(epoch, broadcast=True, hash=False)
            self._sent = (epoch, there)
        return self._sent[1]

    def _run(self, there: Any, members: dict[int, Any]) -> dict[int, Any]:
        """Return the members that were trained; workers took the others with them."""
        client = self._client
        with warnings.catch_warnings():
            # Of large members: they are other ones every epoch.
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            futures = [
                client.submit(member_epoch, there, number, member, pure=False)
                for number, member in members.items()
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
