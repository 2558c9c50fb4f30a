"""Gaussian naive Bayes for labels: each on its own, or one after the other.

Naive Bayes takes the features of a class for independent normal variables. For
labels it is asked once a label, does the label apply or not: independently of the
other labels (binary relevance), or with the labels before it as further features (a
classifier chain).
"""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.naive_bayes import GaussianNB
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from .._base.multilabel import MultiLabelMixin
from .._support.sklearn_compat import fit_context
from .._support.transaction import all_or_nothing
from ._gaussian_labels import (
    VARIES,
    check_spread,
    comparable,
    constant_values,
    dense_rows,
    fit_label,
    label_scores,
    row_blocks,
)


def _chain_order(order: Any, n_labels: int, random_state: Any) -> NDArray[np.int64]:
    """Return the label numbers in the order of the chain."""
    if order is None:
        return np.arange(n_labels)
    if isinstance(order, str):
        return check_random_state(random_state).permutation(n_labels).astype(np.int64)
    chain = np.asarray(order)
    if chain.shape != (n_labels,):
        raise ValueError(
            f"order must hold the {n_labels} label numbers once each, "
            f"got an array of shape {chain.shape}."
        )
    if chain.dtype.kind not in "iu":
        raise ValueError(f"order must hold integers, got dtype {chain.dtype}.")
    missing = np.setdiff1d(np.arange(n_labels), chain)
    if missing.size:
        raise ValueError(
            f"order must be a permutation of the label numbers 0 to {n_labels - 1}, "
            f"got {chain.tolist()}, which lacks {missing.tolist()}."
        )
    return chain.astype(np.int64)


