"""Arrays, sparse matrices and data frames as datasets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch

from .._support.names import shown
from ._attributes import Attribute
from ._csr import csr_of
from ._frame_columns import (
    columns_of,
    is_frame,
    n_rows_of,
    names_of,
    renamed,
    texts_of,
)
from ._options import check_options
from .assembly import bunch_of_table, code_columns
from .bunch import column_names, make_bunch
from .coding import code_table
from .columns import check_names, choose_labels, table_of_columns
from .schema import Schema, check_like, find_features, make_schema


def _csr(X: Any) -> sparse.csr_array:
    if X.dtype.kind not in "biuf":
        raise TypeError(f"X must hold real numbers, got the type {X.dtype}.")
    X = sparse.csr_array(X, dtype=np.float64, copy=True)
    X.sum_duplicates()
    return csr_of(X.data, X.indices, X.indptr, X.shape[1])


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
    like: Mapping[str, Any] | None = None,
    unknown: str = "error",
) -> Bunch:
    """Describe data in memory as the readers of files describe theirs.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_samples, n_columns)
        Features, or a frame (of pandas or polars) that holds features and labels.
        Numbers stay as they are, times become seconds since 1970, booleans 0 and 1;
        text and categories are coded as nominals. A column of text in which nine of
        ten values are numbers, but not all, draws a warning; it is never left out as
        an identifier.
    Y : array-like, sparse matrix or data frame of shape (n_samples, n_labels)
        Labels: 0 and 1, booleans, or two values that say no and yes. None: they are
        columns of X.
    labels : str, sequence of str, or None
        Without Y: the name of the column of X that is the label, or several. None:
        those of ``like``, or by ``label_prefix``.
    label_prefix : str or None, default=None
        Instead of ``labels``: every column whose name begins with it is a label.
    feature_names, label_names : sequences of str or None, default=None
        Instead of the names of a frame's columns; for arrays None numbers them,
        ``x0``, ``x1``, ... and ``y0``, ``y1``, ...
    nominals : {"onehot", "codes"}, default="onehot"
        As in :func:`read_csv`; the values are sorted, those of a categorical of
        pandas are in the order of its categories.
    drop_identifiers : bool, default=True
        Leave out nominal features with another value in every row (of 11 or more).
    missing_labels : {"error", "negative"}, default="error"
        Whether a label without a value is refused or taken as absent.
    like, unknown
        As in :func:`read_csv`. Columns of arrays have the names they would have
        without ``like``; labels of a Y without names are those of ``like``.

    Returns
    -------
    Bunch
        As :func:`read_arff` returns it, without ``relation``. ``X`` is a float64
        array, or a CSR array where X is sparse; ``Y`` an int64 array, or a CSR array
        where Y is sparse. Both are copies. Its ``schema`` is what ``like`` needs.

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

    New data are coded like those that a learner has seen:

    >>> new = pd.DataFrame({"sky": ["grey", "pink"], "size": [3.0, 4.0],
    ...                     "rain": [False, True], "wind": [0, 1]})
    >>> as_dataset(new, like=data, unknown="ignore").X
    array([[ 3.,  1.],
           [ 4., nan]])
    """
    check_options(nominals, drop_identifiers, missing_labels)
    schema = check_like(like, nominals, unknown)
    options = {
        "nominals": nominals,
        "drop_identifiers": drop_identifiers,
        "missing_labels": missing_labels,
        "like": schema,
        "unknown": unknown,
    }
    if Y is None:
        return _from_one_frame(
            X, labels, label_prefix, feature_names, label_names, options
        )
    if labels is not None or label_prefix is not None:
        raise ValueError(
            "Expected either Y or the names of its columns in X, not both."
        )
    features, schema = _features(X, feature_names, options)
    Y, names = _labels(Y, label_names, options)
    data = make_bunch(
        Y=Y,
        label_names=names,
        label_parents=None,
        sample_weight=None,
        schema=schema,
        **features,
    )
    schema["labels"] = list(data.label_names)
    return data


def _from_one_frame(
    X: Any,
    labels: Any,
    label_prefix: str | None,
    feature_names: Any,
    label_names: Any,
    options: dict[str, Any],
) -> Bunch:
    if not is_frame(X):
        raise ValueError(
            "Y must be given where X is no data frame with labels among its columns, "
            f"got Y=None and X of type {type(X).__name__}."
        )
    columns = columns_of(X, "X", "x")
    n_rows = n_rows_of(columns, "X")
    if options["like"] is not None and labels is None and label_prefix is None:
        labels = options["like"]["labels"]
    chosen = choose_labels("X", names_of(columns), labels, label_prefix)
    is_label = set(chosen)
    others = [number for number in range(len(columns)) if number not in is_label]
    features = [columns[number] for number in others]
    targets = [columns[number] for number in chosen]
    columns = renamed(features, feature_names, "feature_names") + renamed(
        targets, label_names, "label_names"
    )
    check_names("feature_names and label_names", names_of(columns))
    first_label = len(features)
    return bunch_of_table(
        table_of_columns("X", columns, n_rows),
        list(range(first_label, len(columns))),
        source="frame",
        texts=texts_of(columns),
        **options,
    )


def _features(
    X: Any, names: Any, options: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments of make_bunch that concern the features, and the schema."""
    names = None if names is None else [str(name) for name in names]
    check_names("feature_names", names or [])
    if sparse.issparse(X):
        return _plain_features(_csr(X), names, options)
    if not is_frame(X) and options["like"] is None:
        values = np.asarray(X)
        if values.ndim == 2 and values.size and values.dtype.kind in "iuf":
            return _plain_features(values.astype(np.float64), names, options)
    columns = renamed(columns_of(X, "X", "x"), names, "feature_names")
    n_rows = n_rows_of(columns, "X")
    coded, schema = code_columns(
        table_of_columns("X", columns, n_rows), [], texts=texts_of(columns), **options
    )
    features = {
        "X": coded.X,
        "feature_names": coded.feature_names,
        "categorical": coded.categorical,
        "n_features": len(columns),
        "notes": coded.notes,
        "dropped": coded.dropped,
        "source": "frame" if is_frame(X) else "arrays",
    }
    return features, schema


