"""LIFT: each label has features of its own, distances to what is typical of it.

The rows with a label are clustered, and so are those without it. How far a row is from
the centres of both says of this label what the raw features may hide.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from threadpoolctl import threadpool_limits

from .._base.multilabel import MultiLabelMixin
from .._support.sklearn_compat import fit_context
from .._support.transaction import all_or_nothing
from ._clusters import cluster_centres
from ._gaussian_labels import (
    CERTAIN,
    VARIES,
    constant_values,
    dense_rows,
    row_blocks,
)
from ._svm_odds import fit_svm_odds

_ROUNDING = 1e-9


def n_clusters(ratio: float, n_present: int, n_absent: int) -> int:
    """Return how many clusters the rows with a label have, and those without it.

    Examples
    --------
    >>> from clml.baselines._lift import n_clusters
    >>> n_clusters(0.1, 70, 500), n_clusters(0.1, 500, 71), n_clusters(0.1, 1, 9)
    (7, 8, 1)
    """
    # 0.1 times 70 is a little above 7.
    return max(1, math.ceil(ratio * min(n_present, n_absent) - _ROUNDING))


def _distances(
    rows: NDArray[np.float64], centres: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return Euclidean distances (n, centres)."""
    return cdist(rows, centres)


def _check_squares(rows: NDArray[np.float64]) -> None:
    largest = np.abs(rows).max()
    # Of differences, and summed over all rows as well, as k-means does.
    if largest > np.sqrt(np.finfo(np.float64).max / (8 * rows.size)):
        raise ValueError(
            "X must have values whose squares can be summed for Euclidean distances, "
            f"got values up to {largest:.2g} in absolute value. Scale X first."
        )


class LIFTClassifier(MultiLabelMixin, BaseEstimator):
    """Multi-label learning with label-specific features (LIFT).

    For each label, k-means clusters the rows that have it and those that do not, into
    as many clusters each. The distances of a row to all these centres are the features
    of the label, and a linear support vector machine decides by them.

    Parameters
    ----------
    ratio : float in (0, 1], default=0.1
        Clusters of either kind as a share of the rows with the label, or of those
        without it if they are fewer.
    C : float, default=1.0
        What errors cost the support vector machines, beside the width of the margin.
    random_state : int, RandomState or None, default=None
        Draws where clusters start, and the folds that margins are calibrated on.

    Attributes
    ----------
    centres_ : float64 array (M, D)
        The centres of all labels, one label after the other: of each first those of
        the rows with it, then as many of those without it.
    first_centre_ : int64 array (K + 1,)
        The centres of label k are those from ``first_centre_[k]`` up to
        ``first_centre_[k + 1]``. A label that was constant in training has none.
    coef_ : float64 array (M,)
        What the distance to each centre counts in the margin of its label.
    intercept_ : float64 array (K,)
        What is added to the margin.
    slope_, offset_ : float64 arrays (K,)
        Log-odds are ``slope_`` times the margin plus ``offset_``.
    constant_ : int8 array (K,)
        The value of a label that was constant in training, otherwise −1.
    classes_ : list of arrays, or array of shape (2,) for a 1-D y
    label_names_ : array of str, shape (K,)
    n_labels_, n_features_in_ : int
    feature_names_in_ : array of str, if X had names

    Notes
    -----
    As in the authors' program, k-means takes 100 rounds at most, margins become
    probabilities by Platt's rule on five folds, and a label is predicted if its
    probability is above 0.5. Other than theirs, the folds share out the rows with a
    label evenly, k-means starts from k-means++, and a label that was constant in
    training has no clusters but a logit of ±1e30.

    Features count in distances by their scale: scale them before, this estimator does
    not. Sparse rows are made dense: all of them to fit, block by block to predict.

    ``fit`` takes no ``sample_weight``: the number of clusters follows from how many
    rows there are, and the method does not say what a part of one would be.

    References
    ----------
    .. [1] M.-L. Zhang and L. Wu, "LIFT: Multi-label learning with label-specific
       features", IEEE Transactions on Pattern Analysis and Machine Intelligence
       37 (1), 2015.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from clml.baselines import LIFTClassifier
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> clf = LIFTClassifier(random_state=0).fit(X, Y)
    >>> clf.predict(X[:3]).shape
    (3, 5)

    The first label has 66 rows, so 7 clusters, and as many of the other rows:

    >>> int(Y[:, 0].sum()), int(clf.first_centre_[1])
    (66, 14)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "ratio": [Interval(Real, 0, 1, closed="right")],
        "C": [Interval(Real, 0, 1e30, closed="neither")],
        "random_state": ["random_state"],
    }

    def __init__(self, *, ratio: float = 0.1, C: float = 1.0, random_state: Any = None):
        self.ratio = ratio
        self.C = C
        self.random_state = random_state

    @all_or_nothing
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> Self:
        """Cluster the rows of each label and learn from distances to the centres.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)
        y : array-like or sparse matrix of shape (n, K), or array-like of shape (n,)
            An indicator of 0 and 1; or two classes, for the problem of one label.

        Returns
        -------
        self
        """
        part = self._training_rows(X, y)
        self._warn_constant(part.Y)
        rows, Y = dense_rows(part.X), part.Y
        _check_squares(rows)
        random = check_random_state(self.random_state)
        n_labels = self.n_labels_
        self.constant_ = constant_values(Y)
        self.intercept_, self.offset_ = np.zeros(n_labels), np.zeros(n_labels)
        self.slope_ = np.ones(n_labels)
        centres, coef = [np.empty((0, rows.shape[1]))], [np.empty(0)]
        counts = np.zeros(n_labels, np.int64)
        # Sums in one thread are rounded alike on any machine.
        with threadpool_limits(1):
            for k in np.flatnonzero(self.constant_ == VARIES):
                of_label = self._cluster(rows, Y[:, k], random)
                distances = _distances(rows, of_label)
                model = fit_svm_odds(distances, Y[:, k], float(self.C), random)
                centres.append(of_label)
                coef.append(model.coef)
                counts[k] = len(of_label)
                self.intercept_[k] = model.intercept
                self.slope_[k], self.offset_[k] = model.slope, model.offset
        self.centres_, self.coef_ = np.concatenate(centres), np.concatenate(coef)
        self.first_centre_ = np.concatenate([[0], np.cumsum(counts)])
        return self

    def _cluster(
        self, rows: NDArray, y: NDArray[np.uint8], random: np.random.RandomState
    ) -> NDArray[np.float64]:
        """Return the centres of a label."""
        present = y == 1
        m = n_clusters(float(self.ratio), int(present.sum()), int((~present).sum()))
        return np.concatenate(
            [cluster_centres(rows[which], m, random) for which in (present, ~present)]
        )

    def _logits(self, X: Any) -> NDArray[np.float64]:
        logits = np.empty((X.shape[0], self.n_labels_))
        widest = int(np.diff(self.first_centre_).max())
        for block in row_blocks(X.shape[0], X.shape[1] + widest):
            rows = dense_rows(X[block])
            _check_squares(rows)
            for k in range(self.n_labels_):
                logits[block, k] = self._label_logits(rows, k)
        return logits

    def _label_logits(self, rows: NDArray, k: int) -> NDArray[np.float64]:
        if self.constant_[k] != VARIES:
            return np.full(len(rows), CERTAIN if self.constant_[k] else -CERTAIN)
        own = slice(self.first_centre_[k], self.first_centre_[k + 1])
        margins = _distances(rows, self.centres_[own]) @ self.coef_[own]
        return self.slope_[k] * (margins + self.intercept_[k]) + self.offset_[k]
