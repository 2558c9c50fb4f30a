"""Missing values in X: which forms they come in, and what is said where none may be."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

# What scikit-learn's message about X begins with.
_NAN_IN_X = "Input X contains NaN"


def checked_rows(
    estimator: Any, X: Any, *others: Any, missing: bool, name: str = "X", **options: Any
) -> Any:
    """Return what scikit-learn's ``validate_data`` makes of rows.

    Parameters
    ----------
    estimator : estimator
    X : array-like or sparse matrix (n, D)
        Missing values are NaN, None or pandas' NA.
    *others : array-like
        Targets, if there are any.
    missing : bool
        Whether X may hold missing values, which become NaN. Infinite ones are refused
        in any case.
    name : str, default="X"
        Of the argument, for messages.
    **options
        Of ``validate_data``.
    """
    finite = "allow-nan" if missing else True
    X = _with_nan(X)
    try:
        return validate_data(estimator, X, *others, ensure_all_finite=finite, **options)
    except ValueError as error:
        message = str(error)
        if not missing and message.startswith(_NAN_IN_X):
            raise ValueError(
                f"{name} contains NaN, and {type(estimator).__name__} takes no missing "
                "values as it is set. CLMLClassifier(network='wide') does; for others "
                "sklearn.impute.SimpleImputer fills them in."
            ) from None
        if message.startswith("Input X "):
            raise ValueError(message.replace("Input X", f"Input {name}", 1)) from None
        raise


def _with_nan(X: Any) -> Any:
    """Return X with NaN in place of what NumPy cannot make a number of.

    Columns of pandas' own types are converted by scikit-learn; columns of objects hold
    NA as it is.
    """
    pandas = sys.modules.get("pandas")
    if pandas is None:
        return X
    if isinstance(X, pandas.DataFrame):
        objects = [dtype.kind == "O" for dtype in X.dtypes]
        if any(objects) and X.loc[:, objects].isna().any(axis=None):
            return X.astype(object).where(X.notna(), np.nan)
    elif isinstance(X, np.ndarray) and X.dtype == object:
        missing = pandas.isna(X)
        return np.where(missing, np.nan, X) if missing.any() else X
    return X


def has_missing(X: Any) -> bool:
    """Tell whether rows of whatever kind hold NaN, None or pandas' NA.

    Parameters
    ----------
    X : features of n rows: array, sparse matrix, frame, text, nested lists

    Examples
    --------
    >>> from clml._base.missing import has_missing
    >>> has_missing([[1.0, None]]), has_missing([[1.0, 2.0]]), has_missing(["a b"])
    (True, False, False)
    """
    if sp.issparse(X):
        X = sp.csr_array(X).data
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(X, pandas.DataFrame | pandas.Series):
        return bool(X.isna().to_numpy().any())
    try:
        # As objects: an array of text has room for the longest in every place.
        values = np.asarray(X, dtype=object if isinstance(X, list | tuple) else None)
    except ValueError:  # lists of several lengths, of which learners make something
        return False
    if values.dtype.kind in "fc":
        # The least of numbers with NaN among them is NaN, and takes no memory.
        return bool(values.size and np.isnan(values.min()))
    if values.dtype.kind != "O":
        return False
    if pandas is not None:
        return bool(np.any(pandas.isna(values)))
    return any(
        value is None or (isinstance(value, float) and math.isnan(value))
        for value in values.flat
    )
