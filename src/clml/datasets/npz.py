"""Files of arrays (.npz), which are not trusted: no memory is taken on their word."""

from __future__ import annotations

import hashlib
import math
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.paths import open_regular

# Python's reader of other methods takes whatever memory the data ask for.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_LAST_CODE_POINT = 0x10FFFF
# Numbers that are copied at a time for a digest.
_TOGETHER = 1 << 17


def read_arrays(file: Any, largest: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file by their names.

    Parameters
    ----------
    file : path or binary file
    largest : int
        Bytes of all arrays together, at most.

    Returns
    -------
    dict
        Of arrays of numbers and text.

    Raises
    ------
    ValueError
        Whatever is wrong with the content.
    OSError
        If there is no such file, or it cannot be opened.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> from clml.datasets.npz import read_arrays
    >>> file = io.BytesIO()
    >>> np.savez(file, a=np.arange(3))
    >>> read_arrays(file, largest=1000)
    {'a': array([0, 1, 2])}
    >>> read_arrays(file, largest=100)
    Traceback (most recent call last):
    ...
    ValueError: 152 bytes of arrays are more than 100
    """
    try:
        with open_archive(file) as archive:
            members = archive.infolist()
            _check_members(members, largest)
            return {
                member.filename.removesuffix(".npy"): _read_array(archive, member)
                for member in members
            }
    except (ValueError, FileNotFoundError, PermissionError, MemoryError):
        raise
    except Exception as error:  # zipfile, zlib and numpy raise whatever they run into
        raise ValueError(f"{type(error).__name__}: {error}") from error


def arrays_digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return the sha256 of arrays: names, types, shapes and contents.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.datasets.npz import arrays_digest
    >>> one, two = ({"Y": np.eye(2) * k} for k in (1, 2))
    >>> arrays_digest(one) == arrays_digest(dict(one))
    True
    >>> arrays_digest(one) == arrays_digest(two)
    False
    """
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        for rows in _in_order(array):
            digest.update(np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _in_order(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield an array in pieces that are small where they have to be copied."""
    if array.ndim == 0 or array.flags.c_contiguous:
        yield array
        return
    step = max(1, _TOGETHER // max(1, math.prod(array.shape[1:])))
    for start in range(0, len(array), step):
        yield array[start : start + step]


@contextmanager
def open_archive(file: Any) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive, of a path only if a regular file is there."""
    if not isinstance(file, str | os.PathLike):
        with zipfile.ZipFile(file) as archive:
            yield archive
        return
    with open_regular(file) as opened, zipfile.ZipFile(opened) as archive:
        yield archive


def _check_members(members: Sequence[zipfile.ZipInfo], largest: int) -> None:
    size = sum(member.file_size for member in members)
    if size > largest:
        raise ValueError(f"{size:,} bytes of arrays are more than {largest:,}")
    if len({member.filename for member in members}) < len(members):
        raise ValueError("two arrays have one name")
    for member in members:
        if member.compress_type not in _METHODS:
            raise ValueError("arrays must be stored or deflated")


def _read_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """Return an array whose header says how many bytes there are."""
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        if version != (1, 0):
            raise ValueError(f"{member.filename!r} is of version {version} of .npy")
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        n_bytes = math.prod(shape) * dtype.itemsize
        if dtype.kind not in "biufU" or n_bytes != member.file_size - file.tell():
            raise ValueError(
                f"{member.filename!r} is no array of shape {shape} and type {dtype}"
            )
    with archive.open(member) as file:
        array = np.lib.format.read_array(file, allow_pickle=False)
    flat = array.reshape(-1, order="A")
    if dtype.kind == "b" and flat.view(np.uint8).max(initial=0) > 1:
        raise ValueError(f"{member.filename!r} holds what is no truth value")
    if dtype.kind == "U" and dtype.itemsize:
        codes = flat.view(np.dtype(f"{dtype.str[0]}u4"))
        if codes.max(initial=0) > _LAST_CODE_POINT:
            raise ValueError(f"{member.filename!r} holds what is no character")
    return array
