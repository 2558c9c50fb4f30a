"""What a path is, and what is said of a file that cannot be used."""

from __future__ import annotations

import os

_LONGEST_MESSAGE = 600

PathLike = str | os.PathLike[str]


def fail(path: PathLike, message: str, line: int | None = None) -> ValueError:
    """Return the error of a file that cannot be read, with the place."""
    where = f"{path}, line {line}" if line is not None else f"{path}"
    if len(message) > _LONGEST_MESSAGE:  # names in a file may have any length
        half = _LONGEST_MESSAGE // 2
        message = f"{message[:half]} ... {message[-half:]}"
    return ValueError(f"{where}: {message}")
