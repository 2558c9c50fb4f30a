"""Damage to bytes and text that knows nothing of what they mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

Generator = np.random.Generator

# What mutations put in: grammar, extremes, and bytes that begin other formats.
PIECES = [
    b"{", b"}", b",", b"'", b'"', b"\\", b"%", b"?", b"\n", b"\r\n", b"\r", b"\0", b" ",
    b"\t", b":", b";", b"#", b"<", b">", b"&a;", b"<!DOCTYPE x [", b"@data\n",
    b"@attribute x numeric\n", b"@attribute q {", b"@relation 'x: -C 99'\n", b"-C 0",
    b"-C -999999999", b"99999999999999999999", b"2147483648", b"-1", b"4294967296:1",
    b"1e999", b"-1e-999", b"nan", b"inf", b"0x10", b"1_0", b"1:1 1:1", b"{0 1,0 1}",
    b"{999999999 1}", b" " * 3000,
    b"{}\n" * 50, b"0" * 400, b"a," * 300, b"<label name='n'>" * 120,
    b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", "ü中😀".encode(), b"PK\x03\x04",
    b"BZh9", b"\x1f\x8b\x08", b"\xfd7zXZ\x00", b"100000000 100000000 100000000\n",
]  # fmt: skip
NUMBERS = [
    b"-1", b"0", b"255", b"65536", b"2147483647", b"-2147483649", b"4294967296",
    b"9223372036854775807", b"-9223372036854775809", b"18446744073709551616",
    b"9" * 400, b"9" * 5000, b"1e308", b"1e309", b"-1e-400", b"0.1e-310", b"nan",
    b"-inf", b"1000000000000", b"0000000000001", b"1.", b".5", b"1e", b"0x7f",
    b"1_000", b"true",
]  # fmt: skip
_DIGITS = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def pick(generator: Generator, items: Sequence) -> object:
    """Return one of the items."""
    return items[int(generator.integers(len(items)))]


def _span(content: bytearray, generator: Generator) -> tuple[int, int]:
    start = int(generator.integers(0, len(content) + 1))
    return start, start + int(min(generator.geometric(0.1), len(content) - start))


def _insert(content: bytearray, others: Sequence[bytes], generator: Generator) -> None:
    start, _ = _span(content, generator)
    content[start:start] = pick(generator, PIECES)


def _replace(content: bytearray, others: Sequence[bytes], generator: Generator) -> None:
    start, stop = _span(content, generator)
    content[start:stop] = pick(generator, PIECES)


def _delete(content: bytearray, others: Sequence[bytes], generator: Generator) -> None:
    start, stop = _span(content, generator)
    del content[start:stop]


def _repeat(content: bytearray, others: Sequence[bytes], generator: Generator) -> None:
    start, stop = _span(content, generator)
    content[start:start] = content[start:stop] * int(generator.integers(1, 40))


def _change_byte(
    content: bytearray, others: Sequence[bytes], generator: Generator
) -> None:
    if content:
        content[int(generator.integers(len(content)))] = int(generator.integers(256))


def _flip_bit(
    content: bytearray, others: Sequence[bytes], generator: Generator
) -> None:
    if content:
        place = int(generator.integers(len(content)))
        content[place] ^= 1 << int(generator.integers(8))


def _shuffle_lines(
    content: bytearray, others: Sequence[bytes], generator: Generator
) -> None:
    lines = bytes(content).split(b"\n")
    generator.shuffle(lines)
    content[:] = b"\n".join(lines)


def _cut(content: bytearray, others: Sequence[bytes], generator: Generator) -> None:
    start, _ = _span(content, generator)
    del content[start:]


def _splice(content: bytearray, others: Sequence[bytes], generator: Generator) -> None:
    """End as another sound file ends, or have a span of it inside."""
    other = pick(generator, others)
    start, _ = _span(content, generator)
    begin = int(generator.integers(0, len(other) + 1))
    if generator.random() < 0.5:
        content[start:] = other[begin:]
    else:
        end = begin + int(min(generator.geometric(0.01), len(other) - begin))
        content[start : start + end - begin] = other[begin:end]


def _change_number(
    content: bytearray, others: Sequence[bytes], generator: Generator
) -> None:
    found = list(_DIGITS.finditer(bytes(content)))
    if found:
        place = found[int(generator.integers(len(found)))]
        content[place.start() : place.end()] = pick(generator, NUMBERS)


_CHANGES: list[Callable[[bytearray, Sequence[bytes], Generator], None]] = [
    _insert,
    _replace,
    _delete,
    _repeat,
    _change_byte,
    _flip_bit,
    _shuffle_lines,
    _cut,
    _splice,
    _change_number,
]


def damaged(data: bytes, others: Sequence[bytes], generator: Generator) -> bytes:
    """Return bytes after one random change or a few.

    Parameters
    ----------
    data : bytes
    others : sequence of bytes
        Sound files that parts may come from.
    generator : Generator
    """
    content = bytearray(data)
    for _ in range(int(generator.geometric(0.5))):
        pick(generator, _CHANGES)(content, others, generator)
    return bytes(content)


def babble(generator: Generator) -> bytes:
    """Return pieces of grammar in any order."""
    pieces = []
    for _ in range(30):
        if generator.random() < 0.5:
            pieces.append(pick(generator, PIECES))
        else:
            pieces.append(generator.integers(32, 127, 4, dtype=np.uint8).tobytes())
    return b"".join(pieces)
