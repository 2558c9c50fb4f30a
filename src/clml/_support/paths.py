"""What a path is, and what is said of a file that cannot be used."""

from __future__ import annotations

import errno
import os
import stat
from typing import IO

_LONGEST_MESSAGE = 600

PathLike = str | os.PathLike[str]


def fail(path: PathLike, message: str, line: int | None = None) -> ValueError:
    """Return the error of a file that cannot be read, with the place."""
    where = f"{path}, line {line}" if line is not None else f"{path}"
    if len(message) > _LONGEST_MESSAGE:  # names in a file may have any length
        half = _LONGEST_MESSAGE // 2
        message = f"{message[:half]} ... {message[-half:]}"
    return ValueError(f"{where}: {message}")


def open_regular(path: PathLike, flags: int = os.O_RDONLY) -> IO[bytes]:
    """Open a regular file; whatever else has that name is refused, never waited for.

    A pipe in the folder of a stranger would have its reader wait for ever, and a device
    may give bytes without end.

    Parameters
    ----------
    path : str or path
        A link is followed, unless ``flags`` say otherwise.
    flags : int, default=os.O_RDONLY
        As :func:`os.open` takes them: for reading, or ``os.O_APPEND`` and others.

    Returns
    -------
    binary file

    Raises
    ------
    ValueError
        If it is a pipe, a device or a socket.
    OSError
        If it cannot be opened; IsADirectoryError for a folder.

    Examples
    --------
    >>> from clml._support.paths import open_regular
    >>> open_regular("/dev/null")
    Traceback (most recent call last):
    ...
    ValueError: /dev/null: expected a regular file, got a device.
    """
    path = os.fspath(path)
    try:
        _check_regular(path, os.stat(path).st_mode)  # opening alone may do something
    except FileNotFoundError:
        if not flags & os.O_CREAT:
            raise
    # There are no such flags on Windows, nor names of pipes among its files.
    flags |= getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, 0o666)
    try:
        # Another file may have taken the name meanwhile.
        _check_regular(path, os.fstat(descriptor).st_mode)
        return os.fdopen(descriptor, "ab" if flags & os.O_APPEND else "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _check_regular(path: str, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(mode):
        kinds = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
        found = kinds.get(stat.S_IFMT(mode), "a device")
        raise fail(path, f"expected a regular file, got {found}.")
