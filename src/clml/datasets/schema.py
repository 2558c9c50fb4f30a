"""Coding a second file like a first: what is kept of the first, and following it.

A schema is what a second file must share with the first to be coded alike. It is
plain data that JSON can hold:

- ``features``: the names of the columns that are features, in the order of X;
- ``values``: for each nominal feature its values, in the order of their codes;
- ``dropped``: the names of the columns that were left out;
- ``labels``: the names of the labels;
- ``nominals``: how nominals are coded, "onehot" or "codes";
- ``missing_values``: words that stand for no value beside the usual ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.names import shown
from ._attributes import NOMINAL, Attribute, meaning, meanings
from .columns import number_of_text, there_are, word_of_number
from .files import PathLike, fail
from .table import Table

Schema = Mapping[str, Any]

_UNKNOWN = ("error", "ignore")


def _are_words(entry: Any) -> bool:
    return isinstance(entry, list) and all(isinstance(word, str) for word in entry)


def _are_names(entry: Any) -> bool:
    return _are_words(entry) and len(set(entry)) == len(entry)


def _are_values(entry: Any) -> bool:
    return isinstance(entry, Mapping) and all(map(_are_names, entry.values()))


# How the entries of a schema must be, which may have been in a file meanwhile.
_SHAPE: dict[str, Callable[[Any], bool]] = {
    "features": _are_names,
    "values": _are_values,
    "dropped": _are_names,
    "labels": _are_names,
    "nominals": ("onehot", "codes").__contains__,
    "missing_values": _are_words,
}


# --- the schema itself -----------------------------------------------------------


def make_schema(
    attributes: Sequence[Attribute],
    dropped: Collection[str],
    labels: Sequence[str],
    nominals: str,
    missing_values: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the schema of coded data; ``attributes`` are those of the features."""
    return {
        "features": [attribute.name for attribute in attributes],
        "values": {a.name: list(a.values) for a in attributes if a.kind == NOMINAL},
        "dropped": list(dropped),
        "labels": list(labels),
        "nominals": nominals,
        "missing_values": list(missing_values),
    }


def check_like(like: Any, nominals: str, unknown: Any) -> Schema | None:
    """Return the schema of ``like``, None for None, if the other options agree."""
    if unknown not in _UNKNOWN:
        raise ValueError(f"unknown must be one of {list(_UNKNOWN)}, got {unknown!r}.")
    if like is None:
        return None
    if not isinstance(like, Mapping):
        raise TypeError(
            "like must be data from read_csv, read_parquet or as_dataset, or their "
            f"schema, got {type(like).__name__}."
        )
    schema = like.get("schema", like)
    if not isinstance(schema, Mapping):
        raise TypeError(f"like must have a schema, got {type(schema).__name__}.")
    for key, is_right in _SHAPE.items():
        if not is_right(schema.get(key)):
            raise ValueError(
                "like must be data from read_csv, read_parquet or as_dataset, or "
                f"their schema; the entry {key!r} of a schema is absent or not as "
                f"they make it, the entries are {shown([str(e) for e in schema])}."
            )
    # "onehot" is also what is not given.
    if nominals not in ("onehot", schema["nominals"]):
        raise ValueError(
            f"nominals must be {schema['nominals']!r}, as in like, got {nominals!r}."
        )
    return schema


def find_features(
    path: PathLike,
    names: Sequence[str],
    labels: Collection[int],
    schema: Schema,
) -> list[int]:
    """Return the numbers of the columns that are the features of a schema."""
    number_of = {n: number for number, n in enumerate(names) if number not in labels}
    absent = [name for name in schema["features"] if name not in number_of]
    if absent:
        raise fail(
            path,
            f"there are no columns for the features {shown(absent)} of like; "
            + there_are(names),
        )
    return [number_of[name] for name in schema["features"]]


# --- what an earlier reading says ------------------------------------------------


def _code_finder(
    values: Sequence[str], missing: Collection[str]
) -> Callable[[str | float], float | None]:
    """Return a function from a value to its code: NaN if missing, None if unknown.

    A value is found as the text it is, or as the number it is, or else by its
    meaning: where yes and no are known, so is YES.
    """
    code_of = {value: code for code, value in enumerate(values)}
    code_of_number: dict[float, int | None] = {}
    for value, code in code_of.items():
        number = number_of_text(value)
        if number is not None:
            # Two spellings of one number cannot be told apart by the number.
            code_of_number[number] = None if number in code_of_number else code
    told = meanings(tuple(values)) or ()
    missing_numbers = {number_of_text(word) for word in missing}

    def find(value: str | float) -> float | None:
        if isinstance(value, str):
            word, code = value, code_of.get(value)
            gone = value in missing
        else:
            word, code = word_of_number(value), code_of_number.get(value)
            gone = value in missing_numbers
        if gone:
            return np.nan
        said = meaning(word)
        if code is None and said in told:
            code = told.index(said)
        return code

    return find


