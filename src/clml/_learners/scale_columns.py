"""Standardised columns, except those that hold 0 and 1 only."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from .._support.transaction import all_or_nothing
from ..network import Scaling


class ScaleNonIndicators(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Standardise the columns of numbers and leave indicators as they are.

    A rare indicator, divided by its deviation, would outweigh every measurement in a
    distance. Sparse columns are scaled and not centred, so that they stay sparse.

    Attributes
    ----------
    mean_, scale_ : float64 arrays (D,)
        What is subtracted and divided by: 0 and 1 for indicators.
    n_features_in_ : int
    feature_names_in_ : array of str, if X had names

    Examples
    --------
    >>> from clml._learners.scale_columns import ScaleNonIndicators
    >>> ScaleNonIndicators().fit_transform([[1, 3.0], [0, 5.0]])
    array([[ 1., -1.],
           [ 0.,  1.]])
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn which columns hold indicators, and the scale of the others.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)
        y : object, default=None
            Ignored.

        Returns
        -------
        self
        """
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64)
        self.mean_ = np.zeros(X.shape[1])
        self.scale_ = np.ones(X.shape[1])
        columns = _columns_of_numbers(X)
        if not len(columns):
            return self
        with_mean = not sp.issparse(X)
        extreme = _is_extreme(X[:, columns])
        plain = columns[~extreme]
        if len(plain):
            scaler = StandardScaler(with_mean=with_mean).fit(X[:, plain])
            self.scale_[plain] = scaler.scale_
            if with_mean:
                self.mean_[plain] = scaler.mean_
        if extreme.any():
            scaling = Scaling.fit(X[:, columns[extreme]])
            self.scale_[columns[extreme]] = scaling.scale
            if with_mean:
                self.mean_[columns[extreme]] = scaling.mean
        return self

    def transform(self, X: Any) -> Any:
        """Return the scaled columns, in their order.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)

        Returns
        -------
        float64 array, or CSR matrix for a sparse one, of shape (n, D)
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        if not sp.issparse(X):
            return (X - self.mean_) / self.scale_
        scaled = X.copy()
        scaled.data /= self.scale_[X.indices]
        return scaled


def _is_extreme(X: Any) -> NDArray[np.bool_]:
    """Return whether columns hold numbers whose squares are not safe in float64."""
    low, high = X.min(axis=0), X.max(axis=0)
    if sp.issparse(X):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    size = np.maximum(np.abs(low), np.abs(high))
    return (size > 1e100) | ((size > 0) & (size < 1e-100))


def _columns_of_numbers(X: Any) -> NDArray[np.intp]:
    """Return the columns that hold anything but 0 and 1."""
    if sp.issparse(X):
        return np.unique(X.indices[(X.data != 0) & (X.data != 1)])
    return np.flatnonzero(((X != 0) & (X != 1)).any(axis=0))
