r"""Cells of CSV files that people open in a spreadsheet.

A spreadsheet takes text that begins with one of a few signs for a formula and computes
it, wherever the text came from. Names and classes come from strangers' files, so such
text is written with an apostrophe before it. Data files, which must hold names as they
are, are written elsewhere (`clml.datasets.write_csv`).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from numbers import Number
from typing import IO, Any

# Signs of formulas, the wide ones of East Asian keyboards too, behind what a
# spreadsheet passes over; a cell that begins with a tab or a line end may lose it. An
# apostrophe counts as passed over, so that the one we put can be told from the user's.
_FORMULA = re.compile(r"['\s\0\ufeff]*+[=+\-@\uff1d\uff0b\uff0d\uff20]|'*+[\t\r\n]")
_NUMERAL = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf|nan)"
)


def _is_formula(text: str) -> bool:
    # A class named -1 is a number to a spreadsheet, not a formula.
    return _FORMULA.match(text) is not None and _NUMERAL.fullmatch(text) is None


def spreadsheet_text(text: str) -> str:
    """Return text that a spreadsheet shows and does not compute.

    An apostrophe stands before what it would take for a formula; all other text,
    numbers included, is as it was.

    Examples
    --------
    >>> from clml._support.csv_cells import spreadsheet_text
    >>> [spreadsheet_text(text) for text in ("=1+1", "@a", "-0.5", "a=b")]
    ["'=1+1", "'@a", '-0.5', 'a=b']
    """
    return f"'{text}" if _is_formula(text) else text


def original_text(cell: str) -> str:
    """Return what `spreadsheet_text` was given.

    Examples
    --------
    >>> from clml._support.csv_cells import original_text
    >>> [original_text(cell) for cell in ("'=1+1", "-0.5", "it's", "'a'")]
    ['=1+1', '-0.5', "it's", "'a'"]
    """
    return cell[1:] if cell[:1] == "'" and _is_formula(cell[1:]) else cell


class _Lines:
    """A file for `csv.writer`, whose lines end in one character."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, line: str) -> None:
        self._file.write(line[:-2] + "\n")


def write_cells(file: IO[str], rows: Iterable[Iterable[Any]]) -> None:
    r"""Write rows as CSV for a spreadsheet; None is empty.

    Numbers are written such that they come back exactly.

    Examples
    --------
    >>> import sys
    >>> from clml._support.csv_cells import write_cells
    >>> write_cells(sys.stdout, [["=a", "b,c"], [-0.5, None]])
    '=a,"b,c"
    -0.5,
    """
    # Before Python 3.13 only line ends of its own are put in quotes by a writer.
    writer = csv.writer(_Lines(file), lineterminator="\r\n")
    for row in rows:
        writer.writerow(
            [
                cell
                if cell is None or isinstance(cell, Number)
                else spreadsheet_text(str(cell))
                for cell in row
            ]
        )