def clear_missing_numbers(cells: NDArray[np.float64], missing: Sequence[str]) -> None:
    """Put NaN for the numbers among the words that stand for no value, in place."""
    for number in map(number_of_text, missing):
        if number is not None:
            cells[cells == number] = np.nan


def _translate(
    table: Table, number: int, find: Callable[[str | float], float | None]
) -> tuple[list[str], int]:
    """Put what ``find`` returns for the values of a column, in place; None is NaN.

    Returns
    -------
    unknown : list of str
        The different values for which it is None, in the order of rows.
    row : int
        The row of the first of them, or -1.
    """
    attribute, cells = table.attributes[number], table.column(number)
    rows = np.flatnonzero(~np.isnan(cells))
    different, first, codes = np.unique(
        cells[rows], return_index=True, return_inverse=True
    )
    values: list[Any] = different.tolist()
    if attribute.kind == NOMINAL:
        values = [attribute.values[int(code)] for code in values]
    found = [find(value) for value in values]
    cells[rows] = np.array(found, dtype=np.float64)[codes]  # None becomes NaN
    strange = [place for place, value in enumerate(found) if value is None]
    strange.sort(key=first.__getitem__)
    words = [
        str(v) if isinstance(v := values[p], str) else word_of_number(v)
        for p in strange
    ]
    return words, int(rows[first[strange[0]]]) if strange else -1


def _follow_numeric(
    table: Table, number: int, missing: Sequence[str], decimal: str | None
) -> Attribute:
    attribute = table.attributes[number]
    if attribute.kind == NOMINAL:

        def find(value: str | float) -> float | None:
            gone = value in missing
            return np.nan if gone else number_of_text(str(value), decimal or ".")

        strange, row = _translate(table, number, find)
        if strange:
            raise _error_in_row(
                table,
                row,
                f"the column {attribute.name!r} must be numeric, as in like, got "
                f"{strange[0][:40]!r}"
                + ("" if decimal is None else "; see missing_values and decimal"),
            )
    clear_missing_numbers(table.column(number), missing)
    return Attribute(attribute.name)


def _follow_nominal(
    table: Table, number: int, schema: Schema, unknown: str
) -> tuple[Attribute, list[str]]:
    name = table.attributes[number].name
    values = schema["values"][name]
    find = _code_finder(values, schema["missing_values"])
    strange, row = _translate(table, number, find)
    notes = []
    if strange and unknown == "error":
        raise _error_in_row(
            table,
            row,
            f"the column {name!r} must have values of like, {shown(values)}, got "
            f"{strange[0][:40]!r}; unknown='ignore' takes others as missing",
        )
    if strange:
        notes.append(
            f"{name!r} has values that like does not have, taken as missing: "
            f"{shown(strange)}."
        )
    return Attribute(name, NOMINAL, tuple(values)), notes


def _error_in_row(table: Table, row: int, message: str) -> ValueError:
    line = table.line_of(row)
    where = f" (row {row})" if line is None else ""
    return fail(table.path, f"{message}{where}.", line)


def follow_schema(
    table: Table,
    features: Sequence[int],
    schema: Schema,
    unknown: str,
    decimal: str | None = None,
) -> list[str]:
    """Code the features of a table as a schema does, in place; return notes.

    Parameters
    ----------
    table : Table
        Dense.
    features : sequence of int
        Its columns that are the features of the schema.
    schema : schema
    unknown : {"error", "ignore"}
        Whether unknown values of a nominal are refused or taken as missing.
    decimal : {".", ",", None}
        The decimal sign; None where the reader has no such option.
    """
    notes: list[str] = []
    attributes = list(table.attributes)
    for number in features:
        if attributes[number].name in schema["values"]:
            attributes[number], more = _follow_nominal(table, number, schema, unknown)
            notes += more
        else:
            attributes[number] = _follow_numeric(
                table, number, schema["missing_values"], decimal
            )
    table.attributes = attributes
    return notes
