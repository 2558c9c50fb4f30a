"""Checkpoints: the last two states of a run, in a folder that it owns.

A state is written under a new number and takes its name when it is on the disk; then
what is older than the one before it is removed. Whenever a run is killed, one complete
state is there.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from .._support.atomic import sweep_unfinished
from .._support.fingerprint import canonical
from .._support.paths import PathLike
from .._support.sklearn_compat import warn_user
from .file import FileKind, read_file, write_file

#: Raised when a run would go on differently from a state that was written before.
KIND = FileKind("clml checkpoint", 1, holds_objects=False)
_NAME = re.compile(r"checkpoint-([0-9]{10})\.clml")
_ENTRIES = {"identity", "state"}


class Checkpoint:
    """Where a fit lays down its state, and from where it goes on.

    Parameters
    ----------
    folder : str or path
        Made if it is not there. Files of other names in it are left alone.
    every : float
        Seconds between two states; 0 writes every one that is offered.
    identity : mapping of str to (mapping of str to JSON values)
        What a state must have in common with a fit that goes on from it, by kind:
        ``{"settings": {"max_epochs": 100}, "data": {"X": "9f86…"}}``.

    Examples
    --------
    >>> import tempfile
    >>> from clml.persistence.checkpoint import Checkpoint
    >>> identity = {"settings": {"max_epochs": 100}, "data": {"X": "9f86"}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Checkpoint(folder, 0, identity).offer(lambda: {"epoch": 7})
    ...     Checkpoint(folder, 0, identity).newest()
    {'epoch': 7}
    """

    def __init__(
        self,
        folder: PathLike,
        every: float,
        identity: Mapping[str, Mapping[str, Any]],
    ):
        self.folder = Path(folder)
        self._every = every
        self._identity = {kind: dict(values) for kind, values in identity.items()}
        # A clock that nobody sets: neither backwards nor forwards.
        self._last_written = time.monotonic()
        self._told_of_failure = False
        self._last_good: int | None = None
        self._check_folder()

    def newest(self) -> Any:
        """Return the newest state that can be read; None if there is none.

        A damaged state is left alone, with a warning, where the one before it can be
        read. ValueError if none can, or if it belongs to another fit.
        """
        failure: Exception | None = None
        for number, path in reversed(self._files()):
            try:
                content = read_file(path, KIND)
                _check_entries(path, content)
            except (OSError, ValueError) as error:
                failure = failure or error
                continue
            if failure is not None:
                warn_user(
                    f"A checkpoint could not be read, so the fit goes on from the one "
                    f"before it, number {number}: {failure}"
                )
            self._check_identity(content["identity"])
            self._last_good = number
            return content["state"]
        if failure is not None:
            raise ValueError(
                f"checkpoint={str(self.folder)!r} holds no state that can be read. "
                "Remove it to start anew, or choose another folder. "
                f"{failure}"
            ) from failure
        return None

    def offer(self, state: Callable[[], Any], now: bool = False) -> None:
        """Write a state if it is time to, or now.

        A state that cannot be written (a full disk, a folder that is gone) is a
        warning, the first time: the states before it stay, and the run goes on.

        Parameters
        ----------
        state : callable
            Returns the state; called only if it is to be written.
        now : bool, default=False
            Whether to write it in any case.
        """
        if not now and time.monotonic() - self._last_written < self._every:
            return
        try:
            self._write(state)
        except (OSError, MemoryError) as error:
            if not self._told_of_failure:
                warn_user(
                    f"A state could not be written to checkpoint={str(self.folder)!r}, "
                    f"and the fit goes on without: {error!r}. The states before it are "
                    "as they were."
                )
            self._told_of_failure = True
        self._last_written = time.monotonic()

    def _write(self, state: Callable[[], Any]) -> None:
        files = self._files()
        number = files[-1][0] + 1 if files else 1
        path = self.folder / f"checkpoint-{number:010d}.clml"
        write_file(path, KIND, {"identity": self._identity, "state": state()})
        # Two stay: this one, and the last one before it that is known to be good.
        for old, older in files:
            if old != self._last_good:
                with suppress(OSError):
                    older.unlink()
        self._last_good = number

    def _files(self) -> list[tuple[int, Path]]:
        """Return the states by their numbers, oldest first."""
        found = [
            (int(match[1]), self.folder / name)
            for name in os.listdir(self.folder)
            if (match := _NAME.fullmatch(name))
        ]
        return sorted(found)

    def _check_folder(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise NotADirectoryError(
                f"checkpoint must be a folder, got the file {str(self.folder)!r}."
            ) from None
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise PermissionError(
                "checkpoint must be a folder that can be written to, got "
                f"{str(self.folder)!r}."
            )
        sweep_unfinished(self.folder)

    def _check_identity(self, found: Mapping[str, Mapping[str, Any]]) -> None:
        differences = [
            difference
            for kind, values in self._identity.items()
            for before in [found.get(kind, {})]
            for name in sorted({*before, *values})
            for difference in _differences(
                kind, name, before.get(name), values.get(name)
            )
        ]
        if differences:
            raise ValueError(
                f"checkpoint={str(self.folder)!r} belongs to another fit: "
                f"{'; '.join(differences)}. Choose another folder, or remove this one "
                "to start anew."
            )


def _text(value: Any) -> str:
    """Return what is compared: the order of keys does not matter.

    1 is not 1.0, of which one may mean a number of rows and the other all of them.
    Anything else that a file may hold, of which some cannot be compared, as it shows.
    """
    try:
        return canonical(value)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def _differences(kind: str, name: str, before: Any, now: Any) -> Iterator[str]:
    """Say what differs, and where in an estimator inside of an estimator."""
    if _text(before) == _text(now):
        return
    tables = isinstance(before, dict) and isinstance(now, dict)
    if kind == "settings" and tables and before.keys() == now.keys():
        for part in before:
            inner = name if part == "settings" else f"{name}.{part}"
            yield from _differences(kind, inner, before[part], now[part])
    else:
        yield _difference(kind, name, before, now)


def _difference(kind: str, name: str, before: Any, now: Any) -> str:
    owner, _, part = name.rpartition(".")
    if owner and part == "code":
        return f"{owner} has other code"
    if owner and part in ("state", "sha256"):
        return f"{owner} holds other values"
    if kind == "data":
        if None in (before, now):
            had, has = ("was" if d else "was not" for d in (before, now))
            return f"{name} {had} given there and {has.replace('was', 'is')} here"
        return f"{name} holds other values"
    return f"{name} was {_shortened(before)} there and is {_shortened(now)} here"


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


def _check_entries(path: Path, content: Any) -> None:
    good = (
        isinstance(content, dict)
        and set(content) == _ENTRIES
        and isinstance(content["identity"], dict)
        and all(isinstance(values, dict) for values in content["identity"].values())
    )
    if not good:
        raise ValueError(f"{path}: it holds no state of a fit.")
