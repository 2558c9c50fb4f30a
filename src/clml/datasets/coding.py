"""From the columns of a file to the matrix of a learner and the indicator of labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ._attributes import DATE, NOMINAL, NUMERIC, STRING, Attribute, meanings
from ._csr import csr_of
from ._dates import seconds_since_1970, strptime_format
from ._limits import LABEL_BYTES, NAME_BYTES, check_size
from .files import fail
from .table import Table

# In fewer rows than these, values that never repeat are no sign of an identifier.
_FEWEST_ROWS = 11
# What an entry of a sparse matrix takes while it is made.
_ENTRY_BYTES = 80
# Rows whose labels are looked at together.
_BLOCK = 4096


@dataclass(frozen=True)
class Coded:
    """Features and labels of a table, ready for :func:`make_bunch`."""

    X: Any
    Y: NDArray[np.int64]
    feature_names: list[str]
    categorical: NDArray[np.bool_]
    notes: list[str]
    dropped: dict[str, NDArray]


@dataclass(frozen=True)
class _Feature:
    """How one attribute becomes columns of X.

    ``targets`` holds for each code of a nominal the column it sets to 1, -1 for none;
    None where the value itself is the (only) column's.
    """

    attribute: int
    names: tuple[str, ...]
    categorical: bool
    targets: tuple[int, ...] | None = None


def reserve(table: Table, needed: int, what: str, remedy: str) -> None:
    """Refuse what, with all that was reserved before, would take too much memory."""
    table.reserved += needed
    check_size(table.path, table.n_bytes, table.reserved, what, remedy)


# --- preparing columns ---------------------------------------------------------


def _replace_codes(table: Table, column: int, lookup: NDArray[np.float64]) -> None:
    """Put ``lookup[code]`` for the codes of a column, in place."""
    if table.cells is not None:
        where, store = np.arange(table.n_rows), table.cells[:, column]
    else:
        where, store = table.entries_of(column), table.entries_by_row()[1]
    codes = store[where]
    known = ~np.isnan(codes)
    codes[known] = lookup[codes[known].astype(np.int64)]
    store[where] = codes


def _read_dates(table: Table, column: int) -> None:
    attribute = table.attributes[column]
    try:
        date_format = strptime_format(attribute.date_format)
    except ValueError as error:
        raise fail(table.path, f"attribute {attribute.name!r}: {error}.") from None
    seconds: list[float] = []
    for text in table.texts.get(column, []):
        if not text and not seconds and table.cells is None:
            seconds.append(0.0)  # what a sparse row does not list
            continue
        try:
            seconds.append(seconds_since_1970(text, date_format))
        except (ValueError, OverflowError):
            row = np.flatnonzero(table.column(column) == len(seconds))[0]
            raise fail(
                table.path,
                f"attribute {attribute.name!r} expects dates as "
                f"{attribute.date_format!r}, got {text[:40]!r}.",
                table.line_of(int(row)),
            ) from None
    _replace_codes(table, column, np.array(seconds))


def _words(table: Table, column: int) -> NDArray:
    """Return the texts or values of a column, missing ones empty."""
    values = table.attributes[column].values
    codes = table.column(column)
    words = np.array([*values, ""], dtype=object)
    return words[np.where(np.isnan(codes), len(values), codes).astype(np.int64)]


def reason_to_drop(table: Table, column: int) -> str | None:
    """Return why a column is no feature, None for one that is."""
    attribute = table.attributes[column]
    n_rows = table.n_rows
    if attribute.kind == STRING:
        return "it is text"
    if attribute.kind != NOMINAL or not _FEWEST_ROWS <= n_rows <= len(attribute.values):
        return None
    codes = table.column(column)
    if np.isnan(codes).any() or len(np.unique(codes)) < n_rows:
        return None
    return f"it has another value in each of the {n_rows} rows, an identifier"


# --- planning ------------------------------------------------------------------


def _plan_nominal(number: int, attribute: Attribute, onehot: bool) -> _Feature:
    name, values = attribute.name, attribute.values
    if not onehot:
        return _Feature(number, (name,), True)
    told = meanings(values)
    if told is not None:
        return _Feature(number, (name,), True, tuple(0 if m else -1 for m in told))
    if len(values) == 2:
        return _Feature(number, (f"{name}={values[1]}",), True, (-1, 0))
    names = tuple(f"{name}={value}" for value in values)
    return _Feature(number, names, True, tuple(range(len(values))))


def _plan(
    table: Table, labels: set[int], onehot: bool, drop_identifiers: bool
) -> tuple[list[_Feature], list[str], dict[str, NDArray]]:
    features: list[_Feature] = []
    notes: list[str] = []
    dropped: dict[str, NDArray] = {}
    for number, attribute in enumerate(table.attributes):
        if number in labels:
            continue
        name, kind = attribute.name, attribute.kind
        reason = reason_to_drop(table, number) if drop_identifiers else None
        if reason:
            notes.append(f"{name!r} was left out: {reason}.")
            reserve(
                table,
                8 * table.n_rows,
                "What was left out of the features",
                "Take the text attributes out of the file.",
            )
            dropped[name] = _words(table, number)
        elif kind in (NUMERIC, DATE):
            features.append(_Feature(number, (name,), False))
        else:
            features.append(_plan_nominal(number, attribute, onehot))
    reserve(
        table,
        sum(NAME_BYTES + len(n) for feature in features for n in feature.names),
        "The names of the coded features",
        'Pass nominals="codes" to keep one column for each attribute.',
    )
    return features, notes, dropped


# --- features ------------------------------------------------------------------


def _missing_stays_missing(feature: _Feature) -> bool:
    """Whether a missing value is NaN: not so where it is the absence of all values."""
    return len(feature.names) == 1


def _dense_features(table: Table, features: list[_Feature]) -> NDArray[np.float64]:
    assert table.cells is not None
    n_columns = sum(len(feature.names) for feature in features)
    reserve(
        table,
        8 * table.n_rows * n_columns,
        f"The {n_columns:,} columns of the coded features",
        'Pass nominals="codes" to keep one column for each attribute.',
    )
    # Columns that are copied as they are go in one sweep over the rows.
    begins = np.cumsum([0, *(len(feature.names) for feature in features)])
    plain = [n for n, feature in enumerate(features) if len(feature.names) == 1]
    X = np.zeros((table.n_rows, n_columns))
    X[:, begins[plain]] = table.cells[:, [features[n].attribute for n in plain]]
    for feature, begin in zip(features, begins[:-1], strict=True):
        targets = feature.targets
        if targets is None or targets == (-1, 0):
            continue
        codes = table.cells[:, feature.attribute]
        if len(feature.names) == 1:
            sets = np.array([target == 0 for target in targets], dtype=np.float64)
            known = ~np.isnan(codes)
            X[known, begin] = sets[codes[known].astype(np.int64)]
        else:
            rows = np.flatnonzero(~np.isnan(codes))
            X[rows, begin + codes[rows].astype(np.int64)] = 1.0
    return X


def _sparse_features(table: Table, features: list[_Feature]) -> sparse.csr_array:
    attribute_of, entries, indptr = table.entries_by_row()
    n_columns = sum(len(feature.names) for feature in features)
    begins = np.cumsum([0, *(len(feature.names) for feature in features)])
    # For each attribute the column of its value; -1: no feature or not so simple.
    column_of = np.full(len(table.attributes), -1, dtype=np.int32)
    others = []
    for feature, begin in zip(features, begins[:-1], strict=True):
        if feature.targets is None or feature.targets == (-1, 0):
            column_of[feature.attribute] = begin
        elif feature.targets:  # a nominal without values has no columns
            others.append((feature, begin))
    columns = column_of[attribute_of]
    kept = (columns >= 0) & (entries != 0)
    ends = np.concatenate([[0], np.cumsum(kept)])[indptr]
    X = csr_of(entries[kept], columns[kept], ends, n_columns)
    if others:
        X = X + _other_columns(table, others, n_columns)
        X.sort_indices()
    return X


def _other_columns(
    table: Table, features: list[tuple[_Feature, int]], n_columns: int
) -> sparse.csr_array:
    """Code nominals whose omitted value sets a column to 1: nearly every row has it."""
    reserve(
        table,
        _ENTRY_BYTES * table.n_rows * len(features),
        f"The columns of {len(features):,} nominal features that sparse rows omit",
        'Pass nominals="codes" to keep their codes, which are 0 where omitted.',
    )
    rows, columns, values = [], [], []
    for feature, begin in features:
        assert feature.targets is not None
        codes = table.column(feature.attribute).copy()
        missing = np.isnan(codes)
        codes[missing] = 0
        targets = np.array(feature.targets, dtype=np.int64)[codes.astype(np.int64)]
        column = np.where(targets >= 0, begin + targets, -1)
        column[missing] = begin if _missing_stays_missing(feature) else -1
        here = np.flatnonzero(column >= 0)
        rows.append(here.astype(np.int32))
        columns.append(column[here].astype(np.int32))
        values.append(np.where(missing[here], np.nan, 1.0))
    where = (np.concatenate(rows), np.concatenate(columns))
    shape = (table.n_rows, n_columns)
    return sparse.csr_array((np.concatenate(values), where), shape=shape)


# --- labels --------------------------------------------------------------------


def _says_yes_first(table: Table, column: int) -> bool:
    """Return whether code 0 of a label means yes; a numeric label is its own value."""
    attribute = table.attributes[column]
    if attribute.kind == NUMERIC:
        return False
    told = meanings(attribute.values) if attribute.kind == NOMINAL else None
    if told is None:
        got = attribute.kind
        if attribute.values:
            got += f" with the values {list(attribute.values[:8])}"
        raise fail(
            table.path,
            f"the label {attribute.name!r} must be numeric or have two values that "
            f"say yes and no, such as 0 and 1; it is {got}.",
        )
    return told[0] == 1


def _checked_labels(
    table: Table,
    values: NDArray[np.float64],
    missing_labels: str,
    place: Callable[[int], tuple[int, int]],
) -> NDArray[np.float64]:
    """Return values of labels, checked; ``place`` gives row and attribute of one."""
    if missing_labels == "negative":
        values = np.where(np.isnan(values), 0.0, values)
    bad = np.flatnonzero((values != 0) & (values != 1))
    if bad.size:
        row, column = place(int(bad[0]))
        name, value = table.attributes[column].name, values.flat[bad[0]]
        message = f"the label {name!r} must be 0 or 1, got {value:g}."
        if np.isnan(value):
            message = (
                f"the value of the label {name!r} is missing; pass "
                'missing_labels="negative" to take missing labels as absent.'
            )
        raise fail(table.path, message, table.line_of(row))
    return values


def _indicator(
    table: Table, labels: Sequence[int], missing_labels: str
) -> NDArray[np.int64]:
    n_rows, n_labels = table.n_rows, len(labels)
    reserve(
        table,
        LABEL_BYTES * n_rows * n_labels,
        f"The dense indicator of {n_rows:,} rows and {n_labels:,} labels",
        "Name fewer labels.",
    )
    yes_first = np.array([_says_yes_first(table, c) for c in labels], dtype=bool)
    Y = np.zeros((n_rows, n_labels), dtype=np.int64)
    if table.cells is not None:
        for begin in range(0, n_rows, _BLOCK):
            block = slice(begin, begin + _BLOCK)
            values = table.cells[block][:, labels]
            values[:, yes_first] = 1 - values[:, yes_first]

            def place(at: int, begin: int = begin) -> tuple[int, int]:
                return begin + at // n_labels, labels[at % n_labels]

            Y[block] = _checked_labels(table, values, missing_labels, place)
        return Y
    columns, entries, indptr = table.entries_by_row()
    label_of = np.full(len(table.attributes), -1, dtype=np.int32)
    label_of[labels] = np.arange(n_labels)
    where = np.flatnonzero(label_of[columns] >= 0)
    label = label_of[columns[where]]
    rows = np.searchsorted(indptr, where, side="right") - 1
    values = np.where(yes_first[label], 1 - entries[where], entries[where])
    Y[:, yes_first] = 1  # what is not listed has code 0
    Y[rows, label] = _checked_labels(
        table, values, missing_labels, lambda at: (rows[at], labels[label[at]])
    )
    return Y


# --- all of it -----------------------------------------------------------------


def code_table(
    table: Table,
    labels: Sequence[int],
    *,
    nominals: str = "onehot",
    drop_identifiers: bool = True,
    missing_labels: str = "error",
) -> Coded:
    """Return features and labels of a table.

    Parameters
    ----------
    table : Table
        Its date columns become seconds, in place.
    labels : sequence of int
        The attributes that are labels, in the order of the columns of Y.
    nominals : {"onehot", "codes"}
    drop_identifiers : bool
    missing_labels : {"error", "negative"}
    """
    Y = _indicator(table, labels, missing_labels)
    attributes = list(table.attributes)
    for column, attribute in enumerate(attributes):
        if attribute.kind == DATE:
            _read_dates(table, column)
        elif attribute.kind == STRING:
            # What no row of a sparse file lists is the empty text in all of them.
            absent = () if table.cells is not None else ("",)
            values = tuple(table.texts.get(column, absent))
            attributes[column] = replace(attribute, values=values)
    table.attributes = attributes
    features, notes, dropped = _plan(
        table, set(labels), nominals == "onehot", drop_identifiers
    )
    code = _dense_features if table.cells is not None else _sparse_features
    return Coded(
        X=code(table, features),
        Y=Y,
        feature_names=[name for feature in features for name in feature.names],
        categorical=np.repeat(
            np.array([feature.categorical for feature in features], dtype=bool),
            [len(feature.names) for feature in features],
        ),
        notes=notes,
        dropped=dropped,
    )
