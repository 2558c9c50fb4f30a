"""Compiled scanner of rows ``label,label index:value index:value``.

As the scanners of tables it never fails and never allocates: it returns a code and
the place where it stopped; values of many digits are noted in ``todo`` for Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.compiled import compiled
from ._numerals import EXACT, NO_NUMBER, Bytes, parse_number

# What the scanner returns.
DONE, FULL, BAD_LABEL, BAD_PAIR, BAD_INDEX, LARGE_INDEX, BAD_VALUE = range(7)

_NEWLINE, _RETURN, _SPACE, _HASH, _COMMA, _COLON = 10, 13, 32, 35, 44, 58
_Q, _I, _D = 113, 105, 100
# Integers beyond these are not exact as floating point numbers.
_LARGEST_LABEL = 2**53

Integers = NDArray[np.int64]


@compiled
def _is_blank(byte: int) -> bool:
    return byte == _SPACE or byte == 9 or byte == _RETURN or byte == 11 or byte == 12


@compiled
def _token_end(text: Bytes, position: int, comments: bool) -> int:
    while position < text.size:
        byte = text[position]
        if byte == _NEWLINE or _is_blank(byte) or (comments and byte == _HASH):
            break
        position += 1
    return position


@compiled
def _find(text: Bytes, begin: int, end: int, byte: int) -> int:
    while begin < end and text[begin] != byte:
        begin += 1
    return begin


@compiled
def _whole_number(text: Bytes, begin: int, end: int) -> int:
    """Return a number of digits alone, -1 if it is none, at most 2**56."""
    number: Any = np.int64(0)
    for position in range(begin, end):
        digit = np.int64(text[position]) - 48
        if not 0 <= digit <= 9:
            return -1
        number = min(number * 10 + digit, 2**56)
    return number if end > begin else -1


@compiled
def _label(text: Bytes, begin: int, end: int) -> tuple[bool, int]:
    """Return whether this is an integer, which may be signed or written 3.0."""
    number = _whole_number(text, begin, end)
    if 0 <= number <= _LARGEST_LABEL:
        return True, number
    outcome, value = parse_number(text, begin, end)
    # Infinities and NaN fail these comparisons.
    if outcome != EXACT or not abs(value) <= _LARGEST_LABEL or value != np.floor(value):
        return False, 0
    whole: Any = np.int64(value)
    return True, whole


@compiled
def _is_query(text: Bytes, begin: int, colon: int) -> bool:
    """Whether a pair is a query number ``qid:5``, which is no feature."""
    return (
        colon - begin == 3
        and text[begin] == _Q
        and text[begin + 1] == _I
        and text[begin + 2] == _D
    )


@compiled
def scan_pairs(
    text: Bytes,
    position: int,
    svmlight: bool,
    largest_index: int,
    labels: Integers,
    label_ends: Integers,
    columns: NDArray[np.int32],
    values: NDArray[np.float64],
    value_ends: Integers,
    row_starts: Integers,
    row: int,
    todo: Integers,
) -> tuple[int, int, int, int, int]:
    """Read rows from a position on, which is the begin of one.

    Parameters
    ----------
    text : uint8 array
    position : int
    svmlight : bool
        Whether ``#`` begins a comment, ``qid:`` is skipped, and lines that are empty
        or hold only a comment are no rows; else every line is one.
    largest_index : int
        Features above it are refused.
    labels, columns, values : arrays
        To be filled, as long as the text has separators.
    label_ends, value_ends : arrays
        How many labels and values there are up to and with each row.
    row_starts : array
        Where each row begins.
    row : int
        Rows read before.
    todo : int64 array of shape (n, 3)
        To be filled with (number of the value, begin, end).

    Returns
    -------
    code, position, row, n_todo, place
        FULL: settle ``todo`` and call again from here; if there is nothing in it, it
        is too short for one row. After an error ``place`` is where it was seen.
    """
    n_todo = 0
    n_labels = label_ends[row - 1] if row > 0 else 0
    n_values = value_ends[row - 1] if row > 0 else 0
    while position < text.size:
        start = position
        settled = n_todo
        if svmlight:
            first = text[position]
            if first == _RETURN and position + 1 < text.size:
                first = text[position + 1]
            if first == _NEWLINE:
                position = _find(text, position, text.size, _NEWLINE) + 1
                continue
        while position < text.size and _is_blank(text[position]):
            position += 1
        if svmlight and position < text.size and text[position] == _HASH:
            position = _find(text, position, text.size, _NEWLINE) + 1
            continue
        place = position
        end = _token_end(text, position, svmlight)
        # Labels, unless the row begins with a feature.
        if end > position and _find(text, position, end, _COLON) == end:
            while True:
                comma = _find(text, position, end, _COMMA)
                good, label = _label(text, position, comma)
                if not good:
                    return BAD_LABEL, start, row, settled, place
                labels[n_labels] = label
                n_labels += 1
                position = comma + 1
                if comma == end:
                    break
            position = end
        while True:
            while position < text.size and _is_blank(text[position]):
                position += 1
            if position >= text.size or text[position] == _NEWLINE:
                break
            if svmlight and text[position] == _HASH:
                position = _find(text, position, text.size, _NEWLINE)
                break
            end = _token_end(text, position, svmlight)
            colon = _find(text, position, end, _COLON)
            if colon == end:
                return BAD_PAIR, start, row, settled, position
            if svmlight and _is_query(text, position, colon):
                position = end
                continue
            index = _whole_number(text, position, colon)
            if index < 0:
                return BAD_INDEX, start, row, settled, position
            if index > largest_index:
                return LARGE_INDEX, start, row, settled, position
            outcome, value = parse_number(text, colon + 1, end)
            if outcome == NO_NUMBER:
                return BAD_VALUE, start, row, settled, position
            if outcome != EXACT:
                if n_todo == todo.shape[0]:
                    return FULL, start, row, settled, start
                todo[n_todo, 0] = n_values
                todo[n_todo, 1] = colon + 1
                todo[n_todo, 2] = end
                n_todo += 1
            columns[n_values] = index
            values[n_values] = value
            n_values += 1
            position = end
        position += 1
        label_ends[row] = n_labels
        value_ends[row] = n_values
        row_starts[row] = start
        row += 1
    return DONE, position, row, n_todo, position
