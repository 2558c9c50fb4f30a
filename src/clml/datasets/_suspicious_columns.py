"""Columns of text that nearly are numbers: one stray word must not go unnoticed."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ._attributes import NOMINAL, meanings
from .columns import is_row_names, number_of_text
from .files import PathLike
from .table import Table

# A warning describes so many columns; ``notes`` holds them all.
_MOST_SHOWN = 8


def _are_most(n_numbers: int, total: int) -> bool:
    """Whether so many of the values are numbers that the others may be a slip."""
    return 10 * n_numbers >= 9 * total


def _numbers(
    values: Sequence[str], counts: Sequence[int], signs: tuple[str, str]
) -> NDArray[np.bool_] | None:
    """Return which values are numbers with each decimal sign, (2, n_counts).

    None where too many are so with neither. ``counts`` has no entries for the last
    values, where these do not occur.
    """
    found: tuple[list[bool], list[bool]] = ([], [])
    total, n_others = sum(counts), 0
    for value, count in zip(values, counts, strict=False):
        for numbers, sign in zip(found, signs, strict=True):
            numbers.append(number_of_text(value, sign) is not None)
        if not (found[0][-1] or found[1][-1]):
            n_others += count
            # Most columns of text are seen to be that after a few values.
            if not _are_most(total - n_others, total):
                return None
    return np.array(found, dtype=bool)


def _doubt(table: Table, number: int, decimal: str | None) -> str | None:
    """Return what is doubtful about a column of text, None if nothing is."""
    name, values = table.attributes[number].name, table.attributes[number].values
    codes = table.column(number)
    rows = np.flatnonzero(~np.isnan(codes))
    counts = np.bincount(codes[rows].astype(np.int64))
    total = len(rows)
    sign = "." if decimal is None else decimal
    other_sign = "," if sign == "." else "."
    numbers = _numbers(values, counts.tolist(), (sign, other_sign))
    if numbers is None:
        return None
    n_numbers, n_with_other_sign = (int(counts[found].sum()) for found in numbers)
    by_sign = n_with_other_sign > n_numbers
    n_most = n_with_other_sign if by_sign else n_numbers
    if n_numbers == total or not _are_most(n_most, total):
        return None
    wanted = ~numbers[0] & numbers[1] if by_sign else ~numbers[0]
    row = int(rows[np.flatnonzero(wanted[codes[rows].astype(np.int64)])[0]])
    value = values[int(codes[row])][:40]
    line = table.line_of(row)
    first = f"{value!r} in " + (f"row {row}" if line is None else f"line {line}")
    if by_sign:
        found = (
            f"{n_most:,} of its {total:,} values are numbers if "
            f"{other_sign!r} is the decimal sign, first {first}"
        )
        remedy = f"pass decimal={other_sign!r} if it is"
    else:
        found = (
            f"{n_most:,} of its values are numbers, {total - n_most:,} not, first "
            f"{first}"
        )
        remedy = f"pass missing_values=[{value!r}] if that stands for no value"
    if decimal is None:
        remedy = "make it numeric if it is one, or declare it a category"
    else:
        remedy += "; if the column is a category, there is nothing to do"
    return f"{name!r} is taken as text: {found}; {remedy}."


def find_doubts(
    table: Table, texts: Iterable[int], decimal: str | None
) -> dict[int, str]:
    """Return for each doubtful column what is said of it.

    Parameters
    ----------
    table : Table
        Dense.
    texts : iterable of int
        The columns whose values are free text; a declared category is not doubtful.
    decimal : {".", ",", None}
        The decimal sign; None where the reader has no such option.
    """
    doubts = {}
    for number in texts:
        attribute = table.attributes[number]
        if attribute.kind != NOMINAL:
            continue
        if len(attribute.values) <= 2 and meanings(attribute.values):
            continue
        if is_row_names(attribute.name, number):
            continue
        doubt = _doubt(table, number, decimal)
        if doubt is not None:
            doubts[number] = doubt
    return doubts


def _level_of_caller() -> int:
    """Return the ``stacklevel`` of the first caller outside this library."""
    library = __name__.partition(".")[0]
    frame, level = sys._getframe(1), 1
    while (
        frame.f_back is not None
        and frame.f_globals.get("__name__", "").partition(".")[0] == library
    ):
        frame, level = frame.f_back, level + 1
    return level


def warn_of_doubts(path: PathLike, doubts: Mapping[int, str]) -> None:
    """Warn once of all doubtful columns."""
    if not doubts:
        return
    shown = list(doubts.values())[:_MOST_SHOWN]
    if len(doubts) > len(shown):
        shown.append(f"So are {len(doubts) - len(shown):,} further columns: see notes.")
    message = "\n".join(shown)
    warnings.warn(f"{path}: {message}", UserWarning, stacklevel=_level_of_caller())
