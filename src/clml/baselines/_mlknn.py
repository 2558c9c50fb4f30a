"""ML-kNN: the labels of the nearest rows as evidence, weighed by Bayes' rule.

How many of the k nearest training rows have a label says something about whether a
row has it; how much is learnt from the training rows themselves: how often rows with
and rows without the label saw such a count among their own neighbours.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.neighbors import NearestNeighbors
from sklearn.utils._param_validation import Interval, StrOptions

from .._base.multilabel import MultiLabelMixin
from .._support.sklearn_compat import fit_context
from .._support.transaction import all_or_nothing, snapshot
from ._neighbours import nearest_rows, searchable


def _label_counts(
    neighbours: NDArray[np.int64], Y: NDArray[np.uint8]
) -> NDArray[np.int64]:
    """Return (n, K): how many of a row's neighbours (n, k) have each label of Y."""
    n, k = neighbours.shape
    pairs = (np.ones(n * k, np.int64), neighbours.ravel(), np.arange(0, n * k + 1, k))
    return sp.csr_array(pairs, shape=(n, len(Y))) @ Y.astype(np.int64)


def _histograms(
    Y: NDArray[np.uint8], counts: NDArray[np.int64], k: int
) -> NDArray[np.float64]:
    """Return (2, K, k + 1): rows without and with a label, by neighbours that have it.

    Entry [y, l, j] is the number of rows whose label l is y and of whose neighbours j
    have label l.
    """
    n_labels = Y.shape[1]
    cell = (Y * np.int64(n_labels) + np.arange(n_labels)) * (k + 1) + counts
    size = 2 * n_labels * (k + 1)
    histogram = np.bincount(cell.ravel(), minlength=size).astype(np.float64)
    return histogram.reshape(2, n_labels, k + 1)


def _joint(histograms: NDArray[np.float64], s: float) -> NDArray[np.float64]:
    """Return P(H) P(E_j | H), (2, K, k + 1), for H the absence and presence of l."""
    n = histograms.sum(axis=2, keepdims=True)
    prior = (s + n) / (2 * s + n.sum(axis=0))
    return prior * (s + histograms) / (s * histograms.shape[2] + n)


def _log_odds(histograms: NDArray[np.float64], s: float) -> NDArray[np.float64]:
    """Return the logarithms (K, k + 1) of the posterior odds, 0 for exact ties.

    Both sides of the odds are multiplied by all denominators: products of integers
    if s is one, and exact up to some 200,000 rows.
    """
    n0, n1 = histograms.sum(axis=2, keepdims=True)
    c0, c1 = histograms
    bins = s * histograms.shape[2]
    logs = np.log(s + n1) + np.log(s + c1) + np.log(bins + n0)
    logs -= np.log(s + n0) + np.log(s + c0) + np.log(bins + n1)
    # Products may leave the range of floats only where s is absurdly small or large;
    # the logarithms are good enough there.
    with np.errstate(all="ignore"):
        present = (s + n1) * (s + c1) * (bins + n0)
        absent = (s + n0) * (s + c0) * (bins + n1)
        excess = (present - absent) / absent
    # Near even odds the logarithms cancel, but the difference of the products is exact.
    even = (np.abs(logs) < 0.5) & (absent > 1e-300) & (absent < 1e300)
    return np.log1p(excess, out=logs, where=even)


