"""Work shared between the caller's thread and a pool of helpers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from threading import Barrier, BrokenBarrierError
from typing import Any, TypeVar

Result = TypeVar("Result")


@contextmanager
def started_pool(n_threads: int) -> Iterator[Executor | None]:
    """Yield threads that have all begun; None where the system has none to spare.

    A pool that starts threads when work comes would fail in the middle of the work.
    """
    with ThreadPoolExecutor(n_threads, thread_name_prefix="clml") as executor:
        together = Barrier(n_threads + 1)
        try:
            for _ in range(n_threads):
                executor.submit(_meet, together)
        except RuntimeError:
            together.abort()
            executor.shutdown(cancel_futures=True)
            yield None
            return
        together.wait()
        yield executor


def _meet(together: Barrier) -> None:
    with suppress(BrokenBarrierError):
        together.wait()


def shared(
    executor: Executor | None, work: Callable[..., Result], *arguments: Iterable[Any]
) -> list[Result]:
    """Return work(a, b, ...) for the first of all arguments, the second, and so on.

    Parameters
    ----------
    executor : concurrent.futures.Executor or None
        The helpers. The caller works too: a pool of n − 1 threads keeps n cores busy.
    work : callable
    *arguments : iterables of the same length

    Examples
    --------
    >>> from clml._support.threads import shared
    >>> shared(None, pow, [2, 3], [10, 2])
    [1024, 9]
    """
    return begin(executor, work, *arguments)()


def begin(
    executor: Executor | None, work: Callable[..., Result], *arguments: Iterable[Any]
) -> Callable[[], list[Result]]:
    """Let the helpers begin; what is returned does the rest, and gives the results.

    Helpers take calls from the front and the caller from the back, so nobody waits
    for more than the end of one call.
    """
    calls = list(zip(*arguments, strict=True))
    if executor is None:
        return lambda: [work(*call) for call in calls]
    futures = [executor.submit(work, *call) for call in calls]

    def finish() -> list[Result]:
        try:
            own = {
                i: work(*calls[i])
                for i in reversed(range(len(calls)))
                if futures[i].cancel()
            }
            return [
                own[i] if i in own else futures[i].result() for i in range(len(calls))
            ]
        finally:
            # After an interrupt no thread may still be writing into our arrays.
            wait([future for future in futures if not future.cancel()])

    return finish
