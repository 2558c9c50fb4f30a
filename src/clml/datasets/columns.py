"""Named columns of any source: their kinds, which are labels, all in one table."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.names import shown
from ._attributes import NOMINAL, Attribute
from .files import PathLike, fail
from .table import Table

# What frames call their row names where they store them as a column.
_ROW_NAMES = re.compile(r"|__index_level_\d+__")


@dataclass(frozen=True)
class Column:
    """One column of a source.

    Attributes
    ----------
    attribute : Attribute
        Numeric or nominal.
    values : float64 array (n_rows,)
        Numbers, or places among the values of the attribute; NaN is missing.
    is_text : bool
        Whether it was text, which nobody has declared to be a category.
    """

    attribute: Attribute
    values: NDArray[np.float64]
    is_text: bool = False


def number_of_text(text: str, decimal: str = ".") -> float | None:
    """Return the number that a text is, None if it is none.

    Examples
    --------
    >>> from clml.datasets.columns import number_of_text
    >>> number_of_text("-2.5e3"), number_of_text("2,5", ","), number_of_text("2 m")
    (-2500.0, 2.5, None)
    """
    if decimal != ".":
        if "." in text:
            return None
        text = text.replace(decimal, ".")
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def word_of_number(value: float) -> str:
    """Return a number as text, as short as it can be."""
    return repr(float(value)).removesuffix(".0")


def lookup_codes(
    codes: NDArray[np.float64], lookup: Sequence[float] | NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return ``lookup[code]`` for each code, NaN for NaN."""
    extended = np.append(np.asarray(lookup, dtype=np.float64), np.nan)
    missing = len(extended) - 1
    return extended[np.where(np.isnan(codes), missing, codes).astype(np.int64)]


def nominal_column(
    name: str,
    values: Sequence[Any],
    codes: NDArray[np.float64],
    is_text: bool = False,
) -> Column:
    """Return a nominal whose values are sorted, so that rows may come in any order.

    Parameters
    ----------
    name : str
    values : sequence
        The different values by code; they are sorted before they become text, so
        that numbers among themselves stay in their order.
    codes : float64 array (n_rows,)
        NaN is a missing value.
    is_text : bool
        As in :class:`Column`.
    """
    try:
        order = sorted(range(len(values)), key=values.__getitem__)
    except TypeError:  # values of several types
        order = sorted(range(len(values)), key=lambda code: str(values[code]))
    places = np.empty(len(values))
    places[order] = np.arange(len(values))
    texts = tuple(str(values[code]) for code in order)
    return Column(Attribute(name, NOMINAL, texts), lookup_codes(codes, places), is_text)


def boolean_column(name: str, codes: NDArray[np.float64]) -> Column:
    """Return a nominal of no and yes, coded as 0 and 1 (NaN is missing)."""
    return Column(Attribute(name, NOMINAL, ("False", "True")), codes)


def is_row_names(name: str, number: int) -> bool:
    """Whether a column, by its name and number, holds what frames call an index."""
    return bool(_ROW_NAMES.fullmatch(name)) and (number == 0 or bool(name))


def check_names(path: PathLike, names: Sequence[str], line: int | None = None) -> None:
    """Refuse names that stand twice."""
    first: dict[str, int] = {}
    for number, name in enumerate(names, start=1):
        if name in first:
            raise fail(
                path,
                f"the columns {first[name]} and {number} are both named {name!r}.",
                line,
            )
        first[name] = number


def there_are(names: Sequence[str], delimiter: str | None = None) -> str:
    """Return which columns there are, for an error that misses one."""
    if len(names) == 1 and delimiter is not None:
        return (
            f"there is only one column, {names[0][:80]!r}: is delimiter="
            f"{delimiter!r} what parts the fields?"
        )
    return f"the columns are {shown(names)}."


def choose_labels(
    path: PathLike,
    names: Sequence[str],
    labels: Any,
    label_prefix: str | None,
    delimiter: str | None = None,
) -> list[int]:
    """Return the numbers of the columns that are labels.

    Parameters
    ----------
    path : str or path
        Named in errors.
    names : sequence of str
        Of all columns, each once.
    labels : str, sequence of str, or None
        One name or several; the columns come in this order.
    label_prefix : str or None
        Instead of names, what the names of all labels begin with.
    delimiter : str or None
        What parted the names, where they were parted.
    """
    if (labels is None) == (label_prefix is None):
        given = "neither" if labels is None else "both"
        raise ValueError(
            "Expected either labels (the names of the columns that are labels) or "
            f"label_prefix (what their names begin with), got {given}."
        )
    if label_prefix is not None:
        if not isinstance(label_prefix, str) or not label_prefix:
            raise ValueError(
                f"label_prefix must be text that is not empty, got {label_prefix!r}."
            )
        found = [n for n, name in enumerate(names) if name.startswith(label_prefix)]
        if not found:
            raise fail(
                path,
                f"no column begins with label_prefix={label_prefix!r}; "
                + there_are(names, delimiter),
            )
        return found
    if not isinstance(labels, str) and not hasattr(labels, "__len__"):
        raise TypeError(
            "labels must be a name or a sequence of names, got "
            f"{type(labels).__name__}."
        )
    wanted = [labels] if isinstance(labels, str) else [str(name) for name in labels]
    if not wanted:
        raise ValueError("labels must name at least one column, got none.")
    number_of = {name: number for number, name in enumerate(names)}
    for name in wanted:
        if name not in number_of:
            raise fail(
                path,
                f"there is no column for the label {name!r}; "
                + there_are(names, delimiter),
            )
    if len(set(wanted)) != len(wanted):
        raise ValueError(f"labels must name each column once, got {wanted!r}.")
    return [number_of[name] for name in wanted]


def table_of_columns(
    path: PathLike,
    columns: Sequence[Column],
    n_rows: int,
    n_bytes: int | None = None,
    line_of: Callable[[int], int | None] = lambda row: None,
) -> Table:
    """Return columns as a dense table; ``n_bytes`` None: the size of its cells."""
    cells = np.empty((n_rows, len(columns)))
    for number, column in enumerate(columns):
        cells[:, number] = column.values
    return Table(
        path=path,
        attributes=[column.attribute for column in columns],
        weights=np.ones(n_rows),
        n_bytes=cells.nbytes if n_bytes is None else n_bytes,
        line_of=line_of,
        cells=cells,
    )
