"""Products of matrices inside compiled steps, a tile of sums in registers at a time.

BLAS chooses its kernels by the make of a processor and not by what it can do: where it
knows of registers of 256 bits alone, tiles of 512 take half its time. Each sum takes
its terms in one order, in blocks of one size: a row of a product has the same bits
whatever rows are beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .compiled import compiled
from .simd import address
from .simd_tiles import NUMBERS, WIDTHS, add_products, set_products

_LANES = NUMBERS[4]
#: Columns of the widest panels.
PANEL = WIDTHS[-1] * _LANES
# Terms that are summed before they are added to the rest: so much of a panel stays in
# the nearest cache but one.
_DEPTH = 256
# Bytes of a line of the cache.
_LINE = 64


def aligned(shape: tuple[int, ...], dtype: np.dtype) -> NDArray:
    """Return memory where no vector is on two lines of the cache: half the time."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + _LINE, dtype=np.uint8)
    start = -memory.ctypes.data % _LINE
    return memory[start : start + size].view(dtype).reshape(shape)


def room_for_products(widths: Sequence[int], most_rows: int) -> NDArray[np.float32]:
    """Return memory for the products of a pass through layers, forward and back.

    Parameters
    ----------
    widths : sequence of int
        Of the layers, from the inputs to the outputs.
    most_rows : int
        Of a batch.
    """
    sizes = [0]
    linear_path = widths[0], widths[-1]
    for inputs, outputs in [*pairwise(widths), linear_path]:
        sizes.append(max(inputs, most_rows) * _padded(outputs))
        sizes.append(outputs * _padded(inputs))
    return aligned((max(sizes),), np.dtype(np.float32))


def _padded(n_columns: int) -> int:
    return -(-n_columns // PANEL) * PANEL


def spread_rows(n_rows: int, n_columns: int) -> NDArray[np.float32]:
    """Return memory for rows whose numbers of one column do not share a cache's lines.

    A column of rows that are a power of two apart has few lines to stay in.
    """
    apart = -(-n_columns // _LANES) * _LANES + _LANES
    return aligned((n_rows, apart), np.dtype(np.float32))[:, :n_columns]


@compiled
def product(a, b, room, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` with the product of a (n, depth) and b (depth, columns).

    Rows of ``a`` may be apart, ``out`` is contiguous, and ``room`` is of
    ``room_for_products``.
    """
    _fill(a, a.strides[0] // a.itemsize, 1, _in_panels(b, room), out)


@compiled
def transposed_product(a, b, room, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` with the product of the transpose of a (depth, n) and b."""
    _fill(a, 1, a.strides[0] // a.itemsize, _in_panels(b, room), out)


@compiled
def _panel_width(n_columns):  # type: ignore[no-untyped-def]
    """Return how many columns a panel has: as few as hold all of them, or the most."""
    for width in WIDTHS:
        if width * _LANES >= n_columns:
            return width * _LANES
    return PANEL


@compiled
def _in_panels(matrix, room):  # type: ignore[no-untyped-def]
    """Return a matrix (depth, columns) in panels (panels, depth, width), in the room.

    The last one is filled up with zeros.
    """
    depth, n_columns = matrix.shape
    width = _panel_width(n_columns)
    n_panels = (n_columns + width - 1) // width
    panels = room[: n_panels * depth * width].reshape((n_panels, depth, width))
    for p in range(n_panels):
        begin = p * width
        n = min(width, n_columns - begin)
        for k in range(depth):
            for j in range(n):
                panels[p, k, j] = matrix[k, begin + j]
            for j in range(n, width):
                panels[p, k, j] = 0
    return panels


@compiled
def _fill(matrix, stride, step, panels, out):  # type: ignore[no-untyped-def]
    """Fill ``out``; rows of the matrix are ``stride``, their terms ``step`` apart."""
    n_panels, depth, width = panels.shape
    n_rows, n_columns = out.shape
    wide = width // _LANES
    for p in range(n_panels):
        begin = p * width
        n = min(width, n_columns - begin)
        whole = n == width
        part = out if whole else np.empty((n_rows, width), np.float32)
        sums, apart = address(part, begin if whole else 0), part.shape[1]
        for first in range(0, depth, _DEPTH):
            size = min(_DEPTH, depth - first)
            x = address(matrix, first * step)
            panel = address(panels, (p * depth + first) * width)
            if first == 0:
                set_products(x, stride, step, n_rows, panel, size, wide, sums, apart)
            else:
                add_products(x, stride, step, n_rows, panel, size, wide, sums, apart)
        if not whole:
            for i in range(n_rows):
                for j in range(n):
                    out[i, begin + j] = part[i, j]
