"""Learners that refuse labels of one value, for targets in which some have one."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from .._support.indicator import check_indicator
from .._support.transaction import all_or_nothing


class VaryingLabels(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A multi-label classifier, fitted on the labels that vary alone.

    A label that never occurs in the training rows, or in all of them, is predicted as
    it was there, with certainty. Sparse rows are handed on as a
    `scipy.sparse.csr_matrix`: some packages take no arrays. CatBoost needs both.

    Parameters
    ----------
    estimator : classifier
        Takes an indicator and has ``predict_proba`` of shape (n, K).
    random_state : int, default=None
        Set on the estimator, unless None: not every one lists its own among its
        parameters.

    Attributes
    ----------
    estimator_ : classifier or None
        None if no label varies.
    varies_ : bool array (K,)
    classes_ : list of arrays
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from clml.experiments._varying_labels import VaryingLabels
    >>> X, Y = [[0.0], [1.0], [2.0]], [[0, 1, 0], [1, 1, 0], [0, 1, 1]]
    >>> clf = VaryingLabels(KNeighborsClassifier(1)).fit(X, Y)
    >>> clf.varies_
    array([ True, False,  True])
    >>> clf.predict(X[:2])
    array([[0, 1, 0],
           [1, 1, 0]])
    """

    def __init__(self, estimator: Any, random_state: int | None = None):
        self.estimator = estimator
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.input_tags.sparse = True
        return tags

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the estimator.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)
        y : array-like or sparse matrix of shape (n, K)
            An indicator of 0 and 1. The estimator gets a dense one of integers.

        Returns
        -------
        self
        """
        Y = check_indicator(y, "y").astype(np.int64)
        rows = self._rows(X, reset=True)
        if len(Y) != rows.shape[0]:
            raise ValueError(
                f"y must have a row for each of the {rows.shape[0]} rows of X, "
                f"got {len(Y)} rows."
            )
        self.varies_ = Y.min(axis=0) != Y.max(axis=0)
        self._constant = Y[0].astype(np.float64)
        self.classes_ = [np.arange(2)] * Y.shape[1]
        self.estimator_ = None
        if self.varies_.any():
            model = clone(self.estimator)
            if self.random_state is not None:
                model.set_params(random_state=self.random_state)
            self.estimator_ = model.fit(rows, Y[:, self.varies_])
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of every label, shape (n, K)."""
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        found = np.tile(self._constant, (rows.shape[0], 1))
        if self.estimator_ is not None:
            given = self.estimator_.predict_proba(rows)
            # Of one label there may be a list of one, and a column for each class.
            if isinstance(given, list):
                given = np.column_stack([columns[:, -1] for columns in given])
            found[:, self.varies_] = given[:, -np.count_nonzero(self.varies_) :]
        return found

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the labels that are likelier than not, as an indicator (n, K)."""
        return (self.predict_proba(X) > 0.5).astype(np.int64)

    def _rows(self, X: Any, reset: bool) -> Any:
        rows = validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=np.float64,
            ensure_all_finite="allow-nan",
        )
        return sp.csr_matrix(rows) if sp.issparse(rows) else rows
