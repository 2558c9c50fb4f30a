"""Attributes: what the columns of a file are called and may hold."""

from __future__ import annotations

import re
from dataclasses import dataclass

NUMERIC, NOMINAL, STRING, DATE = "numeric", "nominal", "string", "date"

# What the two values of a nominal mean, whichever of them is declared first.
_ABSENT = {"no", "false", "n", "f", "absent", "negative", "neg", "off"}
_PRESENT = {"yes", "true", "y", "t", "present", "positive", "pos", "on"}
# 0 and -1 say no, 1 says yes, as whole numbers or not.
_NUMBER = re.compile(r"[+-]?0*([01])(?:\.0*)?")


@dataclass(frozen=True, slots=True)
class Attribute:
    """One column of a file.

    Attributes
    ----------
    name : str
    kind : str
        "numeric", "nominal", "string" or "date".
    values : tuple of str
        Those a nominal may take, in the declared order.
    date_format : str
        Of a date, in the letters of the file's format.
    """

    name: str
    kind: str = NUMERIC
    values: tuple[str, ...] = ()
    date_format: str = ""


def meaning(value: str) -> int | None:
    """Return 1 for a value that says yes, 0 for one that says no, else None.

    Examples
    --------
    >>> from clml.datasets._attributes import meaning
    >>> meaning("YES"), meaning("0.0"), meaning("-1"), meaning("red")
    (1, 0, 0, None)
    """
    word = value.strip().lower()
    if word in _PRESENT:
        return 1
    if word in _ABSENT:
        return 0
    match = _NUMBER.fullmatch(word)
    if match is None:
        return None
    return 1 if match[1] == "1" and not word.startswith("-") else 0


def meanings(values: tuple[str, ...]) -> tuple[int, ...] | None:
    """Return what at most two values mean, or None where they do not say it."""
    found = tuple(m for m in map(meaning, values) if m is not None)
    told = len(found) == len(values) and len(set(found)) == len(found)
    return found if told and 1 <= len(values) <= 2 else None
