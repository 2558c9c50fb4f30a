"""Encoding of values, compiled: dense rows a column at a time, sparse rows by entry.

Every number is computed by itself and in float64, so the bits do not depend on which
rows come together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._support.compiled import compiled
from .kinds import Code

#: Numbers are bounded by this. Standardised training rows reach √n at most; the first
#: other row to come may hold anything, and must stay finite in float32.
LARGEST = 1e6

_NONE = int(Code.NONE)
_PLAIN = int(Code.PLAIN)
_CLIPPED = int(Code.CLIPPED)
_LEVELS = int(Code.LEVELS)
_RAMPS = int(Code.RAMPS)
_STANDARD_AND_RAMPS = int(Code.STANDARD_AND_RAMPS)


class Tables(NamedTuple):
    """What the kernels look up, see ``FittedEncoding`` for all but the last two.

    ``place`` (D + 1,) says where the encoded columns of each input begin, ``zero``
    (n_columns,) what is subtracted from each encoded column.
    """

    code: NDArray[np.uint8]
    missing: NDArray[np.bool_]
    shift: NDArray[np.float64]
    scale: NDArray[np.float64]
    limit: float
    offsets: NDArray[np.int64]
    knots: NDArray[np.float64]
    levels: NDArray[np.float64]
    neutral: NDArray[np.float64]
    place: NDArray[np.int64]
    zero: NDArray[np.float64]


@compiled(inline=True)
def _between(x, low, high):  # type: ignore[no-untyped-def]
    """Return how far x is on the way; halves, since differences may overflow."""
    return (x * 0.5 - low * 0.5) / (high * 0.5 - low * 0.5)


@compiled(inline=True)
def _bounded(x):  # type: ignore[no-untyped-def]
    return min(max(x, -LARGEST), LARGEST)


@compiled(inline=True)
def _standard(x, shift, scale):  # type: ignore[no-untyped-def]
    return _bounded((x * 0.5 - shift * 0.5) / (scale * 0.5))


@compiled(inline=True)
def _on_table(x, low, high, a, b):  # type: ignore[no-untyped-def]
    """Interpolate between two knots of levels a and b, which go on for ever."""
    if x <= low:
        return a
    if x >= high:
        return b
    # Rounding must not lead past the next level.
    return min(a + (b - a) * _between(x, low, high), b)


@compiled(inline=True)
def _level(x, knots, levels, start, stop):  # type: ignore[no-untyped-def]
    """Interpolate in the table from start to stop; its ends go on for ever."""
    low, high = start, stop - 1
    while high - low > 1:
        middle = (low + high) // 2
        if x >= knots[middle]:
            low = middle
        else:
            high = middle
    return _on_table(x, knots[low], knots[high], levels[low], levels[high])


@compiled
def _set_levels(x, knots, levels, start, stop, low):  # type: ignore[no-untyped-def]
    """Set each of some values to its level, as :func:`_level` does; ``low`` is memory.

    All values take a step of bisection before any takes the next: none waits for
    another, nor for a branch that was foreseen wrongly.
    """
    knots, levels = knots[start:stop], levels[start:stop]
    # Unsigned: an index that may be negative is a branch.
    last = np.uint64(stop - start - 2)
    step = np.uint64(1)
    while step < last:
        step *= np.uint64(2)
    low[:] = 0
    while step > 0:
        for i in range(x.size):
            further = min(low[i] + step, last)
            low[i] = further if x[i] >= knots[further] else low[i]
        step //= np.uint64(2)
    for i in range(x.size):
        k = low[i]
        high = k + np.uint64(1)
        x[i] = _on_table(x[i], knots[k], knots[high], levels[k], levels[high])


@compiled(inline=True)
def _number(x, code, shift, scale, limit, knots, levels, start, stop):  # type: ignore[no-untyped-def]
    """Return the one number that codes other than ramps make of a value."""
    if code == _PLAIN:
        return _bounded(x)
    if code == _LEVELS:
        return _level(x, knots, levels, start, stop)
    u = _standard(x, shift, scale)
    if code == _CLIPPED:
        u = u / np.sqrt(1.0 + (u / limit) * (u / limit))
    return u


@compiled(inline=True)
def _ramp(x, low, high):  # type: ignore[no-untyped-def]
    if x >= high:
        return 1.0
    if x <= low:
        return 0.0
    return _between(x, low, high)


@compiled
def encode_dense(X, tables, out):  # type: ignore[no-untyped-def]
    """Encode float64 rows into ``out``; return a column with infinity, or -1."""
    code, missing, shift, scale, limit, offsets, knots, levels = tables[:8]
    neutral, place, zero = tables[8:]
    values, low = np.empty(X.shape[0]), np.empty(X.shape[0], np.uint64)
    for j in range(code.size):
        kind, start, stop = code[j], offsets[j], offsets[j + 1]
        has_number = kind != _NONE and kind != _RAMPS
        has_ramps = kind == _RAMPS or kind == _STANDARD_AND_RAMPS
        if kind == _LEVELS:
            for i in range(X.shape[0]):
                values[i] = neutral[j] if np.isnan(X[i, j]) else X[i, j]
            _set_levels(values, knots, levels, start, stop, low)
        for i in range(X.shape[0]):
            x = X[i, j]
            if np.isinf(x):
                return j
            at = place[j]
            if np.isnan(x) and missing[j]:
                for k in range(at, place[j + 1] - 1):
                    out[i, k] = 0.0
                out[i, place[j + 1] - 1] = 1.0
                continue
            if np.isnan(x):
                x = neutral[j]
            if has_number:
                if kind == _LEVELS:
                    number = values[i]
                else:
                    number = _number(
                        x, kind, shift[j], scale[j], limit, knots, levels, start, stop
                    )
                out[i, at] = number - zero[at]
                at += 1
            if has_ramps:
                for k in range(start, stop - 1):
                    out[i, at] = _ramp(x, knots[k], knots[k + 1]) - zero[at]
                    at += 1
            if missing[j]:
                out[i, at] = 0.0
    return -1


@compiled
def encode_sparse(data, indices, indptr, tables, fill, into):  # type: ignore[no-untyped-def]
    """Encode the stored entries of CSR rows; return a column with infinity, or -1.

    ``into`` is the data, indices and row pointers of the result. Pointers get where
    rows end, counted from the first. Only with ``fill`` are entries written, from there
    on: a first call tells how many there are.
    """
    new_data, new_indices, new_indptr = into
    code, missing, shift, scale, limit, offsets, knots, levels = tables[:8]
    neutral, place, zero = tables[8:]
    end = new_indptr[0]
    for i in range(indptr.size - 1):
        for e in range(indptr[i] - indptr[0], indptr[i + 1] - indptr[0]):
            x, j = data[e], indices[e]
            if np.isinf(x):
                return j
            at = place[j]
            if np.isnan(x) and missing[j]:
                if fill:
                    new_data[end] = 1.0
                    new_indices[end] = place[j + 1] - 1
                end += 1
                continue
            if np.isnan(x):
                x = neutral[j]
            kind, start, stop = code[j], offsets[j], offsets[j + 1]
            if kind != _NONE and kind != _RAMPS:
                number = _number(
                    x, kind, shift[j], scale[j], limit, knots, levels, start, stop
                )
                entry = np.float32(number - zero[at])
                if entry != 0:
                    if fill:
                        new_data[end] = entry
                        new_indices[end] = at
                    end += 1
                at += 1
            if kind == _RAMPS or kind == _STANDARD_AND_RAMPS:
                for k in range(start, stop - 1):
                    entry = np.float32(_ramp(x, knots[k], knots[k + 1]) - zero[at])
                    if entry != 0:
                        if fill:
                            new_data[end] = entry
                            new_indices[end] = at
                        end += 1
                    at += 1
        new_indptr[i + 1] = end
    return -1
