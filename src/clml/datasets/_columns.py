"""Named columns of any source, made ready for coding: kinds, labels, one table."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from ._attributes import NOMINAL, STRING, Attribute
from ._bunch import make_bunch
from ._coding import Coded, code_table
from ._files import PathLike, fail
from ._table import Table

# What frames call their row names where they store them as a column.
_ROW_NAMES = re.compile(r"|__index_level_\d+__")

Column = tuple[Attribute, NDArray[np.float64]]


def lookup_codes(
    codes: NDArray[np.float64], lookup: Sequence[float] | NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return ``lookup[code]`` for each code, NaN for NaN."""
    extended = np.append(np.asarray(lookup, dtype=np.float64), np.nan)
    missing = len(extended) - 1
    return extended[np.where(np.isnan(codes), missing, codes).astype(np.int64)]


def nominal_column(
    name: str, values: Sequence[Any], codes: NDArray[np.float64]
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
    """
    try:
        order = sorted(range(len(values)), key=values.__getitem__)
    except TypeError:  # values of several types
        order = sorted(range(len(values)), key=lambda code: str(values[code]))
    places = np.empty(len(values))
    places[order] = np.arange(len(values))
    texts = tuple(str(values[code]) for code in order)
    return Attribute(name, NOMINAL, texts), lookup_codes(codes, places)


def boolean_column(name: str, codes: NDArray[np.float64]) -> Column:
    """Return a nominal of no and yes, coded as 0 and 1 (NaN is missing)."""
    return Attribute(name, NOMINAL, ("False", "True")), codes


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


def choose_labels(
    path: PathLike, names: Sequence[str], labels: Any, label_prefix: str | None
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
            raise fail(path, f"no column begins with label_prefix={label_prefix!r}.")
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
            raise fail(path, f"there is no column for the label {name!r}.")
    if len(set(wanted)) != len(wanted):
        raise ValueError(f"labels must name each column once, got {wanted!r}.")
    return [number_of[name] for name in wanted]


def set_row_names_aside(table: Table, labels: Sequence[int]) -> None:
    """Make text of the columns that are row names, in place: no feature, but kept."""
    attributes = list(table.attributes)
    for number, attribute in enumerate(attributes):
        if is_row_names(attribute.name, number) and number not in labels:
            assert table.cells is not None
            cells = table.cells[:, number]
            known = ~np.isnan(cells)
            different, codes = np.unique(cells[known], return_inverse=True)
            if attribute.kind == NOMINAL:
                words = [attribute.values[int(code)] for code in different]
            else:
                words = [f"{value:.17g}" for value in different]
            cells[known] = codes
            table.texts[number] = words
            attributes[number] = Attribute(attribute.name, STRING)
    table.attributes = attributes


def table_of_columns(
    path: PathLike,
    columns: Sequence[Column],
    n_rows: int,
    n_bytes: int | None = None,
    line_of: Callable[[int], int | None] = lambda row: None,
) -> Table:
    """Return columns as a dense table; ``n_bytes`` None: the size of its cells."""
    cells = np.empty((n_rows, len(columns)))
    for number, (_, values) in enumerate(columns):
        cells[:, number] = values
    return Table(
        path=path,
        attributes=[attribute for attribute, _ in columns],
        weights=np.ones(n_rows),
        n_bytes=cells.nbytes if n_bytes is None else n_bytes,
        line_of=line_of,
        cells=cells,
    )


def code_columns(
    table: Table,
    labels: Sequence[int],
    *,
    nominals: str,
    drop_identifiers: bool,
    missing_labels: str,
) -> Coded:
    """Return the features and labels of a dense table, which may be changed."""
    if drop_identifiers:
        set_row_names_aside(table, labels)
    return code_table(
        table,
        labels,
        nominals=nominals,
        drop_identifiers=drop_identifiers,
        missing_labels=missing_labels,
    )


def bunch_of_table(
    table: Table, labels: Sequence[int], source: str, **options: Any
) -> Bunch:
    """Return the coded table with names and figures; the table may be changed."""
    coded = code_columns(table, labels, **options)
    return make_bunch(
        coded.X,
        coded.Y,
        feature_names=coded.feature_names,
        label_names=[table.attributes[column].name for column in labels],
        categorical=coded.categorical,
        n_features=len(table.attributes) - len(labels),
        source=source,
        notes=coded.notes,
        dropped=coded.dropped,
        label_parents=None,
        sample_weight=None,
    )