class _GaussianNBLabels(MultiLabelMixin, BaseEstimator):
    """A model a label; a subclass says what each is shown."""

    @all_or_nothing
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit one model a label.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, D)
        y : array-like or sparse matrix of shape (n, K), or array-like of shape (n,)
            An indicator of 0 and 1; or two classes, for the problem of one label.
        sample_weight : array-like of shape (n,), default=None
            Row weights in means, variances and class frequencies; rows of weight 0
            are left out.

        Returns
        -------
        self
        """
        part = self._training_rows(X, y, sample_weight)
        rows, weight = dense_rows(part.X), comparable(part.weight)
        check_spread(rows)
        self.constant_ = constant_values(part.Y)
        self.estimators_ = self._fit_models(rows, part.Y, weight)
        self._warn_constant(part.Y)
        return self

    def _fit_models(
        self, rows: NDArray, Y: NDArray, weight: NDArray | None
    ) -> list[GaussianNB | None]:
        """Return the model of each label, None where it is constant."""
        raise TypeError(f"{type(self).__name__} must define _fit_models().")

    def _fit_model(
        self, rows: NDArray, Y: NDArray, k: int, weight: NDArray | None
    ) -> GaussianNB | None:
        """Return the model of label k that is shown these columns."""
        if self.constant_[k] != VARIES:
            return None
        return fit_label(rows, Y[:, k], weight, self.var_smoothing)

    def _logits(self, X: Any) -> NDArray[np.float64]:
        return self._label_scores(X)[0]

    def _probabilities(self, X: Any) -> NDArray[np.float64]:
        # Rounded as GaussianNB rounds them, which is not how logits would be.
        return self._label_scores(X)[1]

    def _label_scores(self, X: Any) -> NDArray[np.float64]:
        """Return log-odds and probabilities, (2, n, K)."""
        raise TypeError(f"{type(self).__name__} must define _label_scores().")


class GaussianNBRelevance(_GaussianNBLabels):
    """Binary relevance with Gaussian naive Bayes: one independent model a label.

    Parameters
    ----------
    var_smoothing : float, default=1e-9
        Share of the largest feature variance that is added to every variance. It ties
        all features to the widest one: scale them before, this estimator does not.

    Attributes
    ----------
    estimators_ : list of GaussianNB or None, length K
        The model of each label; None where the label was constant in training.
    constant_ : int8 array (K,)
        The value of a label that was constant in training, otherwise −1.
    classes_ : list of arrays, or array of shape (2,) for a 1-D y
    label_names_ : array of str, shape (K,)
    n_labels_, n_features_in_ : int
    feature_names_in_ : array of str, if X had names

    See Also
    --------
    GaussianNBChain : feeds each label to the models of those after it.

    Notes
    -----
    Logits are differences of log-densities summed over the features. With many
    features they are large, and probabilities become exactly 0 or 1: rank labels by
    ``decision_function`` where ties matter. A label that was constant in training has
    a logit of ±1e30.

    Sparse rows are made dense: all of them to fit, block by block to predict.

    References
    ----------
    .. [1] G. Tsoumakas and I. Katakis, "Multi-label classification: an overview",
       International Journal of Data Warehousing and Mining 3 (3), 2007.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from clml.baselines import GaussianNBRelevance
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> clf = GaussianNBRelevance().fit(X, Y)
    >>> clf.predict(X[:3])
    array([[0, 0, 0, 0, 1],
           [0, 0, 1, 0, 0],
           [1, 1, 0, 1, 0]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "var_smoothing": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(self, *, var_smoothing: float = 1e-9):
        self.var_smoothing = var_smoothing

    def _fit_models(
        self, rows: NDArray, Y: NDArray, weight: NDArray | None
    ) -> list[GaussianNB | None]:
        return [self._fit_model(rows, Y, k, weight) for k in range(self.n_labels_)]

    def _label_scores(self, X: Any) -> NDArray[np.float64]:
        scores = np.empty((2, X.shape[0], self.n_labels_))
        for block in row_blocks(*X.shape):
            rows = dense_rows(X[block])
            for k, model in enumerate(self.estimators_):
                scores[:, block, k] = label_scores(model, self.constant_[k], rows)
        return scores


class GaussianNBChain(_GaussianNBLabels):
    """Classifier chain with Gaussian naive Bayes.

    The labels stand in a row. Each has a model whose features are those of X and the
    labels before it: the true ones in training, the predicted ones in prediction.

    Parameters
    ----------
    order : "random", array-like of shape (K,) or None, default=None
        The label numbers in the order of the chain. None is their own order.
    chain_method : {"predict", "predict_proba"}, default="predict"
        What is fed to later models in prediction: decisions or probabilities.
    var_smoothing : float, default=1e-9
        Share of the largest feature variance that is added to every variance. It ties
        all features, the fed labels among them, to the widest one: scale X before,
        this estimator does not.
    random_state : int, RandomState or None, default=None
        Draws ``order="random"``.

    Attributes
    ----------
    order_ : int array (K,)
        The label numbers in the order of the chain.
    estimators_ : list of GaussianNB or None, length K
        The model of each label, by label number; None where the label was constant
        in training.
    constant_ : int8 array (K,)
        The value of a label that was constant in training, otherwise −1.
    classes_ : list of arrays, or array of shape (2,) for a 1-D y
    label_names_ : array of str, shape (K,)
    n_labels_, n_features_in_ : int
    feature_names_in_ : array of str, if X had names

    See Also
    --------
    GaussianNBRelevance : independent models.

    Notes
    -----
    Results are in the order of the labels, whatever the order of the chain. A label
    that was constant in training has a logit of ±1e30, and is fed as that constant.

    Sparse rows are made dense: all of them to fit, block by block to predict.

    References
    ----------
    .. [1] J. Read, B. Pfahringer, G. Holmes and E. Frank, "Classifier chains for
       multi-label classification", Machine Learning 85, 2011.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from clml.baselines import GaussianNBChain
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> clf = GaussianNBChain(order=[4, 2, 0, 1, 3]).fit(X, Y)
    >>> clf.predict(X[:3])
    array([[0, 0, 0, 0, 1],
           [0, 0, 1, 0, 0],
           [1, 1, 0, 1, 0]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "order": ["array-like", StrOptions({"random"}), None],
        "chain_method": [StrOptions({"predict", "predict_proba"})],
        "var_smoothing": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        order: Any = None,
        chain_method: str = "predict",
        var_smoothing: float = 1e-9,
        random_state: Any = None,
    ):
        self.order = order
        self.chain_method = chain_method
        self.var_smoothing = var_smoothing
        self.random_state = random_state

    def _fit_models(
        self, rows: NDArray, Y: NDArray, weight: NDArray | None
    ) -> list[GaussianNB | None]:
        self.order_ = _chain_order(self.order, self.n_labels_, self.random_state)
        n_features = rows.shape[1]
        rows = np.concatenate([rows, Y[:, self.order_]], axis=1)
        models: list[GaussianNB | None] = [None] * self.n_labels_
        for position, k in enumerate(self.order_):
            seen = rows[:, : n_features + position]
            models[k] = self._fit_model(seen, Y, k, weight)
        return models

    def _label_scores(self, X: Any) -> NDArray[np.float64]:
        n_rows, n_features = X.shape
        n_columns = n_features + self.n_labels_
        scores = np.empty((2, n_rows, self.n_labels_))
        for block in row_blocks(n_rows, n_columns):
            rows = np.empty((block.stop - block.start, n_columns))
            rows[:, :n_features] = dense_rows(X[block])
            for position, k in enumerate(self.order_):
                end = n_features + position
                logits, probabilities = label_scores(
                    self.estimators_[k], self.constant_[k], rows[:, :end]
                )
                scores[:, block, k] = logits, probabilities
                hard = self.chain_method == "predict"
                rows[:, end] = logits > 0 if hard else probabilities
        return scores
