"""Arrays in memory or in mapped files, cut into partitions without a copy."""

from __future__ import annotations

import math
import mmap
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .files import fail
from .plain_rows import Rows, is_pandas, plain_rows


@dataclass(frozen=True)
class MappedPiece:
    """A piece of an array in a file: where it lies, not what it holds.

    Attributes
    ----------
    path : str
    offset : int
        Of the first item, in bytes.
    dtype : str
    shape, strides : tuples of int
        Strides in bytes.
    """

    path: str
    offset: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def read(self) -> NDArray[Any]:
        """Return the piece as an array of its own: no page stays mapped."""
        dtype, count = np.dtype(self.dtype), math.prod(self.shape)
        if not count:
            return np.empty(self.shape, dtype)
        try:
            if self.strides == _row_strides(self.shape, dtype.itemsize):
                flat = np.fromfile(self.path, dtype, count, offset=self.offset)
                return flat.reshape(self.shape)  # refused of a file that is too short
            return self._copied(dtype)
        except ValueError as error:
            raise fail(self.path, f"the mapped array is not there ({error}).") from None

    def _copied(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        reach = [
            (length - 1) * step
            for length, step in zip(self.shape, self.strides, strict=True)
        ]
        before = sum(min(step, 0) for step in reach)
        length = sum(map(abs, reach)) + dtype.itemsize
        window = np.memmap(
            self.path, np.uint8, "r", offset=self.offset + before, shape=(length,)
        )
        piece: NDArray[Any] = np.ndarray(
            self.shape, dtype, window, offset=-before, strides=self.strides
        )
        return piece.copy()


@dataclass(frozen=True, eq=False)
class CsrPiece:
    """Consecutive rows of a CSR matrix; its parts may be mapped."""

    data: Any
    indices: Any
    indptr: Any
    n_columns: int

    @property
    def nbytes(self) -> int:
        """Bytes of the parts."""
        return sum(part.nbytes for part in (self.data, self.indices, self.indptr))

    def read(self) -> sparse.csr_array:
        """Return the rows as a CSR array."""
        indptr = _read(self.indptr)
        parts = (_read(self.data), _read(self.indices), indptr - indptr[0])
        return sparse.csr_array(parts, shape=(len(indptr) - 1, self.n_columns))


@dataclass(frozen=True, eq=False)
class ArrayRows:
    """One partition of arrays; called, it returns or reads it."""

    X: Any
    Y: Any
    weight: Any
    number: int

    def __sizeof__(self) -> int:
        # What the memory management of a cluster goes by.
        parts = (self.X, self.Y, self.weight)
        return 200 + sum(int(np.sum(getattr(part, "nbytes", 0))) for part in parts)

    def __call__(self) -> Rows:
        """Return features, labels and weights."""
        return plain_rows(
            _read(self.X),
            _read(self.Y),
            _read(self.weight),
            f"partition {self.number}",
        )


def piece_of(data: Any, begin: int, end: int) -> Any:
    """Return rows of an array, a CSR matrix or a frame; nothing is read or copied."""
    if is_pandas(data):
        return data.iloc[begin:end]
    if sparse.issparse(data):
        first, last = int(data.indptr[begin]), int(data.indptr[end])
        return CsrPiece(
            _piece(data.data[first:last]),
            _piece(data.indices[first:last]),
            _piece(data.indptr[begin : end + 1]),
            data.shape[1],
        )
    return _piece(data[begin:end])


def _piece(array: NDArray[Any]) -> Any:
    """Return where an array lies in a file, or itself where that cannot be told."""
    under = _map_under(array)
    # Changes to a map of the mode "c" are not in its file.
    if under is None or under.filename is None or under.mode == "c":
        return array
    if not os.path.exists(under.filename):
        return array
    begin = _address(array) - _address(under)
    return MappedPiece(
        os.path.abspath(under.filename),
        int(under.offset) + begin,
        array.dtype.str,
        array.shape,
        array.strides,
    )


def _map_under(array: Any) -> Any:
    """Return the map that an array is a view of, None if it is of none."""
    # A view of a map is of its class but has the offset of the whole map.
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and isinstance(array.base, mmap.mmap):
            return array
        array = array.base
    return None


def _address(array: NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])


def _row_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    steps = [itemsize]
    for length in shape[:0:-1]:
        steps.insert(0, steps[0] * length)
    return tuple(steps)


def _read(piece: Any) -> Any:
    return piece.read() if isinstance(piece, (MappedPiece, CsrPiece)) else piece
