"""Predictions for rows in partitions, where the partitions are."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

_METHODS = ("predict", "predict_proba", "decision_function")


def dask_predict(estimator: Any, X: Any, method: str = "predict") -> Any:
    """Predict for rows in partitions, lazily.

    Nothing is computed until the result is. Every partition is predicted by the
    worker that has it, and the model is sent once, not with every partition.

    Parameters
    ----------
    estimator : estimator
        A fitted one: of this library, or any other that returns one array.
    X : dask array of shape (n, D), dask DataFrame, or list of Delayed
        The rows. Chunks of an array may be dense or CSR, and their lengths unknown;
        columns that are in several chunks are brought together. Each Delayed is a
        partition: whatever the estimator takes. Partitions may have no rows.
    method : {"predict", "predict_proba", "decision_function"}, default="predict"

    Returns
    -------
    dask array, dask DataFrame or list of Delayed
        Like X, with the shapes that the estimator's method has. A DataFrame has the
        labels' names as columns and the index of X; of results of one dimension it is
        a Series.

    Notes
    -----
    One network, as of ``CLMLClassifier(n_members=1)``, multiplies matrices, whose last
    bits depend on how many rows are multiplied together. Averages of several
    members do not.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from clml import CLMLClassifier, dask_predict
    >>> X, Y = make_multilabel_classification(n_samples=60, random_state=0)
    >>> clf = CLMLClassifier(max_epochs=2, random_state=0).fit(X, Y)
    >>> parts = da.from_array(X, chunks=(25, 10))
    >>> found = dask_predict(clf, parts, "predict_proba")
    >>> found.chunks
    ((25, 25, 10), (5,))
    >>> bool(abs(found.compute() - clf.predict_proba(X)).max() < 1e-6)
    True
    """
    try:
        import dask
        import dask.array
        from dask.delayed import Delayed
    except ImportError as error:
        raise ImportError(
            "dask_predict needs the package dask: pip install 'clml[dask]'."
        ) from error
    if method not in _METHODS:
        raise ValueError(f"method must be one of {_METHODS}, got {method!r}.")
    check_is_fitted(estimator)
    if not hasattr(estimator, method):
        raise TypeError(f"{type(estimator).__name__} has no method {method}.")
    model = _Model(estimator, method)
    # One node of the graph, which all partitions depend on.
    sent = dask.delayed(model, traverse=False)
    if isinstance(X, list | tuple) and all(isinstance(part, Delayed) for part in X):
        predict = dask.delayed(_predict, pure=True)
        return [predict(part, sent) for part in X]
    if isinstance(X, dask.array.Array):
        return _of_array(X, model, sent)
    if dask.is_dask_collection(X) and hasattr(X, "columns"):
        return X.map_partitions(
            _predict_frame, sent, meta=_predict_frame(X._meta, model)
        )
    raise TypeError(
        "X must be a dask array, a dask DataFrame or a list of Delayed, got "
        f"{type(X).__name__}. For rows in memory use "
        f"{type(estimator).__name__}.{method}(X)."
    )


@dataclass(frozen=True, eq=False)
class _Model:
    """A method of a fitted estimator, for partitions that may have no rows.

    Attributes
    ----------
    estimator : estimator
    method : str
    token : str
        What dask knows the model by: hashing its weights would take longer.
    """

    estimator: Any
    method: str
    token: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __dask_tokenize__(self) -> str:
        return self.token

    def __call__(self, part: Any) -> Any:
        """Return what the estimator says of a partition."""
        if part.shape[0] == 0:
            # Estimators refuse no rows. One of any kind tells shape and type.
            return self(_one_row(part, part.shape[1]))[:0]
        found = getattr(self.estimator, self.method)(part)
        if not (isinstance(found, np.ndarray) or sp.issparse(found)):
            raise TypeError(
                f"{type(self.estimator).__name__}.{self.method} must return one array, "
                f"got {type(found).__name__}."
            )
        return found

    def columns(self, found: NDArray) -> Any:
        """Return names for the columns of what it says."""
        for name in ("label_names_", "classes_"):
            names = getattr(self.estimator, name, None)
            # Classes of several labels are a list, and name no columns.
            if isinstance(names, np.ndarray) and len(names) == found.shape[1]:
                return names
        return range(found.shape[1])


def _one_row(part: Any, n_columns: int) -> Any:
    """Return a row or two of the kind that a partition has."""
    if hasattr(part, "columns"):
        from dask.dataframe.utils import meta_nonempty

        return meta_nonempty(part)
    if sp.issparse(part):
        return sp.csr_array((1, n_columns), dtype=part.dtype)
    return np.zeros((1, n_columns), dtype=part.dtype)


def _predict(part: Any, model: _Model) -> Any:
    return model(part)


def _predict_frame(part: Any, model: _Model) -> Any:
    found = model(part)
    if sp.issparse(found):
        found = found.toarray()
    columns = found if found.ndim == 2 else found[:, None]
    frame = type(part)(columns, index=part.index, columns=model.columns(columns))
    return frame if found.ndim == 2 else frame.iloc[:, 0]


def _of_array(X: Any, model: _Model, sent: Any) -> Any:
    """Return the predictions for a dask array, as another."""
    if X.ndim != 2 or np.isnan(X.shape[1]):
        raise ValueError(
            "X must be a dask array of two dimensions and a known number of columns, "
            f"got shape {X.shape}."
        )
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    # Of a row of zeros: shape and type, and an error now rather than on a cluster.
    empty = model(_one_row(X._meta, X.shape[1]))[:0]
    rows = X.chunks[0]
    if empty.ndim == 1:
        return X.map_blocks(_predict, sent, chunks=(rows,), drop_axis=1, meta=empty)
    chunks = (rows, (empty.shape[1],))
    return X.map_blocks(_predict, sent, chunks=chunks, meta=empty)
