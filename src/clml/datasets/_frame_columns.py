"""The columns of data frames and arrays, each as numbers and what they mean."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._attributes import NOMINAL, Attribute
from .columns import Column, boolean_column, check_names, nominal_column

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS_PER = {"W": 604800, "D": 86400, "h": 3600, "m": 60, "s": 1}
_PER_SECOND = {"ms": 1e3, "us": 1e6, "ns": 1e9, "ps": 1e12, "fs": 1e15, "as": 1e18}


def is_frame(data: Any) -> bool:
    """Whether data have named columns, as those of pandas and polars have."""
    return hasattr(data, "columns") and hasattr(data, "dtypes")


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (Real, Decimal)) and value != value


def _object_column(name: str, values: NDArray) -> Column:
    """Return Python objects as numbers, as no and yes, or as a nominal of texts."""
    missing = np.fromiter(map(_is_missing, values), dtype=bool, count=len(values))
    numbers = np.full(len(values), np.nan)
    kinds = {type(value) for value in values[~missing]}
    if all(issubclass(kind, (bool, np.bool_)) for kind in kinds) and kinds:
        numbers[~missing] = values[~missing].astype(np.float64)
        return boolean_column(name, numbers)
    if all(issubclass(kind, (Real, Decimal)) for kind in kinds):
        numbers[~missing] = values[~missing].astype(np.float64)
        return Column(Attribute(name), numbers)
    if all(issubclass(kind, date) for kind in kinds):
        numbers[~missing] = [_seconds_of_date(value) for value in values[~missing]]
        return Column(Attribute(name), numbers)
    code_of: dict[str, int] = {}
    for row in np.flatnonzero(~missing):
        numbers[row] = code_of.setdefault(str(values[row]), len(code_of))
    return nominal_column(name, list(code_of), numbers, is_text=True)


def _seconds(values: NDArray) -> NDArray[np.float64]:
    """Return times as seconds, through their own unit: others may not reach as far."""
    unit, step = np.datetime_data(values.dtype)
    if unit in ("Y", "M", "generic"):  # years and months have no fixed length
        values = values.astype(f"{values.dtype.kind}8[D]")
        unit, step = "D", 1
    many = (values.astype(np.int64) * float(step)).astype(np.float64)
    scale = _SECONDS_PER.get(unit)
    seconds = many / _PER_SECOND[unit] if scale is None else many * scale
    seconds[np.isnat(values)] = np.nan
    return seconds


def _seconds_of_date(value: date) -> float:
    """Return a date or time of Python as seconds; one without a zone is UTC."""
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    time = value.replace(tzinfo=UTC) if value.tzinfo is None else value
    return (time - _EPOCH).total_seconds()


def _array_column(name: str, values: NDArray) -> Column:
    kind = values.dtype.kind
    if kind == "b":
        return boolean_column(name, values.astype(np.float64))
    if kind in "iuf":
        return Column(Attribute(name), values.astype(np.float64))
    if kind in "Mm":
        return Column(Attribute(name), _seconds(values))
    if kind in "OUT":
        return _object_column(name, values.astype(object))
    raise TypeError(
        f"The column {name!r} must hold numbers, text, booleans or times, got the "
        f"type {values.dtype}."
    )


def _series_column(name: str, series: Any) -> Column:
    accessor: Any = getattr(series, "cat", None)
    if hasattr(accessor, "categories"):  # of pandas: keeps the order of categories
        codes = np.asarray(accessor.codes, dtype=np.float64)
        codes[codes < 0] = np.nan
        words = tuple(str(value) for value in accessor.categories)
        check_names(f"the categories of {name!r}", words)
        return Column(Attribute(name, NOMINAL, words), codes)
    zone = getattr(getattr(series, "dtype", None), "tz", None)
    if zone is not None:  # else pandas returns one object for each time
        unit = getattr(series.dtype, "unit", "ns")
        return _array_column(name, series.to_numpy(dtype=f"datetime64[{unit}]"))
    return _array_column(name, np.asarray(series.to_numpy()))


def columns_of(data: Any, argument: str, prefix: str) -> list[Column]:
    """Return the columns of a frame or of a two-dimensional array."""
    if is_frame(data):
        names = [str(name) for name in data.columns]
        check_names(argument, names)
        by_number = data.iloc if hasattr(data, "iloc") else data
        return [
            _series_column(name, by_number[:, number])
            for number, name in enumerate(names)
        ]
    values = np.asarray(data)
    if values.dtype.kind == "U" and not isinstance(data, np.ndarray):
        values = np.asarray(data, dtype=object)  # else numbers in lists became text
    if values.ndim != 2:
        raise ValueError(
            f"{argument} must be two-dimensional, (rows, columns), got the shape "
            f"{values.shape}."
        )
    return [
        _array_column(f"{prefix}{number}", values[:, number])
        for number in range(values.shape[1])
    ]


def renamed(columns: list[Column], names: Any, argument: str) -> list[Column]:
    """Return columns with other names; None keeps those they have."""
    if names is None:
        return columns
    given = [str(name) for name in names]
    if len(given) != len(columns):
        raise ValueError(
            f"{argument} must name each of the {len(columns)} columns, got "
            f"{len(given)} names."
        )
    check_names(argument, given)
    return [
        replace(column, attribute=replace(column.attribute, name=name))
        for name, column in zip(given, columns, strict=True)
    ]


def names_of(columns: list[Column]) -> list[str]:
    """Return the names of columns."""
    return [column.attribute.name for column in columns]


def texts_of(columns: list[Column]) -> list[int]:
    """Return the numbers of the columns that are free text."""
    return [number for number, column in enumerate(columns) if column.is_text]


def n_rows_of(columns: list[Column], argument: str) -> int:
    """Return how many rows columns have; refuse none of either."""
    if not columns:
        raise ValueError(f"{argument} must have at least one column, got none.")
    n_rows = len(columns[0].values)
    if not n_rows:
        raise ValueError(f"{argument} must have at least one row, got none.")
    return n_rows
