"""Dates in the notation of ARFF files, as seconds since 1970."""

from __future__ import annotations

import re
from datetime import UTC, datetime

# Runs of pattern letters of Java's SimpleDateFormat, and their meaning in strptime.
_DIRECTIVES = {
    "yyyy": "%Y",
    "y": "%Y",
    "yy": "%y",
    "M": "%m",
    "MM": "%m",
    "MMM": "%b",
    "MMMM": "%B",
    "d": "%d",
    "dd": "%d",
    "D": "%j",
    "DDD": "%j",
    "H": "%H",
    "HH": "%H",
    "h": "%I",
    "hh": "%I",
    "m": "%M",
    "mm": "%M",
    "s": "%S",
    "ss": "%S",
    "S": "%f",
    "SS": "%f",
    "SSS": "%f",
    "a": "%p",
    "E": "%a",
    "EE": "%a",
    "EEE": "%a",
    "EEEE": "%A",
    "z": "%Z",
    "Z": "%z",
    "X": "%z",
    "XX": "%z",
    "XXX": "%z",
}
_PIECE = re.compile(r"'((?:[^']|'')*)'|(([A-Za-z])\3*)|([^A-Za-z']+)")


def strptime_format(pattern: str) -> str:
    """Return the strptime format of a Java date pattern.

    Examples
    --------
    >>> from clml.datasets._dates import strptime_format
    >>> strptime_format("yyyy-MM-dd'T'HH:mm:ss")
    '%Y-%m-%dT%H:%M:%S'
    """
    pieces = []
    position = 0
    while position < len(pattern):
        match = _PIECE.match(pattern, position)
        if match is None:
            raise ValueError(f"the date format {pattern!r} has an open quote")
        literal, letters, other = match[1], match[2], match[4]
        if letters is None:
            text = other if literal is None else literal.replace("''", "'") or "'"
            pieces.append(text.replace("%", "%%"))
        elif letters in _DIRECTIVES:
            if _DIRECTIVES[letters] in pieces:
                raise ValueError(f"the date format {pattern!r} has {letters!r} twice")
            pieces.append(_DIRECTIVES[letters])
        else:
            raise ValueError(f"the date format {pattern!r} has the unknown {letters!r}")
        position = match.end()
    return "".join(pieces)


def seconds_since_1970(text: str, date_format: str) -> float:
    """Return a date as seconds since 1970; a date without a zone is taken as UTC.

    Examples
    --------
    >>> from clml.datasets._dates import seconds_since_1970
    >>> seconds_since_1970("1970-01-02", "%Y-%m-%d")
    86400.0
    """
    date = datetime.strptime(text, date_format)
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return date.timestamp()
