"""The file: a zip archive of one JSON text and the arrays that it refers to.

Members are stored, not compressed. What comes out of a file is then never larger than
the file, and weights hardly shrink anyway.
"""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from numpy.typing import NDArray

from .._atomic import atomic_path, check_place, sync_folder
from ._npy import read_array, write_array

_STATE = "state.json"
# Parsed JSON takes some 25 times its text.
_LONGEST_STATE = 64 * 2**20
# Room for the header of an array: decides only whether a member needs ZIP64.
_HEADER_ROOM = 2**16


def _array_name(index: int) -> str:
    return f"array{index}.npy"


def write_container(path: Path, state: Any, arrays: Sequence[NDArray]) -> None:
    """Write a file whole or not at all, even on Ctrl-C.

    The same state and arrays give the same bytes.
    """
    text = json.dumps(state, allow_nan=False).encode("ascii")
    if len(text) > _LONGEST_STATE:
        raise ValueError(
            f"What is not in arrays takes {len(text):,} bytes, more than the "
            f"{_LONGEST_STATE:,} that a file may hold."
        )
    check_place(path)
    with atomic_path(path) as temporary:
        with open(temporary, "xb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                # Members without a date of their own: ZipInfo has a fixed one.
                archive.writestr(zipfile.ZipInfo(_STATE), text)
                for index, array in enumerate(arrays):
                    info = zipfile.ZipInfo(_array_name(index))
                    info.file_size = array.nbytes + _HEADER_ROOM
                    with archive.open(info, "w") as member:
                        write_array(member, array)
            file.flush()
            os.fsync(file.fileno())
    sync_folder(path.parent)


class Container:
    """A file open for reading: its state, and each of its arrays once.

    Parameters
    ----------
    file : binary file
        Untrusted. What is wrong with it raises ValueError or one of ``DAMAGE``.
    """

    #: What zipfile raises, apart from ValueError, for files that are no zip archives.
    DAMAGE = (
        zipfile.BadZipFile,
        RuntimeError,  # encryption; NotImplementedError and RecursionError
        EOFError,
        OSError,
        OverflowError,
    )

    def __init__(self, file: IO[bytes]):
        self._archive = zipfile.ZipFile(file)
        self._infos = _check_members(
            self._archive.infolist(), file.seek(0, io.SEEK_END)
        )
        self._untaken = set(range(len(self._infos) - 1))

    def state(self) -> Any:
        """Return what the JSON text says."""
        if self._infos[_STATE].file_size > _LONGEST_STATE:
            raise ValueError(f"{_STATE} has more than {_LONGEST_STATE:,} bytes")
        text = self._archive.read(self._infos[_STATE]).decode("ascii")
        return json.loads(
            text,
            object_pairs_hook=_unique_keys,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )

    def take(self, index: Any) -> NDArray:
        """Return an array by its number; a second time is an error.

        A small file could name one array very often and become large that way.
        """
        if type(index) is not int or index not in self._untaken:
            raise ValueError(f"there is no array {index!r}, or it is used twice")
        self._untaken.remove(index)
        info = self._infos[_array_name(index)]
        with self._archive.open(info) as member:
            return read_array(member, info.file_size)

    def check_all_taken(self) -> None:
        """Refuse a file with arrays that belong to nothing."""
        if self._untaken:
            raise ValueError(f"array {min(self._untaken)} belongs to nothing")


def _check_members(
    infos: Sequence[zipfile.ZipInfo], n_bytes: int
) -> dict[str, zipfile.ZipInfo]:
    """Return the members by name, if they are those of a model and add up."""
    expected = {_STATE, *map(_array_name, range(len(infos) - 1))}
    names = [info.filename for info in infos]
    for name in names:
        if name not in expected:
            raise ValueError(f"the member {name[:100]!r} is unknown")
    if len(set(names)) < len(expected):
        missing = min(expected - set(names))
        raise ValueError(f"the member {missing!r} is missing")
    for info in infos:
        if (
            info.compress_type != zipfile.ZIP_STORED
            or info.compress_size != info.file_size
        ):
            raise ValueError(
                f"the member {info.filename!r} is compressed; models are stored as "
                "they are"
            )
    if sum(info.file_size for info in infos) > n_bytes:
        raise ValueError(f"its members are larger than the file, {n_bytes:,} bytes")
    return dict(zip(names, infos, strict=True))


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a JSON object has a key twice")
    return found


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits[:40]} is too large for a float")
    return value
