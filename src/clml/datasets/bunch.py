"""What every reader returns: features, labels, their names, and the figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import Bunch

from .._support.indicator import check_indicator, check_sparse_indicator


def _count_label_sets(Y: Any) -> int:
    if sparse.issparse(Y):
        sets = {
            Y.indices[begin:end].tobytes()
            for begin, end in zip(Y.indptr[:-1], Y.indptr[1:], strict=True)
        }
        return len(sets)
    packed = np.ascontiguousarray(np.packbits(Y.astype(bool), axis=1))
    # One item per row: unique on items is a plain sort, on rows it is not.
    rows = packed.view(np.dtype((np.void, packed.shape[1])))
    return len(np.unique(rows))


def label_figures(Y: Any) -> dict[str, Any]:
    """Return the figures by which multi-label data are described.

    Parameters
    ----------
    Y : integer array or csr_array of shape (n_samples, n_labels)
        Indicator; a sparse one holds its ones and nothing else.

    Returns
    -------
    dict
        ``cardinality``, the mean number of labels of a row; ``density``, the same
        over the number of labels; ``n_label_sets``, how many different sets of
        labels occur; ``imbalance_ratios``, shape (n_labels,), for each label how
        many times the most frequent label is as frequent (infinite for a label that
        never occurs); ``mean_imbalance_ratio``, their mean over the labels that
        occur (NaN if none does).
    """
    n_samples, n_labels = Y.shape
    counts = np.asarray(Y.sum(axis=0), dtype=np.float64).reshape(-1)
    ratios = np.full(n_labels, np.inf)
    occur = counts > 0
    ratios[occur] = counts.max(initial=0) / counts[occur]
    cardinality = float(counts.sum() / n_samples) if n_samples else np.nan
    return {
        "cardinality": cardinality,
        "density": cardinality / n_labels,
        "n_label_sets": _count_label_sets(Y),
        "imbalance_ratios": ratios,
        "mean_imbalance_ratio": float(ratios[occur].mean()) if occur.any() else np.nan,
    }


def column_names(
    names: Sequence[Any] | None, count: int, prefix: str, what: str
) -> list[str]:
    """Return the names of so many columns, numbered if there are none."""
    if names is None:
        return [f"{prefix}{number}" for number in range(count)]
    named = [str(name) for name in names]
    if len(named) != count:
        raise ValueError(
            f"{what} must name each of the {count} columns, got {len(named)} names."
        )
    return named


def _labels(Y: Any) -> Any:
    if not sparse.issparse(Y):
        return check_indicator(Y).astype(np.int64)
    return check_sparse_indicator(Y).astype(np.int64)


def make_bunch(
    X: Any,
    Y: Any,
    *,
    feature_names: Sequence[Any] | None = None,
    label_names: Sequence[Any] | None = None,
    categorical: NDArray[np.bool_] | None = None,
    n_features: int | None = None,
    source: str = "arrays",
    notes: Sequence[str] = (),
    **more: Any,
) -> Bunch:
    """Return features and labels with their names and figures.

    Parameters
    ----------
    X : array or csr_array of shape (n_samples, n_columns)
    Y : array-like or sparse matrix of shape (n_samples, n_labels)
        Indicator. A dense one comes out as int64, a sparse one as a CSR array.
    feature_names, label_names : sequences of str, or None
        None numbers them: ``x0``, ``x1``, ... and ``y0``, ``y1``, ...
    categorical : array of bool, shape (n_columns,), or None
        Which columns of X code a category; None: none of them does.
    n_features : int or None
        Number of features before coding; None: the columns of X.
    source : str
        Where the data come from.
    notes : sequence of str
        What was done to the data on the way.
    **more
        Further entries.

    Returns
    -------
    Bunch
        With ``X``, ``Y``, the names, ``categorical``, ``n_instances``,
        ``n_features``, ``n_labels`` and the entries of :func:`label_figures`.
    """
    n_samples, n_columns = X.shape
    if Y.shape[0] != n_samples:
        raise ValueError(
            "X and Y must have the same number of rows; got "
            f"{n_samples} in X and {Y.shape[0]} in Y."
        )
    Y = _labels(Y)
    if categorical is None:
        categorical = np.zeros(n_columns, dtype=bool)
    return Bunch(
        X=X,
        Y=Y,
        feature_names=column_names(feature_names, n_columns, "x", "feature_names"),
        label_names=column_names(label_names, Y.shape[1], "y", "label_names"),
        categorical=categorical,
        n_instances=n_samples,
        n_features=n_columns if n_features is None else n_features,
        n_labels=Y.shape[1],
        **label_figures(Y),
        source=str(source),
        notes=list(notes),
        **more,
    )