def _plain_features(
    X: Any, names: list[str] | None, options: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the same of columns that are numbers, and their own features."""
    names = column_names(names, X.shape[1], "x", "feature_names")
    like: Schema | None = options["like"]
    notes: list[str] = []
    if like is not None:
        if like["values"]:
            raise ValueError(
                "X must be dense where features of like are nominal, got a sparse "
                f"matrix and the nominals {shown(list(like['values']))}."
            )
        numbers = find_features("X", names, (), like)
        wanted = set(like["features"])
        extra = [name for name in names if name not in wanted]
        notes += [f"{name!r} was left out: like does not have it." for name in extra]
        X, names = X[:, numbers], like["features"]
        X.sort_indices()
    features = {"X": X, "feature_names": names, "dropped": {}, "notes": notes}
    attributes = [Attribute(name) for name in names]
    return features, make_schema(attributes, (), (), options["nominals"])


def _labels(Y: Any, names: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """Return the indicator and the names of its columns, None to number them."""
    like: Schema | None = options["like"]
    if like is not None and names is None and not is_frame(Y):
        names = like["labels"]
    if sparse.issparse(Y):
        names = None if names is None else [str(name) for name in names]
        check_names("label_names", names or [])
        if like is not None:
            Y = sparse.csr_array(Y)[:, _order(Y.shape[1], names, like)]
            names = like["labels"]
        return Y, names
    columns = renamed(columns_of(Y, "Y", "y"), names, "label_names")
    if like is not None:
        order = _order(len(columns), names_of(columns), like)
        columns = [columns[number] for number in order]
    table = table_of_columns("Y", columns, n_rows_of(columns, "Y"))
    coded = code_table(
        table, range(len(columns)), missing_labels=options["missing_labels"]
    )
    return coded.Y, names_of(columns)


def _order(n_columns: int, names: Sequence[str], like: Schema) -> list[int]:
    """Return the columns of Y in the order of the labels of ``like``."""
    names = column_names(names, n_columns, "y", "label_names")
    extra = [name for name in names if name not in set(like["labels"])]
    if extra:
        raise ValueError(
            f"Y must have the labels of like, {shown(like['labels'])}, and no others, "
            f"got {shown(extra)}."
        )
    return choose_labels("Y", names, like["labels"], None)
