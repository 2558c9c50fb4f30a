"""What a column is, and what is made of it: the one place that lists both.

A further kind of column (the categories of a data frame) is a member here, a rule in
``ColumnSummary.kinds`` that says which columns are of it, and a line in
``Encoding.fit_summary`` that says what becomes of it.
"""

from __future__ import annotations

from enum import IntEnum


class ColumnKind(IntEnum):
    """What the training rows say a column is. Missing values are no kind of their own.

    Attributes
    ----------
    EMPTY : int
        No row has a value.
    CONSTANT : int
        Values differ by rounding at most, or are all below 1e-270.
    INDICATOR : int
        Both 0 and 1 occur, and nothing else.
    TWO_VALUED : int
        Two values occur that are not 0 and 1.
    NUMBER : int
        Three values or more.
    """

    EMPTY = 0
    CONSTANT = 1
    INDICATOR = 2
    TWO_VALUED = 3
    NUMBER = 4


class Code(IntEnum):
    """What is made of a column, beside the indicator of its missing values.

    The numbers are part of saved states: a new code gets a new number.

    Attributes
    ----------
    NONE : int
        Nothing: it takes no encoded column.
    PLAIN : int
        The value itself.
    STANDARD : int
        (x − shift) / scale.
    CLIPPED : int
        The same, smoothly bounded by a limit.
    LEVELS : int
        A table's level, interpolated between its knots.
    RAMPS : int
        One column for each interval between knots: 0 below it, 1 above it.
    STANDARD_AND_RAMPS : int
        Both.
    """

    NONE = 0
    PLAIN = 1
    STANDARD = 2
    CLIPPED = 3
    LEVELS = 4
    RAMPS = 5
    STANDARD_AND_RAMPS = 6
