"""The file: a zip archive of one JSON text and the arrays that it refers to.

Members are stored, not compressed. What comes out of a file is then never larger than
the file, and weights hardly shrink anyway.

Every byte that is read is covered by SHA-256: the JSON text lists the digests of the
arrays, and the comment of the archive holds the digest of the text. Archives without a
comment are of the first version of the format, which had the checksums of zip alone.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from numpy.typing import NDArray

from .._support.atomic import atomic_file
from .._support.json_text import check_json_size
from ._npy import read_array, write_array

_STATE = "state.json"
_DIGESTS = "sha256"
_DIGEST = re.compile("[0-9a-f]{64}")
_COMMENT = re.compile(b"sha256 of state.json: ([0-9a-f]{64})")
# Names of a million labels and as many features take half of it.
_LONGEST_STATE = 32 * 2**20
# Room for the header of an array: decides only whether a member needs ZIP64.
_HEADER_ROOM = 2**16


def _array_name(index: int) -> str:
    return f"array{index}.npy"


def write_container(
    path: Path, state: Mapping[str, Any], arrays: Sequence[NDArray]
) -> None:
    """Write a file whole or not at all, even on Ctrl-C.

    The same state and arrays give the same bytes.
    """
    # All digests have one length: this text is as long as the one to come.
    _check_state_text(_state_text(state, ["0" * 64] * len(arrays)))
    with (
        atomic_file(path) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive,
    ):
        digests = [
            _write_member(archive, _array_name(index), array)
            for index, array in enumerate(arrays)
        ]
        text = _state_text(state, digests)
        # Members without a date of their own: ZipInfo has a fixed one.
        archive.writestr(zipfile.ZipInfo(_STATE), text)
        digest = hashlib.sha256(text).hexdigest()
        archive.comment = f"sha256 of {_STATE}: {digest}".encode("ascii")


def _check_state_text(text: bytes) -> None:
    if len(text) > _LONGEST_STATE:
        raise ValueError(
            f"What is not in arrays takes {len(text):,} bytes, more than the "
            f"{_LONGEST_STATE:,} that a file may hold."
        )
    check_json_size(text, len(text))


def _state_text(state: Mapping[str, Any], digests: Sequence[str]) -> bytes:
    return json.dumps({**state, _DIGESTS: digests}, allow_nan=False).encode("ascii")


def _write_member(archive: zipfile.ZipFile, name: str, array: NDArray) -> str:
    """Write an array; return the digest of what was written."""
    info = zipfile.ZipInfo(name)
    info.file_size = array.nbytes + _HEADER_ROOM
    with archive.open(info, "w") as member:
        hashed = _Hashed(member)
        write_array(hashed, array)  # type: ignore[arg-type]
    return hashed.digest


class _Hashed:
    """A file that hashes what is read or written."""

    def __init__(self, file: IO[bytes]):
        self._file = file
        self._hash = hashlib.sha256()

    def read(self, size: int) -> bytes:
        content = self._file.read(size)
        self._hash.update(content)
        return content

    def write(self, content: bytes) -> int:
        self._hash.update(content)
        return self._file.write(content)

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()


class Container:
    """A file open for reading: its state, and each of its arrays once.

    Parameters
    ----------
    file : binary file
        Untrusted. What is wrong with it raises ValueError or one of ``DAMAGE``.

    Attributes
    ----------
    has_checksums : bool
        Whether the file says what its members must hash to. The state is then to be
        read before the arrays.
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
        self._n_bytes = file.seek(0, io.SEEK_END)
        self._infos = _check_members(self._archive.infolist(), self._n_bytes)
        self._untaken = set(range(len(self._infos) - 1))
        self.has_checksums = bool(self._archive.comment)
        self._digests: list[str] | None = None

    def state(self) -> Any:
        """Return what the JSON text says, without the checksums."""
        if self._infos[_STATE].file_size > _LONGEST_STATE:
            raise ValueError(f"{_STATE} has more than {_LONGEST_STATE:,} bytes")
        text = self._archive.read(self._infos[_STATE])
        if self.has_checksums:
            _check_comment(self._archive.comment, text)
        check_json_size(text, self._n_bytes)
        state = json.loads(
            text.decode("ascii"),
            object_pairs_hook=_unique_keys,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
        if self.has_checksums:
            self._digests = _take_digests(state, len(self._infos) - 1)
        return state

    def take(self, index: Any) -> NDArray:
        """Return an array by its number; a second time is an error.

        A small file could name one array very often and become large that way.
        """
        if type(index) is not int or index not in self._untaken:
            raise ValueError(f"there is no array {index!r}, or it is used twice")
        self._untaken.remove(index)
        name = _array_name(index)
        info = self._infos[name]
        with self._archive.open(info) as member:
            hashed = _Hashed(member)
            array = read_array(hashed, info.file_size)  # type: ignore[arg-type]
        if self._digests is not None and hashed.digest != self._digests[index]:
            raise ValueError(f"the checksum of {name} is wrong: the file was changed")
        return array

    def check_all_taken(self) -> None:
        """Refuse a file with arrays that belong to nothing."""
        if self._untaken:
            raise ValueError(f"array {min(self._untaken)} belongs to nothing")


def _check_comment(comment: bytes, text: bytes) -> None:
    found = _COMMENT.fullmatch(comment)
    if found is None:
        raise ValueError("the comment of the archive is not a checksum")
    if hashlib.sha256(text).hexdigest().encode("ascii") != found[1]:
        raise ValueError(f"the checksum of {_STATE} is wrong: the file was changed")


def _take_digests(state: Any, n_arrays: int) -> list[str]:
    digests = state.pop(_DIGESTS, None) if isinstance(state, dict) else None
    if (
        not isinstance(digests, list)
        or len(digests) != n_arrays
        or not all(isinstance(d, str) and _DIGEST.fullmatch(d) for d in digests)
    ):
        raise ValueError(f"{_STATE} does not list a checksum for each array")
    return digests


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
