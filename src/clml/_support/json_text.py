"""How much memory a JSON text may take, told before it is parsed."""

from __future__ import annotations

# What a text may become is a multiple of the file that it comes from: 16 times, twice
# what the models and results of this library need. A small file may need a little more,
# and no file all of the memory.
_PER_BYTE = 16
_LEAST = 2**26
_MOST = 2**30


def json_size(text: bytes) -> int:
    """Return how many bytes of memory a JSON text takes when it is parsed, at most.

    Commas stand for values, and brackets, braces and colons for lists, dicts and their
    entries; those within strings count, too.

    Examples
    --------
    >>> from clml._support.json_text import json_size
    >>> json_size(b'["a", "b", "c"]') < 500
    True
    >>> json_size(b"[" + b"[]," * 10**6 + b"0]") > 10**8
    True
    """
    # One character beyond ASCII, which is then written as an escape, has all of its
    # string take four bytes a character.
    per_byte = 6 if b"\\u" in text else 2
    return (
        per_byte * len(text)
        + 64 * text.count(b",")
        + 88 * text.count(b"[")
        + 80 * text.count(b"{")
        + 140 * text.count(b":")
    )


def check_json_size(text: bytes, n_bytes: int, least: int = _LEAST) -> None:
    """Refuse a JSON text that would take much more memory than the file it is of.

    Parameters
    ----------
    text : bytes
        In UTF-8.
    n_bytes : int
        The size of the file.
    least : int, default=64 MiB
        What any text may take.

    Raises
    ------
    ValueError

    Examples
    --------
    >>> from clml._support.json_text import check_json_size
    >>> check_json_size(b'{"a": 1}', 8)
    >>> check_json_size(b"[]," * 10**6, 3 * 10**6)
    Traceback (most recent call last):
    ...
    ValueError: its JSON would take 158,000,000 bytes, more than 67,108,864
    """
    size = json_size(text)
    limit = min(_MOST, max(least, _PER_BYTE * n_bytes))
    if size > limit:
        raise ValueError(f"its JSON would take {size:,} bytes, more than {limit:,}")