class MLkNNClassifier(MultiLabelMixin, BaseEstimator):
    """Multi-label k nearest neighbours (ML-kNN).

    Each label is decided by Bayes' rule from the number of nearest training rows that
    have it. Prior and likelihoods are counted in the training rows.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number k of neighbours.
    smoothing : float, default=1.0
        Added to every count, so that none is 0. With an integer the posterior odds
        are exact, and so are their ties.
    include_self : bool, default=False
        Whether a training row can be its own neighbour when counts are learnt, as in
        the package scikit-multilearn. It makes the evidence of neighbours look
        stronger than it will be for new rows.
    probability : {"posterior", "joint"}, default="posterior"
        What ``predict_proba`` returns: the posterior probability of a label, or
        its probability together with that of the evidence, not normalised, as
        scikit-multilearn 0.2.0 does. Decisions and ``decision_function`` do not
        depend on it.
    metric : {"euclidean", "manhattan"}, default="euclidean"
        The distance. Features count by their scale: scale them before, this estimator
        does not. Rows that a Normalizer has scaled to length 1 are compared by the
        cosine of their angle.
    algorithm : {"auto", "ball_tree", "kd_tree", "brute"}, default="auto"
        How neighbours are searched; see `sklearn.neighbors.NearestNeighbors`. The
        result is the same for any.
    n_jobs : int, default=None
        Parallel jobs of the search. The result is the same for any number.

    Attributes
    ----------
    log_odds_ : array (K, k + 1)
        Logarithm of the posterior odds of a label when j of the neighbours have it:
        positive where the label is predicted, 0 for a tie.
    joint_ : array (2, K, k + 1)
        Probability that a label is absent, present, and j of the neighbours have it.
    training_rows_ : float64 array or CSR matrix (N, D)
    training_labels_ : uint8 array (N, K)
    neighbors_ : NearestNeighbors
        The search in the training rows.
    classes_ : list of arrays, or array of shape (2,) for a 1-D y
    label_names_ : array of str, shape (K,)
    n_labels_, n_features_in_ : int
    feature_names_in_ : array of str, if X had names

    Notes
    -----
    Of training rows at the same distance those with lower row numbers are the nearer
    ones; distances that agree to rounding (relative 1e-10) are the same. A label whose
    odds are exactly even is not predicted.

    ``fit`` takes no ``sample_weight``: neighbours are rows, k of them, and the method
    does not say what a part of one would be.

    References
    ----------
    .. [1] M.-L. Zhang and Z.-H. Zhou, "ML-kNN: A lazy learning approach to multi-label
       learning", Pattern Recognition 40 (7), 2007.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from clml.baselines import MLkNNClassifier
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> clf = MLkNNClassifier(n_neighbors=5).fit(X, Y)
    >>> clf.predict(X[:3])
    array([[0, 0, 1, 1, 1],
           [0, 0, 1, 0, 0],
           [1, 1, 0, 1, 0]])

    How the first label is decided, by the number of neighbours that have it:

    >>> (clf.log_odds_[0] > 0).tolist()
    [False, False, False, False, True, True]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "smoothing": [Interval(Real, 0, 1e100, closed="neither")],
        "include_self": ["boolean"],
        "probability": [StrOptions({"posterior", "joint"})],
        "metric": [StrOptions({"euclidean", "manhattan"})],
        "algorithm": [StrOptions({"auto", "ball_tree", "kd_tree", "brute"})],
        "n_jobs": [Integral, None],
    }

    _not_saved: ClassVar[tuple[str, ...]] = ("neighbors_",)

    def __init__(
        self,
        n_neighbors: int = 10,
        *,
        smoothing: float = 1.0,
        include_self: bool = False,
        probability: str = "posterior",
        metric: str = "euclidean",
        algorithm: str = "auto",
        n_jobs: int | None = None,
    ):
        self.n_neighbors = n_neighbors
        self.smoothing = smoothing
        self.include_self = include_self
        self.probability = probability
        self.metric = metric
        self.algorithm = algorithm
        self.n_jobs = n_jobs

    @all_or_nothing
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> Self:
        """Keep the training rows and count labels among their neighbours.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (N, D)
            More than ``n_neighbors`` rows; as many will do with ``include_self``.
        y : array-like or sparse matrix of shape (N, K), or array-like of shape (N,)
            An indicator of 0 and 1; or two classes, for the problem of one label.

        Returns
        -------
        self
        """
        part = self._training_rows(X, y)
        k, n_rows = int(self.n_neighbors), len(part.Y)
        n_needed = k if self.include_self else k + 1
        if n_rows < n_needed:
            raise ValueError(
                f"n_neighbors={k} with include_self={self.include_self} needs at least "
                f"{n_needed} training rows, got n_samples={n_rows}."
            )
        self._warn_constant(part.Y)
        # Copies: the model must not change with the caller's arrays.
        self.training_rows_ = searchable(part.X.copy())
        self.training_labels_ = part.Y.copy()
        self._restore()
        rows = self.training_rows_ if self.include_self else None
        counts = self._count(rows, k)
        histograms = _histograms(part.Y, counts, k)
        self.joint_ = _joint(histograms, float(self.smoothing))
        self.log_odds_ = _log_odds(histograms, float(self.smoothing))
        return self

    def _restore(self) -> None:
        """Build what is no array from the arrays and parameters."""
        self.neighbors_ = NearestNeighbors(
            n_neighbors=self.n_neighbors,
            metric=self.metric,
            algorithm=self.algorithm,
            n_jobs=self.n_jobs,
        ).fit(self.training_rows_)

    def _count(self, rows: Any, k: int) -> NDArray[np.int64]:
        """How many of the k nearest training rows have each label, (n, K)."""
        neighbours = nearest_rows(self.neighbors_, self.training_rows_, rows, k)
        return _label_counts(neighbours, self.training_labels_)

    def _look_up(self, table: NDArray[np.float64], X: Any) -> NDArray[np.float64]:
        """Take from the last axes (K, k + 1) of a table what the rows' counts say."""
        counts = self._count(X, table.shape[-1] - 1)
        return table[..., np.arange(self.n_labels_), counts]

    def _logits(self, X: Any) -> NDArray[np.float64]:
        return self._look_up(self.log_odds_, X)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)

        Returns
        -------
        array of shape (n, K): the probability of each label; for a 1-D y (n, 2): the
        probability of each class. With ``probability="joint"`` these are
        probabilities of label and evidence together, which do not add up to 1.
        """
        if self.probability == "posterior":
            return super().predict_proba(X)
        model = snapshot(self)
        absent, present = model._look_up(model.joint_, model._check_rows(X))
        if isinstance(model.classes_, list):
            return present
        return np.concatenate([absent, present], axis=1)
