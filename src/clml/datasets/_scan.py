"""Compiled scanners: the bytes of a text file to numbers, one pass, no objects.

A scanner never fails and never allocates: it returns a code, the place where it
stopped, and how many rows it has. What needs Python (numbers of many digits, text,
escaped values) it notes in ``todo`` as (where, column, begin, end, form), the weight of
a row as that of the column after the last, and returns when that is full; the caller
settles the notes and calls again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.compiled import compiled
from ._numerals import EXACT, LONG, Bytes, is_missing, parse_number

# Kinds of columns.
NUMBER, NOMINAL, TEXT, INFER = 0, 1, 2, 3
# Forms of a token.
PLAIN, QUOTED, ESCAPED, UNCLOSED = 0, 1, 2, 3
# What a scanner returns.
DONE, FULL = 0, 1
TOO_FEW, TOO_MANY, EMPTY, NOT_A_NUMBER, UNDECLARED = 2, 3, 4, 5, 6
OPEN_QUOTE, TEXT_AFTER_QUOTE, SPARSE_ROW, DENSE_ROW = 7, 8, 9, 10
NO_INDEX, LARGE_INDEX, REPEATED_INDEX = 11, 12, 13
OPEN_ROW, AFTER_ROW, BAD_WEIGHT = 14, 15, 16

_NEWLINE, _SPACE, _PERCENT, _COMMA, _QUERY = 10, 32, 37, 44, 63
_QUOTE, _APOSTROPHE, _BACKSLASH, _OPEN, _CLOSE = 34, 39, 92, 123, 125

Integers = NDArray[np.int64]


@compiled
def _is_space(byte: int) -> bool:
    return byte == _SPACE or byte == 9 or byte == 13 or byte == 11 or byte == 12


@compiled
def _skip_spaces(text: Bytes, position: int) -> int:
    while position < text.size and _is_space(text[position]):
        position += 1
    return position


@compiled
def _skip_line(text: Bytes, position: int) -> int:
    while position < text.size and text[position] != _NEWLINE:
        position += 1
    return position + 1


@compiled
def _next_row(text: Bytes, position: int, comments: bool) -> int:
    """Return where the next row begins: past empty lines and comments."""
    while position < text.size:
        position = _skip_spaces(text, position)
        if not _at_line_end(text, position, comments):
            return position
        position = _skip_line(text, position)
    return text.size


@compiled
def _at_line_end(text: Bytes, position: int, comments: bool) -> bool:
    if position >= text.size or text[position] == _NEWLINE:
        return True
    return comments and text[position] == _PERCENT


@compiled
def _token(
    text: Bytes, position: int, delimiter: int, by_space: bool, arff: bool
) -> tuple[int, int, int, int]:
    """Return begin, end, form of the token here, and where it stopped.

    Outside quotes an ARFF token also ends at a closing brace of a sparse row
    (``delimiter`` is then a comma and ``by_space`` is false), which is the caller's
    to look at, and before a comment.
    """
    size = text.size
    first = text[position] if position < size else _NEWLINE
    if first == _QUOTE or (arff and first == _APOSTROPHE):
        begin = position + 1
        position = begin
        form = QUOTED
        while position < size:
            byte = text[position]
            if byte == first:
                if arff or position + 1 >= size or text[position + 1] != first:
                    break
                form = ESCAPED
                position += 1
            elif arff and byte == _BACKSLASH:
                form = ESCAPED
                position += 1
            elif arff and byte == _NEWLINE:
                return begin, position, UNCLOSED, position
            position += 1
        if position >= size:
            return begin, size, UNCLOSED, size
        return begin, position, form, position + 1
    begin = position
    end = position
    while position < size:
        byte = text[position]
        if byte == delimiter or byte == _NEWLINE:
            break
        if arff and byte == _PERCENT and position > begin and end < position:
            break
        if _is_space(byte):
            if by_space:
                break
        else:
            end = position + 1
        position += 1
    return begin, end, PLAIN, position


@compiled
def _compare(
    text: Bytes, begin: int, end: int, other: Bytes, first: int, last: int
) -> int:
    for offset in range(min(end - begin, last - first)):
        difference: Any = np.int64(text[begin + offset]) - np.int64(
            other[first + offset]
        )
        if difference != 0:
            return difference
    return (end - begin) - (last - first)


@compiled
def _find_value(text: Bytes, begin: int, end: int, column: int, values: Any) -> int:
    """Return the code of a declared value, or -1; the values of a column are sorted."""
    letters, bounds, codes, of_column = values
    low, high = of_column[column], of_column[column + 1]
    while low < high:
        middle = (low + high) // 2
        order = _compare(text, begin, end, letters, bounds[middle], bounds[middle + 1])
        if order == 0:
            return codes[middle]
        if order < 0:
            high = middle
        else:
            low = middle + 1
    return -1


@compiled
def _note(
    todo: Integers,
    n_todo: int,
    where: int,
    column: int,
    begin: int,
    end: int,
    form: int,
) -> int:
    todo[n_todo, 0] = where
    todo[n_todo, 1] = column
    todo[n_todo, 2] = begin
    todo[n_todo, 3] = end
    todo[n_todo, 4] = form
    return n_todo + 1


@compiled
def _value(
    text: Bytes, begin: int, end: int, form: int, column: int, kind: int, values: Any
) -> tuple[int, float]:
    """Return DONE and a value, FULL for what must be noted, or an error."""
    if form == UNCLOSED:
        return OPEN_QUOTE, 0.0
    if form == PLAIN and end - begin == 1 and text[begin] == _QUERY:
        return DONE, np.nan
    if kind == TEXT:
        return FULL, 0.0
    if kind == NOMINAL:
        if form == ESCAPED:
            return FULL, 0.0
        code = _find_value(text, begin, end, column, values)
        return (UNDECLARED, 0.0) if code < 0 else (DONE, float(code))
    outcome, value = parse_number(text, begin, end)
    if outcome == EXACT:
        return DONE, value
    return (FULL, 0.0) if outcome == LONG else (NOT_A_NUMBER, 0.0)


@compiled
def _weight(text: Bytes, position: int) -> tuple[int, float, int, int]:
    """Return where a row's weight ``{w}`` ends, -1 if it is none, and the weight.

    Also begin and end of the number where it is LONG, else -1.
    """
    position = _skip_spaces(text, position + 1)
    begin = position
    while position < text.size and text[position] != _CLOSE:
        if text[position] == _NEWLINE:
            return -1, 0.0, -1, -1
        position += 1
    end = position
    while end > begin and _is_space(text[end - 1]):
        end -= 1
    outcome, weight = parse_number(text, begin, end)
    if outcome == LONG and text[begin] != 45 and position < text.size:
        return position + 1, 0.0, begin, end
    if position >= text.size or outcome != EXACT or not 0 <= weight < np.inf:
        return -1, 0.0, -1, -1
    return position + 1, weight, -1, -1


@compiled
def _holds(text: Bytes, position: int, byte: int) -> bool:
    while position < text.size and text[position] != _NEWLINE:
        if text[position] == byte:
            return True
        position += 1
    return False


@compiled
def scan_dense(
    text: Bytes,
    position: int,
    kinds: NDArray[np.int8],
    values: Any,
    delimiter: int,
    arff: bool,
    cells: NDArray[np.float64],
    weights: NDArray[np.float64],
    row_starts: Integers,
    row: int,
    todo: Integers,
    textual: NDArray[np.bool_],
) -> tuple[int, int, int, int, int, int]:
    """Read rows of one value per column into ``cells`` (rows, columns).

    Returns
    -------
    code, position, row, n_todo, column, place
        ``row`` counts the rows read; after an error ``place`` is where it was seen.
    """
    n_columns = kinds.size
    n_todo = 0
    while True:
        position = _next_row(text, position, arff)
        if position >= text.size:
            break
        if arff and text[position] == _OPEN:
            return SPARSE_ROW, position, row, n_todo, 0, position
        if n_todo + n_columns + 1 > todo.shape[0]:
            return FULL, position, row, n_todo, 0, position
        # Fields are parted by white space where a whole row has no delimiter.
        by_space = arff and n_columns > 1 and not _holds(text, position, delimiter)
        row_starts[row] = position
        weights[row] = 1.0
        for column in range(n_columns):
            position = _skip_spaces(text, position)
            place = position
            begin, end, form, position = _token(
                text, position, delimiter, by_space, arff
            )
            if arff and form == PLAIN and begin == end:
                short = _at_line_end(text, position, arff)
                code = TOO_FEW if short and column > 0 else EMPTY
                return code, position, row, n_todo, column, place
            kind = kinds[column]
            if not arff and form == PLAIN and is_missing(text, begin, end):
                code, value = DONE, np.nan
            else:
                code, value = _value(text, begin, end, form, column, kind, values)
            if code == NOT_A_NUMBER and kind == INFER:
                textual[column] = True
                code = DONE
            if code == FULL:
                n_todo = _note(todo, n_todo, row, column, begin, end, form)
            elif code != DONE:
                return code, position, row, n_todo, column, place
            cells[row, column] = value
            position = _skip_spaces(text, position)
            if column + 1 < n_columns:
                if _at_line_end(text, position, arff):
                    return TOO_FEW, position, row, n_todo, column + 1, place
                if text[position] == delimiter:
                    position += 1
                elif not by_space:
                    return TEXT_AFTER_QUOTE, position, row, n_todo, column, place
        if arff and position < text.size and text[position] == _COMMA:
            after = _skip_spaces(text, position + 1)
            if after < text.size and text[after] == _OPEN:
                ended, weights[row], begin, end = _weight(text, after)
                if ended < 0:
                    return BAD_WEIGHT, after, row, n_todo, n_columns, after
                if begin >= 0:
                    n_todo = _note(todo, n_todo, row, n_columns, begin, end, PLAIN)
                position = _skip_spaces(text, ended)
        if not _at_line_end(text, position, arff):
            return TOO_MANY, position, row, n_todo, n_columns, position
        position = _skip_line(text, position)
        row += 1
    return DONE, position, row, n_todo, 0, position


@compiled
def scan_sparse(
    text: Bytes,
    position: int,
    kinds: NDArray[np.int8],
    values: Any,
    columns: NDArray[np.int32],
    entries: NDArray[np.float64],
    weights: NDArray[np.float64],
    row_starts: Integers,
    row_ends: Integers,
    row: int,
    last_row: Integers,
    todo: Integers,
) -> tuple[int, int, int, int, int, int]:
    """Read rows ``{column value, ...}`` into ``columns`` and ``entries``.

    ``row_ends[r]`` is the number of entries up to and with row r; ``last_row``, -1
    at first, holds the row in which each column was seen last. Returns what
    :func:`scan_dense` does.
    """
    n_columns = kinds.size
    n_todo = 0
    entry = row_ends[row - 1] if row > 0 else 0
    while True:
        position = _next_row(text, position, True)
        if position >= text.size:
            break
        if text[position] != _OPEN:
            return DENSE_ROW, position, row, n_todo, 0, position
        if n_todo + n_columns + 1 > todo.shape[0]:
            return FULL, position, row, n_todo, 0, position
        row_starts[row] = position
        weights[row] = 1.0
        position = _skip_spaces(text, position + 1)
        while True:
            if position < text.size and text[position] == _CLOSE:
                break
            place = position
            column: Any = np.int64(0)
            while position < text.size and 48 <= text[position] <= 57:
                column = min(column * 10 + (np.int64(text[position]) - 48), 2**40)
                position += 1
            if position == place or position >= text.size:
                code = OPEN_ROW if _at_line_end(text, position, False) else NO_INDEX
                return code, position, row, n_todo, 0, place
            if not _is_space(text[position]):
                code = OPEN_ROW if text[position] == _NEWLINE else NO_INDEX
                return code, position, row, n_todo, 0, place
            if column >= n_columns:
                return LARGE_INDEX, position, row, n_todo, column, place
            if last_row[column] == row:
                return REPEATED_INDEX, position, row, n_todo, column, place
            last_row[column] = row
            position = _skip_spaces(text, position)
            place = position
            begin, end, form, position = _sparse_token(text, position)
            if form == PLAIN and begin == end:
                return EMPTY, position, row, n_todo, column, place
            code, value = _value(text, begin, end, form, column, kinds[column], values)
            if code == FULL:
                n_todo = _note(todo, n_todo, entry, column, begin, end, form)
            elif code != DONE:
                return code, position, row, n_todo, column, place
            columns[entry] = column
            entries[entry] = value
            entry += 1
            position = _skip_spaces(text, position)
            if _at_line_end(text, position, False):
                return OPEN_ROW, position, row, n_todo, column, place
            if text[position] == _COMMA:
                position = _skip_spaces(text, position + 1)
            elif text[position] != _CLOSE:
                return TEXT_AFTER_QUOTE, position, row, n_todo, column, place
        position = _skip_spaces(text, position + 1)
        if position < text.size and text[position] == _COMMA:
            position = _skip_spaces(text, position + 1)
        if position < text.size and text[position] == _OPEN:
            place = position
            position, weights[row], begin, end = _weight(text, position)
            if position < 0:
                return BAD_WEIGHT, place, row, n_todo, n_columns, place
            if begin >= 0:
                n_todo = _note(todo, n_todo, row, n_columns, begin, end, PLAIN)
            position = _skip_spaces(text, position)
        if not _at_line_end(text, position, True):
            return AFTER_ROW, position, row, n_todo, 0, position
        position = _skip_line(text, position)
        row_ends[row] = entry
        row += 1
    return DONE, position, row, n_todo, 0, position


@compiled
def _sparse_token(text: Bytes, position: int) -> tuple[int, int, int, int]:
    first = text[position] if position < text.size else _NEWLINE
    if first == _QUOTE or first == _APOSTROPHE:
        return _token(text, position, _COMMA, False, True)
    begin = position
    end = position
    while position < text.size:
        byte = text[position]
        if byte == _COMMA or byte == _CLOSE or byte == _NEWLINE:
            break
        if not _is_space(byte):
            end = position + 1
        position += 1
    return begin, end, PLAIN, position
