"""Rows of a partition in the form that a fit reads, whatever they came as."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._support.indicator import check_indicator
from .._support.names import shown
from .files import PathLike, fail

# Features (dense or CSR), indicator, and weights or None.
Rows = tuple[Any, NDArray[np.uint8], NDArray[np.float64] | None]


def float_type(*kinds: Any) -> type[np.floating]:
    """Return the type of X that holds columns of these types.

    Examples
    --------
    >>> import numpy as np
    >>> from clml.datasets.plain_rows import float_type
    >>> float_type(np.dtype("f4"), np.dtype("f4")), float_type(np.dtype("i2"))
    (<class 'numpy.float32'>, <class 'numpy.float64'>)
    """
    # Types of pandas that know missing values name the one of numpy below them.
    plain = {np.dtype(getattr(kind, "numpy_dtype", kind)) for kind in kinds}
    single = all(kind.kind == "f" and kind.itemsize == 4 for kind in plain)
    return np.float32 if single and plain else np.float64


def check_frame_numbers(frame: Any, where: PathLike) -> None:
    """Refuse a frame of pandas with columns of anything but numbers and booleans."""
    bad = [
        f"{name} ({kind})"
        for name, kind in frame.dtypes.items()
        if getattr(kind, "kind", "O") not in "biuf"
    ]
    if bad:
        raise fail(where, f"expected columns of numbers or booleans, got {shown(bad)}.")


def is_pandas(data: Any) -> bool:
    """Whether data are a frame of pandas."""
    return hasattr(data, "iloc") and hasattr(data, "dtypes") and data.ndim == 2


def _frame_values(frame: Any, kind: Any) -> NDArray[Any]:
    # Given a value for what is missing, pandas copies columns of numpy for nothing.
    extended = any(not isinstance(given, np.dtype) for given in frame.dtypes)
    missing = {"na_value": np.nan} if extended else {}
    return frame.to_numpy(dtype=kind, **missing)


def plain_features(X: Any, where: PathLike) -> Any:
    """Return features as a float array or a CSR matrix; float32 stays, the rest is 64.

    What has that form already is not copied.
    """
    if is_pandas(X):
        check_frame_numbers(X, where)
        return _frame_values(X, float_type(*X.dtypes))
    if not sparse.issparse(X):
        X = np.asarray(X)
    if X.ndim != 2 or X.shape[1] == 0:
        raise fail(where, f"X must have the shape (rows, features), got {X.shape}.")
    if X.dtype.kind not in "biuf":
        raise fail(where, f"X must hold real numbers, got the type {X.dtype}.")
    if sparse.issparse(X):
        X = X.tocsr()
    return X.astype(float_type(X.dtype), copy=False)


def plain_labels(Y: Any, where: PathLike) -> NDArray[np.uint8]:
    """Return labels as a dense array of uint8.

    Types that hold more than bytes are looked through for what is neither 0 nor 1: it
    might become one of the two.
    """
    if is_pandas(Y):
        check_frame_numbers(Y, where)
        kinds = {kind if isinstance(kind, np.dtype) else None for kind in Y.dtypes}
        Y = _frame_values(Y, kinds.pop() if len(kinds) == 1 else np.float64)
    if sparse.issparse(Y):
        Y = Y.toarray()
    Y = np.asarray(Y)
    if Y.ndim == 2 and Y.shape[1] and Y.dtype in (np.bool_, np.uint8):
        return Y.astype(np.uint8, copy=False)
    return check_indicator(Y, f"{where}: Y")


def plain_weight(weight: Any, where: PathLike) -> NDArray[np.float64] | None:
    """Return weights of rows as float64, None as it is."""
    if weight is None:
        return None
    if hasattr(weight, "to_numpy") and not isinstance(
        getattr(weight, "dtype", None), np.dtype
    ):
        weight = weight.to_numpy(dtype=np.float64, na_value=np.nan)
    weight = np.asarray(weight)
    if weight.ndim != 1 or weight.dtype.kind not in "biuf":
        raise fail(
            where,
            f"weights must be one number a row, got the shape {weight.shape} and the "
            f"type {weight.dtype}.",
        )
    return weight.astype(np.float64, copy=False)


def plain_rows(
    X: Any,
    Y: Any,
    weight: Any = None,
    where: PathLike = "rows",
    n_features: int | None = None,
    n_labels: int | None = None,
) -> Rows:
    """Return a partition in its plain form, or say what does not fit together.

    Parameters
    ----------
    X : array-like, sparse matrix or frame of pandas of shape (n, D)
    Y : array-like, sparse matrix or frame of pandas of shape (n, K)
    weight : array-like of shape (n,) or None
    where : str or path
        What an error begins with, such as the file.
    n_features, n_labels : int or None
        D and K, where they are known.

    Examples
    --------
    >>> from clml.datasets.plain_rows import plain_rows
    >>> plain_rows([[1, 2]], [[True, False]])
    (array([[1., 2.]]), array([[1, 0]], dtype=uint8), None)
    >>> plain_rows([[1, 2]], [[1], [0]], where="part-3.npz")
    Traceback (most recent call last):
    ...
    ValueError: part-3.npz: X and Y must have as many rows, got 1 and 2.
    """
    X = plain_features(X, where)
    Y = plain_labels(Y, where)
    weight = plain_weight(weight, where)
    if X.shape[0] != Y.shape[0]:
        raise fail(
            where,
            f"X and Y must have as many rows, got {X.shape[0]} and {Y.shape[0]}.",
        )
    if weight is not None and len(weight) != len(Y):
        raise fail(
            where, f"expected a weight for each of {len(Y)} rows, got {len(weight)}."
        )
    for what, found, wanted in (
        ("features", X.shape[1], n_features),
        ("labels", Y.shape[1], n_labels),
    ):
        if wanted is not None and found != wanted:
            raise fail(where, f"expected {wanted} {what}, got {found}.")
    return X, Y, weight
