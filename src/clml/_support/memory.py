"""Where memory runs out, less is worked on at once, and the caller is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from .sklearn_compat import warn_user
from .threads import begin

Result = TypeVar("Result")
# What PyTorch and CUDA say where they have no class of their own for it.
_SHORTAGE_WORDS = ("can't allocate memory", "out of memory", "ALLOC_FAILED")


def ran_out(error: BaseException) -> bool:
    """Tell whether an error says that there is no memory left.

    Examples
    --------
    >>> from clml._support.memory import ran_out
    >>> ran_out(MemoryError()), ran_out(RuntimeError("CUDA error: out of memory"))
    (True, True)
    >>> ran_out(ValueError("out of memory"))
    False
    """
    if isinstance(error, MemoryError):
        return True
    # torch.OutOfMemoryError is a RuntimeError too. The words are looked for so that
    # nobody has to import PyTorch for it.
    return isinstance(error, RuntimeError) and (
        type(error).__name__ == "OutOfMemoryError"
        or any(words in str(error) for words in _SHORTAGE_WORDS)
    )


@dataclass
class _Watch:
    """What portions had to be cut, until it is told."""

    open: bool = True
    n_times: int = 0
    cuts: dict[str, tuple[int, int]] = field(default_factory=dict)
    exact: bool = True

    def add(self, unit: str, before: int, after: int, exact: bool) -> None:
        first, least = self.cuts.get(unit, (before, after))
        self.n_times += 1
        self.cuts[unit] = (max(first, before), min(least, after))
        self.exact = self.exact and exact

    def tell(self) -> None:
        if not self.n_times:
            return
        times = "once" if self.n_times == 1 else f"{self.n_times} times"
        sizes = " and ".join(
            f"{after} {unit} instead of {before}"
            for unit, (before, after) in self.cuts.items()
        )
        same = "The results are the same"
        if not self.exact:
            same = "The results agree up to rounding"
        warn_user(
            f"Memory ran out {times}: {sizes} are worked on at once from now on. "
            f"{same}, and take longer."
        )


_watch: ContextVar[_Watch | None] = ContextVar("clml_memory_watch", default=None)


@contextmanager
def warn_once() -> Iterator[None]:
    """Say once, at the end, what of memory ran out meanwhile.

    It holds for portions that are made inside, in this thread. Others warn whenever
    they were cut. An error that ends the block is told instead.

    Examples
    --------
    >>> from clml._support.memory import warn_once
    >>> with warn_once():
    ...     pass  # a fit
    """
    watch = _Watch()
    token = _watch.set(watch)
    try:
        yield
        watch.tell()
    finally:
        watch.open = False
        _watch.reset(token)


class BatchSize:
    """How many are worked on at once: half as many each time that memory runs out.

    Engines that are made from one another share theirs, so that none of them tries
    again what did not fit.

    Parameters
    ----------
    unit : str
        What is counted, for the warning: "candidates", say.
    multiple : int, default=1
        Portions are a multiple of it (the last one is not), and so at least that.
    exact : bool, default=True
        Whether results are the same, to the last bit, whatever is worked on at once.
    release : callable, default=None
        Gives back what can be, before the next attempt.

    Examples
    --------
    >>> import warnings
    >>> from clml._support.memory import BatchSize
    >>> done = []
    >>> def work(start, stop):
    ...     if stop - start > 3:
    ...         raise MemoryError
    ...     done.append((start, stop))
    >>> with warnings.catch_warnings(action="ignore"):
    ...     BatchSize("rows").for_each_batch(8, 100, work)  # warns: 2 instead of 8
    >>> done
    [(0, 2), (2, 4), (4, 6), (6, 8)]
    """

    def __init__(
        self,
        unit: str,
        multiple: int = 1,
        *,
        exact: bool = True,
        release: Callable[[], None] | None = None,
    ):
        self._unit = unit
        self._multiple = multiple
        self._exact = exact
        self._release = release
        self._most: int | None = None
        self._fit_watch = _watch.get()
        self._own_watch = _Watch()

    def size(self, wanted: int) -> int:
        """Return how many to work on at once where so many are wanted."""
        return wanted if self._most is None else min(wanted, self._most)

    def cut(self, size: int) -> bool:
        """Work on half of ``size`` at once from now on; return whether that is less."""
        if size <= self._multiple:
            return False
        half = -(-size // (2 * self._multiple)) * self._multiple
        self._most = half if self._most is None else min(half, self._most)
        self._watch.add(self._unit, size, half, self._exact)
        return True

    def tell(self) -> None:
        """Warn of cuts since the last time, unless the fit around does it."""
        if self._own_watch.n_times:
            told, self._own_watch = self._own_watch, _Watch()
            told.tell()

    def for_each_batch(
        self,
        n: int,
        wanted: int,
        work: Callable[[int, int], object],
        cut_else: Callable[[int], bool] | None = None,
    ) -> None:
        """Call ``work(start, stop)`` on portions of 0 to n, one after the other.

        Parameters
        ----------
        n : int
        wanted : int
            Size of a portion while memory lasts.
        work : callable
            A call that ran out of memory is repeated on less, from its start.
        cut_else : callable, default=None
            Given the size of the portion, tried before that is cut: may cut something
            else instead, and returns whether it did.
        """
        start = 0
        while start < n:
            size = min(self.size(wanted), n - start)
            try:
                work(start, start + size)
            except Exception as error:
                if not ran_out(error):
                    raise
                if not ((cut_else is not None and cut_else(size)) or self.cut(size)):
                    raise MemoryError(
                        f"Memory ran out with {size} {self._unit} at once, and fewer "
                        f"cannot be worked on. First it was said: {error}"
                    ) from error
            else:
                start += size
                continue
            # The error is gone here, and with it what its frames held.
            if self._release is not None:
                self._release()
        self.tell()

    @property
    def _watch(self) -> _Watch:
        watch = self._fit_watch
        return watch if watch is not None and watch.open else self._own_watch


_NOTHING: Any = object()


def start_small(
    executor: Executor | None,
    work: Callable[..., Result],
    *arguments: Iterable[Any],
    missed: Callable[[], object],
) -> Callable[[], list[Result]]:
    """Do what ``_threads.begin`` does; a call that runs out of memory loses nothing.

    The others go on, and what failed is done again by the caller when nobody else is
    at work. ``missed`` is called before, once.
    """
    calls = [list(argument) for argument in arguments]
    if executor is None:
        return begin(None, work, *calls)

    def attempt(*call: Any) -> Result:
        try:
            return work(*call)
        except Exception as error:
            if not ran_out(error):
                raise
            return _NOTHING

    wait_for = begin(executor, attempt, *calls)

    def finish() -> list[Result]:
        found = wait_for()
        failed = [i for i, result in enumerate(found) if result is _NOTHING]
        if failed:
            missed()
        for i in failed:
            found[i] = work(*(argument[i] for argument in calls))
        return found

    return finish
