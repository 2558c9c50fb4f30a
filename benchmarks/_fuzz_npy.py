"""Damage to .npy files: headers that lie, and sound arrays of another shape or type."""

from __future__ import annotations

import io
import re

import numpy as np
from _fuzz_bytes import Generator, damaged, pick
from numpy.typing import NDArray

_TYPES = [
    "<f8", "<f4", "<f2", ">f8", "<i8", "<i4", "|i1", "<u4", "|u1", "|b1", "<U3", ">U1",
]  # fmt: skip
_WORDS = [
    "|O", "<c16", "<f16", "<M8[s]", "|S8", "|V8", "<U0", "<U999999", "<U9999999", "=f8",
    "f8", "", "<f8'", "|b1", "<f4", ">i4",
]  # fmt: skip
_LENGTHS = [0, 1, 2, 3, -1, 2**31, 2**40, 2**63 - 1, 2**63, 10**30]
_SHAPE = re.compile(rb"'shape': \(([^)]*)\)")
_DESCRIPTION = re.compile(rb"'descr': '([^']*)'")


def saved_array(array: NDArray) -> bytes:
    """Return the bytes of a .npy file."""
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, version=(1, 0), allow_pickle=False)
    return stream.getvalue()


def _other_shape(shape: tuple[int, ...], generator: Generator) -> tuple[int, ...]:
    lengths = list(shape)
    change = generator.integers(4)
    place = int(generator.integers(len(lengths))) if lengths else 0
    if change == 0 and lengths:
        lengths[place] = max(0, lengths[place] + int(pick(generator, [-1, 1, 2])))
    elif change == 1 and lengths:
        lengths[place] = int(pick(generator, [0, 1, 7]))
    elif change == 2:
        lengths.insert(place, int(pick(generator, [1, 1, 2, 0])))
    elif lengths:
        del lengths[place]
    return tuple(lengths)


def _extreme_values(array: NDArray, generator: Generator) -> NDArray:
    """Return the array with values at the ends of its type in some places."""
    changed = array.copy(order="K")
    if array.size == 0 or array.dtype.kind not in "fiub":
        return changed
    if array.dtype.kind == "f":
        largest = np.finfo(array.dtype).max
        values = [np.nan, np.inf, -np.inf, largest, -largest, 5e-324, 0.0, -1.0, 2.0]
    elif array.dtype.kind == "b":
        values = [False, True]
    else:
        ends = np.iinfo(array.dtype)
        values = [ends.min, ends.max, 0, 1, ends.max // 2, ends.max - 1]
        if ends.min < 0:
            values += [-1, 5]
    flat = changed.reshape(-1) if changed.flags.c_contiguous else changed.T.reshape(-1)
    count = int(pick(generator, [1, 1, 1, 2, flat.size]))
    flat[generator.integers(flat.size, size=count)] = pick(generator, values)
    return changed


def _overflowing(array: NDArray, generator: Generator) -> NDArray:
    """Return integers whose differences overflow such that none is negative."""
    changed = array.copy()
    place = int(generator.integers(1, array.size - 2))
    largest = np.iinfo(array.dtype).max
    changed[place : place + 2] = [largest, -2]
    return changed


def _other_array(array: NDArray, generator: Generator) -> NDArray:
    """Return a sound array that is not the one that belongs there."""
    change = generator.integers(5)
    if change == 0:
        return _extreme_values(array, generator)
    if change == 1:
        kind = str(pick(generator, _TYPES))
        with np.errstate(all="ignore"):
            try:
                return array.astype(kind)
            except (ValueError, TypeError):
                return np.zeros(array.shape, kind)
    if change == 4 and array.dtype.kind == "i" and array.ndim == 1 and array.size > 3:
        return _overflowing(array, generator)
    if change == 2:
        return np.resize(array, _other_shape(array.shape, generator))
    flipped = array[::-1] if array.ndim else array
    return np.asfortranarray(flipped) if generator.random() < 0.5 else flipped.copy()


def _lying_header(content: bytes, generator: Generator) -> bytes:
    """Return the file with another header, its length put right."""
    n_header = int.from_bytes(content[8:10], "little")
    header, rest = content[10 : 10 + n_header], content[10 + n_header :]
    change = generator.integers(5)
    if change == 0:
        word = str(pick(generator, _WORDS)).encode()
        header = _DESCRIPTION.sub(lambda m: b"'descr': '" + word + b"'", header)
    elif change == 1:
        lengths = [int(pick(generator, _LENGTHS)) for _ in range(generator.integers(4))]
        if generator.random() < 0.1:
            lengths = [1] * int(pick(generator, [33, 65, 900])) + lengths
        shape = f"'shape': {tuple(lengths)}".encode()
        header = _SHAPE.sub(lambda m: shape, header)
    elif change == 2:
        header = header.replace(b"False", b"True")
    elif change == 3:
        header = damaged(header, [header], generator)
    else:
        header = header.rstrip(b" \n") + b" " * int(generator.integers(3000)) + b"\n"
    size = len(header) if generator.random() < 0.9 else int(generator.integers(2**16))
    return content[:8] + min(size, 2**16 - 1).to_bytes(2, "little") + header + rest


def damaged_npy(content: bytes, generator: Generator) -> bytes:
    """Return a .npy file of version 1.0 after one change, most often a sound one."""
    choice = generator.random()
    if choice < 0.65:
        array = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
        return saved_array(_other_array(array, generator))
    if choice < 0.9:
        return _lying_header(content, generator)
    return damaged(content, [content], generator)
