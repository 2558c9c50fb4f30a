"""Arrays, sparse matrices and data frames as datasets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import Bunch

from ._attributes import NOMINAL, Attribute
from ._bunch import make_bunch
from ._columns import (
    Column,
    boolean_column,
    bunch_of_table,
    check_names,
    choose_labels,
    code_columns,
    nominal_column,
    table_of_columns,
)
from ._csr import csr_of
from ._options import check_options


def _is_frame(data: Any) -> bool:
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
        return Attribute(name), numbers
    code_of: dict[str, int] = {}
    for row in np.flatnonzero(~missing):
        numbers[row] = code_of.setdefault(str(values[row]), len(code_of))
    return nominal_column(name, list(code_of), numbers)


def _seconds(values: NDArray, unit: str) -> NDArray[np.float64]:
    nanoseconds = values.astype(f"{unit}[ns]")
    seconds = nanoseconds.astype(np.int64) / 1e9
    seconds[np.isnat(nanoseconds)] = np.nan
    return seconds


def _array_column(name: str, values: NDArray) -> Column:
    kind = values.dtype.kind
    if kind == "b":
        return boolean_column(name, values.astype(np.float64))
    if kind in "iuf":
        return Attribute(name), values.astype(np.float64)
    if kind in "Mm":
        unit = "datetime64" if kind == "M" else "timedelta64"
        return Attribute(name), _seconds(values, unit)
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
        return Attribute(name, NOMINAL, words), codes
    zone = getattr(getattr(series, "dtype", None), "tz", None)
    if zone is not None:  # else pandas returns one object for each time
        return _array_column(name, series.to_numpy(dtype="datetime64[ns]"))
    return _array_column(name, np.asarray(series.to_numpy()))


def _columns(data: Any, argument: str, prefix: str) -> list[Column]:
    """Return the columns of a frame or of a two-dimensional array."""
    if _is_frame(data):
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


def _renamed(columns: list[Column], names: Any, argument: str) -> list[Column]:
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
        (replace(attribute, name=name), values)
        for name, (attribute, values) in zip(given, columns, strict=True)
    ]


def _csr(X: Any) -> sparse.csr_array:
    if X.dtype.kind not in "biuf":
        raise TypeError(f"X must hold real numbers, got the type {X.dtype}.")
    X = sparse.csr_array(X, dtype=np.float64, copy=True)
    X.sum_duplicates()
    return csr_of(X.data, X.indices, X.indptr, X.shape[1])


def _n_rows(columns: list[Column], argument: str) -> int:
    if not columns:
        raise ValueError(f"{argument} must have at least one column, got none.")
    n_rows = len(columns[0][1])
    if not n_rows:
        raise ValueError(f"{argument} must have at least one row, got none.")
    return n_rows


def as_dataset(
    X: Any,
    Y: Any = None,
    labels: Any = None,
    *,
    label_prefix: str | None = None,
    feature_names: Sequence[Any] | None = None,
    label_names: Sequence[Any] | None = None,
    nominals: str = "onehot",
    drop_identifiers: bool = True,
    missing_labels: str = "error",
) -> Bunch:
    """Describe data in memory as the readers of files describe theirs.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_samples, n_columns)
        Features, or a frame (of pandas or polars) that holds features and labels.
        Numbers stay as they are, times become seconds since 1970, booleans 0 and 1;
        text and categories are coded as nominals.
    Y : array-like, sparse matrix or data frame of shape (n_samples, n_labels)
        Labels: 0 and 1, booleans, or two values that say no and yes. None: they are
        columns of X.
    labels : str, sequence of str, or None
        Without Y: the name of the column of X that is the label, or several.
    label_prefix : str or None, default=None
        Instead of ``labels``: every column whose name begins with it is a label.
    feature_names, label_names : sequences of str or None, default=None
        Instead of the names of a frame's columns; for arrays None numbers them,
        ``x0``, ``x1``, ... and ``y0``, ``y1``, ...
    nominals : {"onehot", "codes"}, default="onehot"
        As in :func:`read_csv`; the values are sorted, those of a categorical of
        pandas are in the order of its categories.
    drop_identifiers : bool, default=True
        Leave out nominal features with another value in every row.
    missing_labels : {"error", "negative"}, default="error"
        Whether a label without a value is refused or taken as absent.

    Returns
    -------
    Bunch
        As :func:`read_arff` returns it, without ``relation``. ``X`` is a float64
        array, or a CSR array where X is sparse; ``Y`` an int64 array, or a CSR array
        where Y is sparse. Both are copies.

    Examples
    --------
    >>> import pandas as pd
    >>> from clml.datasets import as_dataset
    >>> frame = pd.DataFrame({"size": [1.5, 2.0], "sky": ["grey", "blue"],
    ...                       "rain": [True, False], "wind": [1, 1]})
    >>> data = as_dataset(frame, labels=["rain", "wind"])
    >>> data.feature_names, data.label_names
    (['size', 'sky=grey'], ['rain', 'wind'])
    >>> data.X, data.Y
    (array([[1.5, 1. ],
           [2. , 0. ]]), array([[1, 1],
           [0, 1]]))

    Arrays have no names but those they are given:

    >>> as_dataset([[0.5], [2.0]], [[1], [0]], label_names=["rain"]).feature_names
    ['x0']
    """
    check_options(nominals, drop_identifiers, missing_labels)
    options = {
        "nominals": nominals,
        "drop_identifiers": drop_identifiers,
        "missing_labels": missing_labels,
    }
    if Y is None:
        return _from_one_frame(
            X, labels, label_prefix, feature_names, label_names, options
        )
    if labels is not None or label_prefix is not None:
        raise ValueError(
            "Expected either Y or the names of its columns in X, not both."
        )
    features = _features(X, feature_names, options)
    Y, names = _labels(Y, label_names, options)
    return make_bunch(
        Y=Y, label_names=names, label_parents=None, sample_weight=None, **features
    )


def _from_one_frame(
    X: Any,
    labels: Any,
    label_prefix: str | None,
    feature_names: Any,
    label_names: Any,
    options: dict[str, Any],
) -> Bunch:
    if not _is_frame(X):
        raise ValueError(
            "Y must be given where X is no data frame with labels among its columns, "
            f"got Y=None and X of type {type(X).__name__}."
        )
    columns = _columns(X, "X", "x")
    n_rows = _n_rows(columns, "X")
    chosen = choose_labels("X", [a.name for a, _ in columns], labels, label_prefix)
    others = [number for number in range(len(columns)) if number not in set(chosen)]
    features = [columns[number] for number in others]
    targets = [columns[number] for number in chosen]
    columns = _renamed(features, feature_names, "feature_names") + _renamed(
        targets, label_names, "label_names"
    )
    check_names("feature_names and label_names", [a.name for a, _ in columns])
    first_label = len(features)
    return bunch_of_table(
        table_of_columns("X", columns, n_rows),
        list(range(first_label, len(columns))),
        source="frame",
        **options,
    )


def _features(X: Any, names: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of make_bunch that concern the features."""
    names = None if names is None else [str(name) for name in names]
    check_names("feature_names", names or [])
    plain: dict[str, Any] = {"feature_names": names, "dropped": {}}
    if sparse.issparse(X):
        return {"X": _csr(X), **plain}
    if not _is_frame(X):
        values = np.asarray(X)
        if values.ndim == 2 and values.size and values.dtype.kind in "iuf":
            return {"X": values.astype(np.float64), **plain}
    columns = _renamed(_columns(X, "X", "x"), names, "feature_names")
    n_rows = _n_rows(columns, "X")
    coded = code_columns(table_of_columns("X", columns, n_rows), [], **options)
    return {
        "X": coded.X,
        "feature_names": coded.feature_names,
        "categorical": coded.categorical,
        "n_features": len(columns),
        "notes": coded.notes,
        "dropped": coded.dropped,
        "source": "frame" if _is_frame(X) else "arrays",
    }


def _labels(Y: Any, names: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """Return the indicator and the names of its columns, None to number them."""
    if sparse.issparse(Y):
        names = None if names is None else [str(name) for name in names]
        check_names("label_names", names or [])
        return Y, names
    columns = _renamed(_columns(Y, "Y", "y"), names, "label_names")
    table = table_of_columns("Y", columns, _n_rows(columns, "Y"))
    coded = code_columns(table, list(range(len(columns))), **options)
    return coded.Y, [attribute.name for attribute, _ in columns]
