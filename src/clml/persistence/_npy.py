"""Arrays of plain numbers and text as .npy members of a file.

Written as numpy writes them, so that ``numpy.load`` reads them too. Read by a parser
that knows these headers only: no object is made but an array of a plain type, and no
memory is taken before its size agrees with that of the member.
"""

from __future__ import annotations

import math
import re
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

_MAGIC = b"\x93NUMPY\x01\x00"
_NUMBER = re.compile(r"\|(?:b1|[iu]1)|[<>](?:[iu][248]|f[248])")
_TEXT = re.compile(r"[<>]U[1-9][0-9]{0,5}")
_HEADER = re.compile(
    rb"\{'descr': '([^']{1,16})', 'fortran_order': (True|False), "
    rb"'shape': \(((?:[0-9]{1,19}, )*[0-9]{1,19},?|)\), \} *\n"
)
_LONGEST_HEADER = 2**12
_CHUNK = 2**20
_LAST_CODE_POINT = 0x10FFFF


def is_number(dtype: np.dtype) -> bool:
    """Return whether entries are booleans, integers or floats of up to 8 bytes."""
    return _NUMBER.fullmatch(dtype.str) is not None


def is_plain(dtype: np.dtype) -> bool:
    """Return whether entries are numbers or text of fixed width."""
    return is_number(dtype) or _TEXT.fullmatch(dtype.str) is not None


def plain_dtype(name: Any) -> np.dtype:
    """Return the type that a file names, such as "<f8"; only plain ones.

    Examples
    --------
    >>> from clml.persistence._npy import plain_dtype
    >>> plain_dtype("<f4")
    dtype('float32')
    >>> plain_dtype("|O")
    Traceback (most recent call last):
    ...
    ValueError: '|O' is not a type of numbers or text of fixed width
    """
    if not isinstance(name, str) or not (
        _NUMBER.fullmatch(name) or _TEXT.fullmatch(name)
    ):
        raise ValueError(f"{name!r} is not a type of numbers or text of fixed width")
    return np.dtype(name)


def write_array(file: IO[bytes], array: NDArray) -> None:
    """Write an array of a plain type."""
    np.lib.format.write_array(file, array, version=(1, 0), allow_pickle=False)


def read_array(file: IO[bytes], n_bytes: int) -> NDArray:
    """Read an array from a member of so many bytes."""
    start = file.read(len(_MAGIC) + 2)
    if len(start) < len(_MAGIC) + 2 or not start.startswith(_MAGIC):
        raise ValueError("a member does not begin as an array of .npy version 1.0")
    n_header = int.from_bytes(start[-2:], "little")
    found = _HEADER.fullmatch(file.read(n_header))
    if found is None or n_header > _LONGEST_HEADER:
        raise ValueError("the header of an array is not one of a plain array")
    dtype = plain_dtype(found[1].decode("latin-1"))
    shape = tuple(int(n) for n in found[3].replace(b",", b" ").split())
    n_content = n_bytes - len(start) - n_header
    if math.prod(shape) * dtype.itemsize != n_content:
        raise ValueError(
            f"an array of shape {shape} and type {dtype} does not take the "
            f"{n_content} bytes that there are"
        )
    flat = _read_flat(file, math.prod(shape), dtype)
    try:
        return flat.reshape(shape, order="F" if found[2] == b"True" else "C")
    except OverflowError as error:
        raise ValueError(f"the shape {shape} of an array is too large") from error


def _read_flat(file: IO[bytes], size: int, dtype: np.dtype) -> NDArray:
    flat: NDArray = np.empty(size, dtype)
    content = memoryview(flat.view(np.uint8))  # type: ignore[arg-type]
    for start in range(0, len(content), _CHUNK):
        place = content[start : start + _CHUNK]
        piece = file.read(len(place))
        if len(piece) < len(place):
            raise ValueError("an array ends too early")
        place[:] = piece
    if dtype.kind == "b" and flat.view(np.uint8).max(initial=0) > 1:
        raise ValueError("an array of booleans holds bytes other than 0 and 1")
    if dtype.kind == "U":
        codes = flat.view(np.dtype(f"{dtype.str[0]}u4"))
        if codes.max(initial=0) > _LAST_CODE_POINT:
            raise ValueError("an array of text holds what is no character")
    return flat
