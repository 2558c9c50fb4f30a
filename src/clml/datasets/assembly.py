"""From a table of columns to a Bunch: what is left out, how the rest is coded."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from ._attributes import NOMINAL
from ._suspicious_columns import find_doubts, warn_of_doubts
from .bunch import make_bunch
from .coding import Coded, code_table, reason_to_drop, reserve
from .columns import is_row_names, word_of_number
from .schema import Schema, find_features, follow_schema, make_schema
from .table import Table

# What a number takes as text, and its place among the values of a column.
_WORD_BYTES = 72
# Rows whose columns are moved together.
_BLOCK = 4096


def _reason(table: Table, number: int, schema: Schema | None) -> str | None:
    """Return why a column that is no label is left out, None if it is a feature."""
    name = table.attributes[number].name
    if is_row_names(name, number):
        return "it holds row names"
    if schema is None:
        return reason_to_drop(table, number)
    left_out = name in schema["dropped"]
    return "like leaves it out too" if left_out else "like does not have it"


def _words(table: Table, number: int) -> NDArray:
    """Return the values of a column as text, missing ones empty."""
    attribute, cells = table.attributes[number], table.column(number)
    known = ~np.isnan(cells)
    different, codes = np.unique(cells[known], return_inverse=True)
    if attribute.kind == NOMINAL:
        texts = [attribute.values[int(code)] for code in different]
    else:
        texts = [word_of_number(value) for value in different]
    words = np.full(table.n_rows, "", dtype=object)
    words[known] = np.array(texts, dtype=object)[codes]
    return words


def _select(table: Table, numbers: Sequence[int]) -> None:
    """Keep some columns of a dense table in a new order, in place."""
    assert table.cells is not None
    for begin in range(0, table.n_rows, _BLOCK):
        rows = table.cells[begin : begin + _BLOCK]
        rows[:, : len(numbers)] = rows[:, numbers]
    table.cells = table.cells[:, : len(numbers)]
    table.attributes = [table.attributes[number] for number in numbers]


def _take_out(
    table: Table, reasons: Mapping[int, str]
) -> tuple[list[str], dict[str, NDArray]]:
    """Return notes on what is left out, and its values as text."""
    reserve(
        table,
        _WORD_BYTES * table.n_rows * len(reasons),
        "What was left out of the features",
        "Take the columns of text out of the data.",
    )
    notes, dropped = [], {}
    for number, reason in reasons.items():
        name = table.attributes[number].name
        who = repr(name) if name else "The first column, which has no name,"
        notes.append(f"{who} was left out: {reason}.")
        dropped[name] = _words(table, number)
    return notes, dropped


def code_columns(
    table: Table,
    labels: Sequence[int],
    *,
    nominals: str,
    drop_identifiers: bool,
    missing_labels: str,
    like: Schema | None,
    unknown: str,
    texts: Collection[int] = (),
    decimal: str | None = None,
    missing_values: Sequence[str] = (),
) -> tuple[Coded, dict[str, Any]]:
    """Return features and labels of a dense table, and their schema.

    Parameters
    ----------
    table : Table
        It may be changed.
    labels : sequence of int
        The columns that are labels, in the order of the columns of Y.
    nominals, drop_identifiers, missing_labels
        As in :func:`code_table`.
    like : schema or None
        What an earlier reading decided; None: decide by the data.
    unknown : {"error", "ignore"}
        Whether values that ``like`` does not have are refused or taken as missing.
    texts, decimal
        As in :func:`find_doubts`.
    missing_values : sequence of str
        For the schema.
    """
    label_names = [table.attributes[number].name for number in labels]
    is_label = set(labels)
    others = [n for n in range(len(table.attributes)) if n not in is_label]
    gone: list[str] = []
    reasons: dict[int, str] = {}
    if like is not None:
        names = [attribute.name for attribute in table.attributes]
        features = find_features(table.path, names, is_label, like)
        notes = follow_schema(table, features, like, unknown, decimal)
        nominals = like["nominals"]
        missing_values = like["missing_values"]
        gone = like["dropped"]
        kept = set(features)
    else:
        doubts = find_doubts(table, texts, decimal)
        warn_of_doubts(table.path, doubts)
        notes = list(doubts.values())
        features = others
        # What nearly is a number is no identifier, however its values differ.
        kept = set(doubts) if drop_identifiers else set(others)
    for number in others:
        reason = None if number in kept else _reason(table, number, like)
        if reason is not None:
            reasons[number] = reason
    left_out, dropped = _take_out(table, reasons)
    features = [number for number in features if number not in reasons]
    if features != others:
        _select(table, [*features, *labels])
        labels = range(len(features), len(features) + len(labels))
        features = list(range(len(features)))
    coded = code_table(
        table,
        labels,
        nominals=nominals,
        drop_identifiers=False,
        missing_labels=missing_labels,
    )
    schema = make_schema(
        [table.attributes[number] for number in features],
        dict.fromkeys([*gone, *dropped]),
        label_names,
        nominals,
        missing_values,
    )
    return replace(coded, notes=notes + left_out, dropped=dropped), schema


def bunch_of_table(
    table: Table, labels: Sequence[int], source: str, **options: Any
) -> Bunch:
    """Return the coded table with names and figures; the table may be changed."""
    n_features = len(table.attributes) - len(labels)
    coded, schema = code_columns(table, labels, **options)
    return make_bunch(
        coded.X,
        coded.Y,
        feature_names=coded.feature_names,
        label_names=schema["labels"],
        categorical=coded.categorical,
        n_features=n_features,
        source=source,
        notes=coded.notes,
        dropped=coded.dropped,
        label_parents=None,
        sample_weight=None,
        schema=schema,
    )
