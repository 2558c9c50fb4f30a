"""Compiled reading of numbers, and of the words for none, from the bytes of a text."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.compiled import compiled

Bytes = NDArray[np.uint8]

# What parse_number returns.
EXACT, LONG, NO_NUMBER = 0, 1, 2

_MOST_DIGITS = 10**17
_POWERS = 10.0 ** np.arange(23)
# As arrays: text in compiled code costs seconds of compilation.
_NAN, _INF, _INFINITY = (
    np.frombuffer(word, dtype=np.uint8) for word in (b"nan", b"inf", b"infinity")
)
# Fields of a CSV file that stand for no value, in any case: those of pandas, and "?".
MISSING_WORDS = (
    *("", "?", "na", "nan", "-nan", "n/a", "#na", "#n/a", "<na>", "null", "none"),
    *("1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan", "#n/a n/a"),
)
# One after the other by their length; those of length n begin at _MISSING_STARTS[n].
_MISSING_LETTERS = np.frombuffer(
    "".join(sorted(MISSING_WORDS, key=len)).encode(), dtype=np.uint8
)
_MISSING_STARTS = np.array(
    [
        sum(len(word) for word in MISSING_WORDS if len(word) < length)
        for length in range(max(map(len, MISSING_WORDS)) + 2)
    ]
)


@compiled
def _is_word(text: Bytes, begin: int, end: int, word: Bytes) -> bool:
    """Whether the bytes are a word of lower-case letters, in any case."""
    if end - begin != word.size:
        return False
    for offset in range(word.size):
        if text[begin + offset] | 32 != word[offset]:
            return False
    return True


@compiled
def _lower(byte: int) -> int:
    return byte + 32 if 65 <= byte <= 90 else byte


@compiled
def is_missing(text: Bytes, begin: int, end: int) -> bool:
    """Whether a field of a CSV file stands for no value."""
    size = end - begin
    if size == 0:
        return True
    if size >= _MISSING_STARTS.size - 1:
        return False
    for start in range(_MISSING_STARTS[size], _MISSING_STARTS[size + 1], size):
        offset = 0
        while (
            offset < size
            and _lower(text[begin + offset]) == _MISSING_LETTERS[start + offset]
        ):
            offset += 1
        if offset == size:
            return True
    return False


@compiled
def _product_error(a: float, b: float, product: float) -> float:
    """Return ``a * b - product``, exactly, for their rounded product (Dekker 1971)."""
    scaled = 134217729.0 * a
    a_high = scaled - (scaled - a)
    a_low = a - a_high
    scaled = 134217729.0 * b
    b_high = scaled - (scaled - b)
    b_low = b - b_high
    return (
        (a_high * b_high - product) + a_high * b_low + a_low * b_high
    ) + a_low * b_low


@compiled
def _long_number(mantissa: int, exponent: int) -> tuple[int, float]:
    """Return an integer below 10**18 times a power of ten from -22 to 22.

    The first operation leaves a remainder that is known exactly; where the bounds of
    what it adds round to the same number, that is the number, else it is LONG.
    """
    high = float(mantissa)
    low = float(mantissa - np.int64(high))
    power = _POWERS[abs(exponent)]
    if exponent < 0:
        first = high / power
        product = first * power
        error = _product_error(first, power, product)
        rest = ((high - product) - error + low) / power
        doubt = abs(rest)
    else:
        first = high * power
        error = _product_error(high, power, first)
        rest = error + low * power
        doubt = abs(error) + abs(low * power)
    doubt *= 2.0**-48
    value = first + (rest - doubt)
    return (EXACT, value) if value == first + (rest + doubt) else (LONG, 0.0)


@compiled
def parse_number(text: Bytes, begin: int, end: int) -> tuple[int, float]:
    """Return how a number came out, and the number where it is exact.

    An integer up to 2**53 times or over a power of ten up to 10**22 takes one
    correctly rounded operation (Clinger 1990); what has more digits is LONG.
    """
    position = begin
    negative = False
    if position < end and (text[position] == 43 or text[position] == 45):
        negative = text[position] == 45
        position += 1
    mantissa: Any = np.int64(0)
    exponent = 0
    found = point = cut = False
    while position < end:
        byte = text[position]
        if 48 <= byte <= 57:
            found = True
            if mantissa < _MOST_DIGITS:
                mantissa = mantissa * 10 + (np.int64(byte) - 48)
                exponent -= point
            else:
                cut = True
        elif byte == 46 and not point:
            point = True
        else:
            break
        position += 1
    if not found:
        if _is_word(text, position, end, _NAN):
            return EXACT, np.nan
        if _is_word(text, position, end, _INF) or _is_word(
            text, position, end, _INFINITY
        ):
            return EXACT, -np.inf if negative else np.inf
        return NO_NUMBER, 0.0
    if position < end and text[position] | 32 == 101:
        position += 1
        sign = 1
        if position < end and (text[position] == 43 or text[position] == 45):
            sign = -1 if text[position] == 45 else 1
            position += 1
        if position == end:
            return NO_NUMBER, 0.0
        power: Any = 0
        while position < end and 48 <= text[position] <= 57:
            power = min(power * 10 + (np.int64(text[position]) - 48), 99999)
            position += 1
        exponent += sign * power
    if position != end:
        return NO_NUMBER, 0.0
    if cut or mantissa > 2**53 or exponent > 22 or exponent < -22:
        if not cut and mantissa != 0 and -22 <= exponent <= 22:
            outcome, value = _long_number(mantissa, exponent)
            return outcome, -value if negative else value
        if cut or mantissa != 0:
            return LONG, 0.0
        exponent = 0
    value = float(mantissa)
    value = value * _POWERS[exponent] if exponent >= 0 else value / _POWERS[-exponent]
    return EXACT, -value if negative else value
